#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""NVTX's deferred events, by the clocks that a program may take, and its pools of memory, through
NVTX's real headers."""

import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build, nvtx_headers  # noqa: E402
from timeline import events  # noqa: E402

SOURCES = ROOT / "test/programs/ranges/nvtx"
CLOSE_NS = 100_000_000  # of two clocks that are read one after the other, on a machine that is busy


def program():
    headers = nvtx_headers()
    if not (headers / "nvtx3/nvToolsExtSemanticsTime.h").exists():
        raise Skip(f"{headers}/nvtx3 is older than deferred events")
    return build("deferred", SOURCES / "deferred.c", f"-I{headers}")


def recorded(**options):
    """The recording, and what the program said: {clock: (from, to)}."""
    result, output = record([program()], **options)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    lines = [line.split() for line in result.stdout.decode().splitlines()]
    return output, {line[0]: [int(number) for number in line[1:]] for line in lines}


def expect_within(event, truth, offset, message, slack=0):
    begin, end = event["begin_ns"] + offset, event["begin_ns"] + event["duration_ns"] + offset
    assert truth[0] - slack <= begin <= end <= truth[1] + slack, f"{message}: {begin} to {end} isn't in {truth}"


def of_name(found, name):
    [event] = [event for event in found if event["name"] == name]
    return event


@case
def deferred_events_have_the_times_of_their_clock():
    output, truth = recorded()
    found = [event for event in events(output) if event["event"] == "deferred"]
    expect_equal([(event["name"], event["is_mark"], event["domain"]) for event in found],
                 [("first", 0, "later"), ("inside", 0, "later"), ("of the schema", 0, "later"), ("realtime", 0, "later"),
                  ("monotonic", 0, "later"), ("ticks", 0, "later"), ("read", 0, "later"), ("marked", 1, "later"),
                  ("marked", 1, "later"), ("marked", 1, "later"), ("reversed", 0, "later"), ("again", 0, "later")], "deferred events")
    expect_equal([of_name(found, name)["duration_ns"] for name in ("reversed", "again")], [3000, 5000],
                 "durations of a schema that begins with the end")
    monotonic = of_name(found, "monotonic")
    # Times in a recording have another zero than the clock, the same one for all.
    offset = truth["monotonic"][0] - monotonic["begin_ns"]
    expect_equal(monotonic["duration_ns"], truth["monotonic"][1] - truth["monotonic"][0], "duration by the clock itself")
    for event in found[:3]:
        expect_within(event, truth["tool"], offset, event["name"])
    first, inside = found[:2]
    assert first["begin_ns"] <= inside["begin_ns"] and inside["duration_ns"] <= first["duration_ns"], (first, inside)
    expect_equal((first["category"], first["color"], first["source"]), ("four", 0xff00ff00, "nvtx"), "attributes")
    realtime = of_name(found, "realtime")
    expect_equal(realtime["duration_ns"], 5000, "duration by another clock of the system's")
    expect_within(realtime, truth["realtime"], offset, "realtime", CLOSE_NS)
    ticks = of_name(found, "ticks")
    assert abs(ticks["duration_ns"] - 1_000_000) <= 1, ticks
    assert abs(ticks["begin_ns"] + offset - truth["ticks"][0]) <= CLOSE_NS, (ticks, truth, offset)
    expect_within(of_name(found, "read"), truth["read"], offset, "read by the agent", CLOSE_NS)
    for event in [event for event in found if event["is_mark"]]:
        expect_within(event, truth["marks"], offset, "mark")
    assert "their clock is not known" in torsh("report", output), "what was left out is not in the report"
    check_counts(leaks(output)["events"])


@case
def deferred_events_are_regions_as_others():
    output, _ = recorded()
    report = read_report("regions", output)
    regions = {region["name"]: region for region in report["regions"]}
    expect_equal({name: region["calls"] for name, region in regions.items()},
                 {"first": 1, "inside": 1, "of the schema": 1, "realtime": 1, "monotonic": 1, "ticks": 1, "read": 1,
                  "reversed": 1, "again": 1}, "calls")
    expect_equal((regions["realtime"]["total_ns"], regions["realtime"]["source"]), (5000, "nvtx"), "total")
    expect_equal([(mark["name"], mark["marks"]) for mark in report["marks"]], [("marked", 3)], "marks")
    expect_equal(report["unpaired_ends"], 0, "ends without a begin")
    trace = json.loads(torsh("export", output, "--format", "chrome"))["traceEvents"]
    begins = [event for event in trace if event.get("ph") == "b" and event["name"] == "realtime"]
    ends = [event for event in trace if event.get("ph") == "e" and event["name"] == "realtime"]
    expect_equal([round((end["ts"] - begin["ts"]) * 1000) for begin, end in zip(begins, ends)], [5000], "in Chrome's format")
    expect_equal(len([event for event in trace if event.get("ph") == "i" and event["name"] == "marked"]), 3, "marks there")
    path = scratch("sqlite") / "out.sqlite"
    torsh("export", output, "--format", "sqlite", "-o", path)
    spans = sqlite3.connect(path).execute("SELECT end_ns - start_ns FROM ranges JOIN labels ON labels.id = name WHERE text = 'realtime'").fetchall()
    expect_equal(spans, [(5000,)], "in SQLite")


@case
def pools_have_their_own_account():
    output, truth = recorded()
    expect_equal(truth["pools"], [1, 1, 1], "handles")
    report = read_report("regions", output)
    pools = {pool["name"]: pool for pool in report["pools"]}
    expect_equal(sorted(pools, key=str), [None, "arena", "scratch"], "pools")
    arena, scratched, process = pools["arena"], pools["scratch"], pools[None]
    fields = ("domain", "bytes", "registered", "ended", "total_bytes", "live_bytes", "peak_bytes", "is_ended")
    expect_equal([arena[field] for field in fields], ["later", 1 << 16, 3, 1, 650, 450, 600, False], "the first pool")
    expect_equal([(region["name"], region["bytes"], region["address"] - arena["address"]) for region in arena["left"]],
                 [(None, 150, 0), ("weights", 300, 512)], "its regions at the end")
    expect_equal([scratched[field] for field in fields], ["later", 1 << 12, 2, 2, 96, 0, 64, True], "the second pool")
    expect_equal(scratched["left"], [], "its regions at the end")
    expect_equal([process[field] for field in fields], ["later", 0, 1, 0, 48, 48, 48, False], "regions of no pool")
    expect_equal(report["unknown_pools"], 1, "a region that had ended already")
    text = torsh("regions", output)
    assert "later/arena" in text and "later/scratch" in text, text
    names = [event["name"] for event in events(output) if event["event"] == "pool" and event["what"] == 6]
    expect_equal(names, ["weights"], "names of regions")


@case
def without_the_agent_the_program_does_the_same():
    bare = run([program()])
    expect_equal((bare.returncode, bare.stdout.decode().splitlines()[-1]), (0, "pools 0 0 0"), "without a tool")
    output, _ = recorded(env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal([event for event in events(output) if event["event"] in ("deferred", "pool")], [], "without the activity")


main()
