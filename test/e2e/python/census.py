#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
CPython's objects near the peak, by type: against what the program keeps then, and against the interpreter's own count of the
blocks that it has handed out.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from pythons import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

N = 200000

# It has most when it has all of it: a list that grows is copied before. It keeps that until its standard input ends.
DICTS = """
import sys
kept = [None] * 200000
for i in range(len(kept)):
    kept[i] = {}
print(sys.getallocatedblocks(), flush=True)
sys.stdin.read()
print(sys.getallocatedblocks())
kept = None
"""

# Never fewer than 150,000 and never more than 200,000 of them.
CHANGING = """
import time
class Item:
    __slots__ = ("a", "b")
kept = [Item() for i in range(200000)]
end = time.monotonic() + 1.5
rounds = 0
while time.monotonic() < end:
    del kept[150000:]
    kept.extend(Item() for i in range(50000))
    rounds += 1
print(len(kept), rounds > 3)
"""


def peak(output):
    report = read_report("peak", output)
    expect_fits("peak", report)
    return report


def objects(types, name):
    return sum(row["objects"] for row in types if row["name"] == name)


def dicts_so_far(pid):
    """Those of the last census of a running process."""
    snapshot = scratch("snapshot") / "now.torsh"
    torsh("snapshot", str(pid), "-o", snapshot)
    census = peak(snapshot)["python_census"]
    return objects(census["types"], "dict") if census else 0


def record_dicts():
    """The program's two counts of blocks, and the recording: it goes on once a census has all of its objects."""
    output = scratch()
    with started([sys.executable, "-c", DICTS], agent_environment(output), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        first = process.stdout.readline()
        wait_until(lambda: dicts_so_far(process.pid) >= N, "a census of all objects")
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    expect_equal(process.returncode, 0, "status")
    return [int(first), int(rest)], output


@case
def what_is_dropped_before_the_end_is_counted_at_the_peak():
    blocks, output = record_dicts()
    census = peak(output)["python_census"]
    (end,) = read_report("leaks", output)["python"]
    expect_equal(objects(census["types"], "dict") - objects(end["types"], "dict"), N, "dicts at the peak, without those at the end")
    # The interpreter counts its larger blocks, too, of which it has some thousand.
    assert min(blocks) * 0.99 <= census["blocks"] <= max(blocks) + 50, (census["blocks"], blocks)
    expect_equal(sum(row["objects"] for row in census["types"]), census["blocks"], "blocks of all types")
    expect_equal(sum(row["bytes"] for row in census["types"]), census["bytes"], "bytes of all types")
    for row in census["types"]:
        expect_equal(sum(size["objects"] for size in row["sizes"]), row["objects"], f"objects of {row['name']} by size")
    assert census["bytes"] <= census["pool_bytes"] <= census["mapped_bytes"], census
    expect_equal(census["pools_changed"], 0, "pools that changed")
    shown = torsh("peak", output)
    assert "Python's objects of up to 512 bytes near the peak" in shown and " dict\n" in shown, shown[-2000:]
    assert "its heap's peak; the heap had" in shown, shown[-500:]


@case
def objects_that_come_and_go_are_counted_within_what_there_was():
    command = [sys.executable, "-c", CHANGING]
    result, output = record(command)
    bare = run(command)
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), "status and output, and those without us")
    census = peak(output)["python_census"]
    # What a pool that changed had is left out, and is at most as many objects as have room in it.
    missing = census["pools_changed"] * 16384 // 32
    assert 150000 - missing <= objects(census["types"], "Item") <= N, (objects(census["types"], "Item"), census["pools_changed"])


@case
def a_process_without_pools_has_no_census():
    for command, env in (([PROGRAMS / "phases"], {}), ([sys.executable, "-c", DICTS], {"PYTHONMALLOC": "malloc"})):
        result, output = record(command, env=env)
        expect_equal(result.returncode, 0, f"status of {command[0]}")
        report = peak(output)
        expect_equal((report["python_census"], report["python_census_reason"]), (None, None), f"census of {command[0]}")
        assert "Python's objects of up to" not in torsh("peak", output), "a table of nothing"


@case
def an_older_recording_has_none():
    old = sorted((ROOT / "test/e2e/recordings").glob("format-*/*.torsh"))[0]
    expect_equal(peak(old)["python_census"], None, "what is not recorded")


main()
