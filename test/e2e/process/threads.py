#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Threads have an identity of their own: events belong to their thread, whenever it started and
whatever thread had its tid before."""

import collections
import csv
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import crowded, exported  # noqa: E402
from timeline import events  # noqa: E402
from waves import RANGES, expect_own_tids, recorded_waves  # noqa: E402


def is_range(name):
    return (name or "").startswith("tid ")


def threads_of_dump(output):
    """The rows of each number, the last one first."""
    rows = {}
    for line in torsh("dump", output, "--only", "threads").splitlines():
        table = json.loads(line)["threads"]
        rows.update(zip(table["number"], zip(table["tid"], table["start_ns"])))
    return rows


def check_report(output, truth):
    found = collections.Counter((thread["tid"], thread["allocations"]) for thread in read_report("report", output)["threads"])
    main = found - collections.Counter(truth)
    assert not collections.Counter(truth) - found, (truth, found)
    expect_equal(sum(main.values()), 1, "threads of the report that no wave had: the main one")


def check_events(output):
    tids = {number: tid for number, (tid, _) in threads_of_dump(output).items()}
    found = events(output)
    expect_own_tids([(event["name"], tids[event["thread"]]) for event in found if event["event"] == "range_push"], "dump")
    sizes = collections.Counter(tids[event["thread"]] for event in found if event["event"] == "alloc" and event["size"] == 64)
    return sizes


def check_regions(output, truth):
    found = [(entry["name"], entry["tid"], entry["calls"])
             for entry in read_report("regions", output, "--by-thread", "--limit", "0")["regions"]]
    expect_equal(sorted(found), sorted((f"tid {tid}", tid, RANGES) for tid, _ in truth), "regions of threads")


def chrome_ranges(path):
    events = json.loads(path.read_text())["traceEvents"]
    names = collections.Counter((event["pid"], event["tid"]) for event in events
                                if event["ph"] == "M" and event["name"] == "thread_name")
    assert names, "threads have no names"
    return [(event["name"], event["tid"]) for event in events if event["ph"] == "X" and is_range(event["name"])]


def chrome_named(path, name):
    return [(event["name"], event["tid"]) for event in json.loads(path.read_text())["traceEvents"]
            if event["ph"] == "X" and event["name"] == name]


def sqlite_ranges(path):
    return sqlite3.connect(path).execute("select text, tid from ranges r join threads t on (t.process, t.id) = (r.process, thread) "
                                         "join labels l on (l.process, l.id) = (r.process, r.name) "
                                         "where text glob 'tid *'").fetchall()


def json_ranges(path):
    return [(row["name"], row["tid"]) for row in json.loads(path.read_text())["events"] if is_range(row.get("name"))]


def csv_ranges(path):
    with path.open() as file:
        return [(row["name"], int(row["thread_id"])) for row in csv.DictReader(file) if is_range(row["name"])]


@case
def waves_of_threads_keep_their_events():
    output, truth = recorded_waves()
    check_report(output, truth)
    check_regions(output, truth)
    expected = collections.Counter()
    for tid, n in truth:
        expected[tid] += n
    found = check_events(output)
    expect_equal({tid: found[tid] for tid in expected}, dict(expected), "allocations of each thread, as events")
    for name, format_, ranges in (("t.json", "chrome", chrome_ranges), ("t.sqlite", "sqlite", sqlite_ranges),
                                  ("events.json", "json", json_ranges), ("t.csv", "csv", csv_ranges)):
        expect_own_tids(ranges(exported(output, name, "--format", format_)), format_)


@case
def reports_of_many_threads_take_no_longer_for_each():
    # What looks at all threads for each one would not end within the test's time.
    n = 300_000
    recording = crowded(n)
    torsh("leaks", recording)
    region, = (entry for entry in read_report("regions", recording)["regions"] if entry["threads"] > 1)
    expect_equal((region["calls"], region["threads"]), (n, n), "calls and threads of the range")
    expect_equal(len(read_report("report", recording)["threads"]), n + 2, "threads of the report")
    assert sum(row["calls"] for row in read_report("ops", recording)["ops"]), "no operators"
    tids = {tid for _, tid in chrome_named(exported(recording, "t.json", "--format", "chrome"), "end of a step")}
    expect_equal(len(tids), n, "threads in Chrome's JSON")


main()
