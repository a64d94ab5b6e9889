# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Processes that hold memory in turns, for test/e2e/process/joint_peak.py and device_shared.py: turns.py fork|spawn JSON. Each turn is
[process, bytes more or less], or ["end", process]. Prints the pids. With TURNS_ON, a list in JSON, it is memory of the simulated
CUDA device that has this number in the machine, for each process, and the first one of the process.
"""

import ctypes
import json
import os
import sys

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def hold(n):
    return libc.malloc(n)


give_back = libc.free


def use_device():
    """From here on memory is that of a device."""
    global hold, give_back
    runtime = ctypes.CDLL("libcudart.so.13")

    def hold(n):
        address = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(n)) == 0
        return address.value

    def give_back(address):
        assert runtime.cudaFree(ctypes.c_void_p(address)) == 0


class Holder:
    def __init__(self):
        self.blocks = []  # (bytes, address)

    def change(self, n):
        if n > 0:
            self.blocks.append((n, hold(n)))
            return
        # Parts of what is held go one by one until it is less by n: a block of the rest takes the last one's place.
        while n < 0:
            size, address = self.blocks.pop()
            give_back(address)
            n += size
        if n > 0:
            self.blocks.append((n, hold(n)))


def work(commands, answers):
    holder = Holder()
    for line in commands:
        if line == "end\n":
            break
        holder.change(int(line))
        answers.write("done\n")
        answers.flush()


def environment(who):
    devices = json.loads(os.environ.get("TURNS_ON", "[]"))
    return {**os.environ, "SIMCUDA_FIRST_DEVICE": str(devices[who])} if devices else os.environ


class Worker:
    def __init__(self, how, who):
        ours, theirs = os.pipe(), os.pipe()
        if how == "fork":
            self.pid = os.fork()
            if self.pid == 0:
                os.close(theirs[1])
                work(os.fdopen(theirs[0]), os.fdopen(ours[1], "w"))
                os._exit(0)
        else:
            actions = [(os.POSIX_SPAWN_DUP2, theirs[0], 0), (os.POSIX_SPAWN_DUP2, ours[1], 1)]
            arguments = [sys.executable, __file__, "work"]
            self.pid = os.posix_spawn(sys.executable, arguments, environment(who), file_actions=actions)
        os.close(theirs[0])
        os.close(ours[1])
        self.answers, self.commands = os.fdopen(ours[0]), os.fdopen(theirs[1], "w")

    def change(self, n):
        self.commands.write(f"{n}\n")
        self.commands.flush()
        assert self.answers.readline() == "done\n"

    def end(self):
        self.commands.write("end\n")
        self.commands.close()
        os.waitpid(self.pid, 0)


def main(how, turns):
    own = Holder()
    workers = {}
    for who, change in turns:
        if who == "end":
            workers[change].end()
        elif who == 0:
            own.change(change)
        else:
            if who not in workers:
                workers[who] = Worker(how, who)
            workers[who].change(change)
    print(json.dumps([os.getpid()] + [workers[who].pid for who in sorted(workers)]))
    for who, worker in workers.items():
        if ["end", who] not in turns:
            worker.end()


if "TURNS_ON" in os.environ:
    use_device()
if sys.argv[1] == "work":
    work(sys.stdin, sys.stdout)
else:
    main(sys.argv[1], json.loads(sys.argv[2]))
