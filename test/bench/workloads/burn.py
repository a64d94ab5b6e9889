# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Computes N times the same, 20 calls deep: burn.py N. Prints the ns that each took, of time and of its processor time."""

import sys
import time


def burn(n):
    begin, started = time.thread_time_ns(), time.monotonic_ns()
    for i in range(n):
        total = i
        for k in range(2000):
            total = (total * 31 + k) % 1000003
    return (time.monotonic_ns() - started) / n, (time.thread_time_ns() - begin) / n


def descend(depth, n):
    return descend(depth - 1, n) if depth else burn(n)


wall, cpu = descend(20, int(sys.argv[1]))
print(f"wall {wall:.2f}\n{cpu:.2f}")
