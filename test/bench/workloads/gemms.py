# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a small product of matrices takes in numpy: gemms.py N. Prints the ns of processor time of each, the lowest of five rounds."""

import sys
import time

import numpy

a = numpy.ones((8, 8))
out = numpy.zeros((8, 8))
n, least = int(sys.argv[1]), None
for _ in range(5):
    begin = time.thread_time_ns()
    for _ in range(n):
        numpy.dot(a, a, out)
    ns = (time.thread_time_ns() - begin) / n
    least = ns if least is None or ns < least else least
print(f"{least:.2f}")
