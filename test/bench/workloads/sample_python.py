# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a sample costs in Python, so many calls deep: sample_python.py DEPTH N. As test/bench/native/sample.c; the handler that does nothing
is a function of the C library.
"""

import ctypes
import re
import signal
import sys
import time

SYS_RT_TGSIGQUEUEINFO, SI_TIMER = 297, -2
libc = ctypes.CDLL(None, use_errno=True)


class Info(ctypes.Structure):
    _fields_ = [("signo", ctypes.c_int), ("errno", ctypes.c_int), ("code", ctypes.c_int), ("padding", ctypes.c_int),
                ("timer", ctypes.c_int), ("overrun", ctypes.c_int), ("value", ctypes.c_void_p), ("rest", ctypes.c_char * 96)]


def send(number, mark, n):
    """ns of this thread's processor time that each of n signals took."""
    info = Info(signo=number, code=SI_TIMER, value=mark)
    arguments = (SYS_RT_TGSIGQUEUEINFO, libc.getpid(), libc.gettid(), number, ctypes.byref(info))
    begin = time.thread_time_ns()
    for _ in range(n):
        libc.syscall(*arguments)
    return (time.thread_time_ns() - begin) / n


def measure(n):
    libc.signal(signal.SIGRTMIN, ctypes.cast(libc.labs, ctypes.c_void_p))
    found = re.findall(r"signal: (\d+)/(?:0x)?([0-9a-f]+)", open("/proc/self/timers").read())
    empty = agent = 0.0
    for _ in range(2):
        empty = send(signal.SIGRTMIN, None, n)
        agent = send(int(found[-1][0]), int(found[-1][1], 16), n) if found else 0.0
    return agent, empty


def descend(depth, n):
    return descend(depth - 1, n) if depth else measure(n)


agent, empty = descend(int(sys.argv[1]), int(sys.argv[2]))
if agent:
    print(f"agent {agent:.2f}")
print(f"empty {empty:.2f}")
