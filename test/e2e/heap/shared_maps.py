#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Shared memory: segments of System V, memfd and files that are mapped, to the byte, with what they are; and calls that fail."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

PROGRAM = PROGRAMS / "shared_maps"
MIB, PAGE = 1 << 20, 4096
SYSTEM_V = "shared memory (System V)"

# function in test/programs/heap/shared_maps.c: bytes left of what it mapped, by what that is
LEFT = {
    "attach_segment": {SYSTEM_V: 3 * MIB + PAGE},
    "attach_twice": {SYSTEM_V: 2 * MIB},
    "attach_and_cover": {None: MIB},
    "attach_over": {None: 4 * MIB, SYSTEM_V: MIB},
    "attach_in_vain": {},
    "map_memfd": {"memfd": 6 * MIB},
    "map_shared_file": {"shared file": 7 * MIB},
    "map_private_file": {"file": 5 * MIB},
    "map_shared_memory": {"shared memory": 9 * MIB},
    "map_last": {None: 256 * MIB},
}


@case
def each_is_recorded_to_the_byte_with_what_it_is():
    path = scratch("files") / "data.bin"
    result, output = record([PROGRAM, path])
    expect_equal(result.returncode, 0, f"status ({result.stderr})")
    report = peak(output)
    expect_fits("peak", report)
    holders = report["mappings"]["holders"]
    for name, left in LEFT.items():
        found = {}
        for site in entries_through(holders, name):
            found[site["what"]] = found.get(site["what"], 0) + site["bytes"]
        expect_equal(found, left, f"mapped by {name}")
    expect_equal(total(holders), report["mappings"]["peak_bytes"], "sum of the holders")
    for name, wanted in (("map_memfd", "/memfd:weights (deleted)"), ("map_shared_file", str(path)), ("map_private_file", str(path)),
                         ("map_shared_memory", None), ("map_last", None)):
        expect_equal([site["path"] for site in entries_through(holders, name)], [wanted], f"path of {name}")
    text = torsh("peak", output, "--limit", "0")
    for words in (SYSTEM_V, "memfd /memfd:weights (deleted)", f"shared file {path}", f"      file {path}"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
def calls_do_what_they_do_without_the_agent():
    path = scratch("files") / "data.bin"
    bare = run([PROGRAM, path])
    result, _ = record([PROGRAM, path])
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), "what the calls returned, and errno")
    lines = bare.stdout.decode().splitlines()
    assert sum("failed" in line for line in lines) == 6, lines


@case
def without_the_vm_activity_nothing_of_it_is_recorded():
    path = scratch("files") / "data.bin"
    result, output = record([PROGRAM, path], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal(result.returncode, 0, "status")
    expect_equal(peak(output)["mappings"]["holders"], [], "mappings")


main()
