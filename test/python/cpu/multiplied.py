# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Products of matrices in a scope, "product": given a PMU (cpu_pmu.c) with the counts named here.

Prints {"flops", "threads"}: floating point operations of all of them, and the threads that PyTorch may use.
"""

import json
import sys

import torch

from counted import COUNTERS, add

COUNTS = 8388608, 4000000, 10, 64000, 16384, 1000  # cycles, instructions, missed branches, L1d, LLC, dTLB
SIDE, TIMES = 256, 4


def main():
    factor = torch.ones(SIDE, SIDE)
    with torch.profiler.record_function("first"):
        torch.mm(factor, factor)  # its library loads
    with torch.profiler.record_function("product"):
        for _ in range(TIMES):
            product = torch.mm(factor, factor)
        for page, n in zip(COUNTERS, COUNTS):
            add(page, n)
    assert product[0, 0] == SIDE
    json.dump({"flops": TIMES * SIDE * SIDE * (SIDE + SIDE), "threads": torch.get_num_threads()}, sys.stdout)


main()
