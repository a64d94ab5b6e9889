# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processes that Python starts: family.py WAY FILE. Each writes a line "PID PPID SIZE" to FILE for
the block that it leaks, with a size that WAY defines for the process's number."""

import ctypes
import multiprocessing
import os
import subprocess
import sys

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def report(size):
    with open(sys.argv[2], "a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {size} -\n")


def leak(size):
    libc.malloc(ctypes.c_size_t(size))  # line: leak
    report(size)


def leak_and_answer(size):
    leak(size)
    return os.getpid()


def run_process(method):
    context = multiprocessing.get_context(method)
    process = context.Process(target=leak, args=(60001,))
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode


def run_pool(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.map(leak_and_answer, range(61000, 61010), chunksize=1)
        # Workers that end by themselves, not by terminate().
        pool.close()
        pool.join()


def run_subprocess():
    code = f"import sys; sys.argv = ['-c', 'subprocess', {sys.argv[2]!r}]; exec(open({__file__!r}).read())"
    subprocess.run([sys.executable, "-c", code], close_fds=True, env={}, check=True)


def run_daemon():
    """A child of a child, that closes every descriptor and leads a session of its own."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.closerange(0, 65536)
    leak(62001)
    os._exit(4)


def run_spawn():
    pid = os.posix_spawn(sys.executable, [sys.executable, __file__, "alone", sys.argv[2]], {})
    os.waitpid(pid, 0)


def run_exec():
    os.execve(sys.executable, [sys.executable, __file__, "alone", sys.argv[2]], {})


WAYS = {
    "fork": lambda: run_process("fork"),
    "forkserver": lambda: run_process("forkserver"),
    "spawn": lambda: run_process("spawn"),
    "fork_pool": lambda: run_pool("fork"),
    "spawn_pool": lambda: run_pool("spawn"),
    "subprocess": run_subprocess,
    "daemon": run_daemon,
    "posix_spawn": run_spawn,
    "execve": run_exec,
    "alone": lambda: leak(63001),
}

if __name__ == "__main__":
    if sys.argv[0] == "-c":
        leak(64001)
    else:
        WAYS[sys.argv[1]]()
