# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
gil.py fight N|alone: threads that compute in Python until a moment, N at a time or one. Prints of each its name, and its own
clocks: the time that passed and the CPU time that it took, in ns.
"""

import json
import sys
import threading
import time

SECONDS = 0.5
told = []


def compute(name, begin, until):
    begin.wait()
    passed, took = time.monotonic_ns(), time.thread_time_ns()
    n = 0
    while time.monotonic() < until[0]:
        n += sum(range(50))
    told.append({"name": name, "tid": threading.get_native_id(), "passed_ns": time.monotonic_ns() - passed,
                 "took_ns": time.thread_time_ns() - took})


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
