# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A program of gevent without a word of the profiler: greenlets that wait for each other by turns, of a pool and of a class of its
own. Prints what each kind allocated, and how many there were, in JSON.
"""

import ctypes
import json
import time

import gevent
import gevent.event
import gevent.pool

MIB = 1 << 20
libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]

done, kept = {}, []


def work(name, mib):
    begin = time.thread_time_ns()
    libc.free(libc.malloc(mib * MIB))
    while time.thread_time_ns() - begin < 1_000_000:
        pass
    one = done.setdefault(name, {"allocated": 0, "cpu": 0})
    one["allocated"] += mib * MIB
    one["cpu"] += time.thread_time_ns() - begin


def load(number):
    for _ in range(4):
        work("load", 2)
        gevent.sleep(0.001)


def pooled(number):
    work("pooled", 3)
    event.wait()
    work("pooled", 4)


class Own(gevent.Greenlet):
    def _run(self):
        work("Own._run", 5)
        gevent.sleep(0)
        work("Own._run", 5)


def killed():
    work("killed", 6)
    gevent.sleep(60)


event = gevent.event.Event()
pool = gevent.pool.Pool(2)
running = [gevent.spawn(load, number) for number in range(5)] + [Own() for _ in range(2)] + [gevent.spawn(killed)]
for one in running[5:7]:
    one.start()
waiting = [pool.spawn(pooled, number) for number in range(2)]
gevent.sleep(0.01)
event.set()
waiting.append(pool.spawn(pooled, 2))
libc.free(libc.malloc(50 * MIB))  # nobody's
gevent.joinall(running[:-1] + waiting)
running[-1].kill()
print(json.dumps(done))
