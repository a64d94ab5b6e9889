#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The address space: what is mapped when most is, by the stack that mapped it, after cuts, covers and moves."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

# function in test/programs/heap/maps.c: MiB left of what it mapped
LEFT = {
    "map_untouched": 8,
    "map_and_unmap": 0,
    "map_cut_at_start": 7,
    "map_cut_at_end": 7,
    "map_cut_in_the_middle": 7,
    "map_covered": 8,  # seven of its own, and what covers the eighth
    "cover": 1,
    "map_two_unmapped_as_one": 2,
    "map_shrunk": 2,
    "map_grown": 16,
    "map_file": 3,
    "map_in_vain": 0,
    "map_advised": 8,
    "map_last": 256,
}
MIB = 1 << 20


@case
def what_is_left_of_each_mapping_is_recorded():
    result, output = record([PROGRAMS / "maps"])
    expect_equal(result.returncode, 0, "status")
    mappings = peak(output)["mappings"]
    for name, left in LEFT.items():
        expect_equal(total(entries_through(mappings["holders"], name)), left * MIB, f"bytes of {name}")
    expect_equal(mappings["advised_bytes"], 4 * MIB, "bytes given back by madvise")
    expect_equal(total(mappings["holders"]), mappings["peak_bytes"], "sum of the holders")


@case
def a_heap_that_maps_is_not_counted_twice():
    # glibc maps large blocks by itself: these are the heap's.
    _, output = record([PROGRAMS / "entries"])
    report = peak(output)
    expect_equal(total(entries_through(report["mappings"]["holders"], "leak_large")), 0, "mapped by leak_large")
    expect_equal(total(entries_through(report["holders"], "leak_large")), 100 * MIB, "held by leak_large")


main()
