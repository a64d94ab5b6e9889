# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Arrays of numpy, which reports its data to tracemalloc: writes down tracemalloc's values for each
line, at the peak and at the end, and ends without cleanup."""

import json
import os
import sys
import tracemalloc

import numpy

NUMPY_DOMAIN = 389047  # np.lib.tracemalloc_domain
kept, given_back = [], []


def make():
    for i in range(50):
        kept.append(numpy.empty(5000 + i, dtype=numpy.uint8))
        given_back.append(numpy.zeros((100 + i, 33)))
    kept.append(numpy.arange(10000))
    kept.append(kept[0].astype(numpy.float64) + 1.5)
    kept.append(numpy.concatenate([kept[1], kept[2]]))
    kept.append(numpy.sort(kept[-1])[::2].copy())
    given_back.append(numpy.ones((1000, 1000)) @ numpy.ones((1000, 7)))
    kept.append(numpy.frombuffer(bytes(9000), dtype=numpy.int16))
    kept.append(kept[0][100:4000])


def change():
    kept[0].resize(70000, refcheck=False)
    kept[3] = numpy.array(list(range(3000)))
    kept.extend(numpy.split(kept[3], 3))
    del given_back[:]


def seen():
    snapshot = tracemalloc.take_snapshot()
    for wanted in tracemalloc.DomainFilter(True, NUMPY_DOMAIN), tracemalloc.Filter(True, __file__):
        snapshot = snapshot.filter_traces([wanted])
    return {entry.traceback[0].lineno: [entry.count, entry.size] for entry in snapshot.statistics("lineno")}


tracemalloc.start()
make()
at_most = seen()
change()
with open(sys.argv[1], "w") as file:
    json.dump({"peak": at_most, "end": seen()}, file)
os._exit(0)
