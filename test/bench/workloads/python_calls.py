# SPDX-License-Identifier: Apache-2.0 OR MIT
"""python_calls.py N: calls functions and allocates nothing; prints nanoseconds per call."""

import sys
import time


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


start = time.perf_counter_ns()
n_calls = 2 * fibonacci(int(sys.argv[1]) + 1) - 1
print((time.perf_counter_ns() - start) / n_calls)
