#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What forks inherit: attributed to their parents, no leak to keep and no error to free. Truth:
test/programs/heap/inherit.c."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

N_MORE, BLOCK_BYTES = 7, 300


def processes_by_end(report):
    return {process["end"]: process for process in report["processes"]}


def recorded(**env):
    result, output = record([PROGRAMS / "inherit"], env=env)
    expect_equal(result.returncode, 0, "status")
    return output


@case
def freeing_inherited_blocks_is_no_error():
    report = leaks(recorded())
    expect_equal(len(report["processes"]), 6, "processes")
    expect_equal(report["events"]["unknown_frees"], 0, "frees of blocks that nobody knows")
    by_end = processes_by_end(report)
    freed = {end: by_end[f"exit {end}"]["inherited"]["freed_blocks"] for end in range(1, 6)}
    expect_equal(freed, {1: 0, 2: 5, 3: 2, 4: 4, 5: 0}, "inherited blocks that each fork freed or resized")
    expect_equal(by_end["exit 0"]["inherited"], None, "of the parent, which is no fork")


@case
def keeping_inherited_blocks_is_no_leak():
    report = leaks(recorded())
    ends = {process["pid"]: process["end"] for process in report["processes"]}
    kept = collections.Counter()
    for entry in report["leaks"]:
        for name in set(functions(entry)) & {"keep_in_parent", "keep_in_child"}:
            kept[name, ends[entry["pid"]], entry["bytes"] // entry["blocks"]] += entry["blocks"]
    expect_equal(kept, {("keep_in_parent", "exit 0", 300): 27, ("keep_in_child", "exit 3", 1000): 2,
                        ("keep_in_child", "exit 4", 500): 2}, "blocks by keeper, end and size")
    for end in (1, 2, 5):
        process = processes_by_end(report)[f"exit {end}"]
        expect_equal((process["leaked_blocks"], process["leaked_bytes"]), (0, 0), f"leaks of the fork {end}")


@case
def inherited_blocks_are_those_of_the_moment_of_the_fork():
    inherited = {end: process["inherited"] for end, process in processes_by_end(leaks(recorded())).items()}
    first, second, third = (inherited[f"exit {end}"] for end in (1, 2, 3))
    expect_equal(second["blocks"] - first["blocks"], N_MORE, "blocks between two forks")
    expect_equal(second["bytes"] - first["bytes"], N_MORE * BLOCK_BYTES, "bytes between two forks")
    expect_equal((third["blocks"], third["bytes"]), (second["blocks"], second["bytes"]), "the third fork's")
    assert first["blocks"] >= 20 and first["bytes"] >= 20 * BLOCK_BYTES, first
    # Four were freed before the fork of the fork, and their sizes are unknown.
    expect_equal(inherited["exit 5"]["blocks"], inherited["exit 4"]["blocks"] - 4 + 2, "blocks of the fork's fork")
    expect_equal(inherited["exit 5"]["bytes"], None, "bytes of the fork's fork")


def live_before_fork(output):
    """The parent's blocks at its first fork, replayed from its events."""
    live = {}
    for line in torsh("dump", output, "--only", "events").splitlines():
        event = json.loads(line)
        if event.get("process") != 1:
            continue
        if event.get("event") == "fork":
            return len(live), sum(live.values())
        if event.get("event") == "alloc":
            live[event["address"]] = event["size"]
        if event.get("event") in ("free", "realloc_begin"):
            live.pop(event["address"], None)
    raise AssertionError("no fork in the recording")


@case
def inherited_blocks_are_those_that_a_replay_leaves():
    output = recorded(TORSH_PROFILER_RECORD="full")
    inherited = processes_by_end(leaks(output))["exit 1"]["inherited"]
    expect_equal((inherited["blocks"], inherited["bytes"]), live_before_fork(output), "blocks and bytes at the first fork")


main()
