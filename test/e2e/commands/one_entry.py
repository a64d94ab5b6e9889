#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which stacks are one entry of a list: those of a recursion, which are all read however deep they are, and those of one line."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

BLOCKS, BYTES = 50, 32  # as in test/programs/stacks/recursion.c
DEPTH = 2000

WALK = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def walk(n):
    libc.malloc(4001)
    if n:
        walk(n - 1)
walk({depth})
"""


def recorded(*command):
    """The recording of a program that ends well, and what reading it prints beside the report."""
    result, output = record(command)
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    [recording] = recordings(output)
    for name in ("leaks", "report", "peak", "steps"):
        words = run([BUILD / "torsh", name, recording]).stderr.decode()
        expect_equal(words, "", f"said beside {name}")
    return recording


@case
def all_stacks_are_read():
    report = leaks(recorded(PROGRAMS / "recursion", DEPTH))
    ours = [leak for leak in report["leaks"] if any(frame.get("function") == "descend" for frame in leak["stack"])]
    expect_equal(sum(leak["blocks"] for leak in ours), BLOCKS * DEPTH, "blocks")
    expect_equal(sum(leak["bytes"] for leak in ours), BLOCKS * DEPTH * BYTES, "bytes")


@case
def a_recursion_is_one_entry():
    recording = recorded(sys.executable, "-c", WALK.format(depth=200))
    own = [leak for leak in leaks(recording)["leaks"] if leak["bytes"] % 4001 == 0]
    # The first call, and those that it makes.
    expect_equal(sorted(leak["blocks"] for leak in own), [1, 200], "blocks of the entries")
    every = [leak for leak in leaks(recording, "--depth", "0")["leaks"] if leak["bytes"] == 4001]
    expect_equal(len(every), 201, "stacks")


@case
def a_line_is_one_entry_however_many_addresses_it_calls_from():
    recording = recorded(PROGRAMS / "one_line")
    expected = [(600, 600 * 32), (100, 100 * 48)]
    for report in (leaks(recording)["leaks"], read_report("leaks", recording, "--limit", "2")["leaks"], peak(recording)["holders"]):
        expect_equal([(entry["blocks"], entry["bytes"]) for entry in report], expected, "blocks and bytes of the entries")
    for what, name, *arguments in (("18.8 KiB ", "leaks"), ("18.8 KiB ", "peak"), ("18.8 KiB ", "leaks", "--limit", "1"),
                                   ("1 leak: 23.4 KiB at test/programs/stacks/one_line.c", "report")):
        text = torsh(name, recording, *arguments)
        assert "(no stack was recorded)" not in text and what in text, f"{name} {arguments}: {text}"


main()
