# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Objects of Python of many kinds: writes down what tracemalloc saw of each line at the end, and ends without tidying up.
None of them comes from a list of freed objects, where tracemalloc moves what another line allocated to the new line.
The collector doesn't run: callbacks make it leave a dictionary in such a list.
"""

import gc
import json
import os
import sys
import tracemalloc

gc.disable()
tracemalloc.start()
N = 500
kept = []


class Slotted:
    __slots__ = ("first", "second")


class Plain:
    def __init__(self, i):
        self.name = "name %d" % i
        self.values = bytearray(i)


def make():
    room = [None] * (10 * N)
    kept.append(room)
    for i in range(N):
        room[i] = bytes(i)
        room[N + i] = "text %d" % i
        room[2 * N + i] = "größe %d" % i * 9
        room[3 * N + i] = 10 ** (20 + i)
        room[4 * N + i] = Slotted()
        room[5 * N + i] = Plain(i)
        room[6 * N + i] = {j: j for j in range(i % 20)}
        room[7 * N + i] = frozenset(range(i % 30))
        room[8 * N + i] = bytearray(600 + i)
        room[9 * N + i] = memoryview(room[8 * N + i])
    grown = []
    for i in range(20 * N):
        grown.append(None)
    kept.append(grown)
    for i in range(0, N, 2):
        room[i] = room[8 * N + i] = None


def seen():
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    return {entry.traceback[0].lineno: [entry.count, entry.size] for entry in snapshot.statistics("lineno")}


make()
sums = seen()
with open(sys.argv[1], "w") as file:
    json.dump(sums, file)
os._exit(0)
