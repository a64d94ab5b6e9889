# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A table of numbers in numpy: grouped, sorted, joined, smoothed: arrays.py ROUNDS."""
import sys

import numpy

random = numpy.random.default_rng(0)
keys, values = random.integers(0, 500, 20000), random.random(20000)
total = 0.0
for _ in range(int(sys.argv[1])):
    order = numpy.argsort(keys, kind="stable")
    names, starts = numpy.unique(keys[order], return_index=True)
    means = numpy.add.reduceat(values[order], starts) / numpy.diff(numpy.append(starts, len(keys)))
    centred = values - means[numpy.searchsorted(names, keys)]
    rows = [group.std() for group in numpy.split(centred[order], starts[1:])]
    smooth = numpy.convolve(centred, numpy.ones(8) / 8, "same")
    total += float(sum(rows)) + float(numpy.where(smooth > 0, smooth, 0).sum())
print(f"{total:.3f}")
