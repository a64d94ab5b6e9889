# SPDX-License-Identifier: Apache-2.0 OR MIT
"""python_depth.py DEPTH ROUNDS: nanoseconds per block allocated and freed from that many frames of Python deep."""

import sys
import time

SIZE = 600  # more than pymalloc keeps to itself: each bytearray is one malloc and one free
SITES = 4


def allocate(rounds):
    make = bytearray
    start = time.perf_counter_ns()
    for _ in range(rounds):
        make(SIZE)
        make(SIZE)
        make(SIZE)
        make(SIZE)
    return (time.perf_counter_ns() - start) / (rounds * SITES)


def descend(depth, rounds):
    return descend(depth - 1, rounds) if depth > 2 else allocate(rounds)


depth, rounds = int(sys.argv[1]), int(sys.argv[2])
print(min(descend(depth - 1, rounds) for _ in range(5)))
