# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
gil.py fight N|alone: threads that compute in Python until a moment, N at a time or one. Prints of each its name, and its own
clocks in ns: the time that passed, the CPU time that it took, and how long it waited for a CPU, which may be unknown.
"""

import json
import sys
import threading
import time

SECONDS = 0.5
told = []


def delay():
    """How long the thread has waited for a CPU; None: unknown."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1])
    except OSError:
        return None


def compute(name, begin, until):
    begin.wait()
    delayed, passed, took = delay(), time.monotonic_ns(), time.thread_time_ns()
    n = 0
    while time.monotonic() < until[0]:
        n += sum(range(50))
    told.append({"name": name, "tid": threading.get_native_id(), "passed_ns": time.monotonic_ns() - passed,
                 "took_ns": time.thread_time_ns() - took,
                 "delayed_ns": None if delayed is None else delay() - delayed})


def main():
    n = int(sys.argv[2]) if sys.argv[1] == "fight" else 1
    begin, until = threading.Barrier(n), [0]
    until[0] = time.monotonic() + SECONDS
    threads = [threading.Thread(target=compute, args=(f"computes-{i}", begin, until)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(told))


main()
