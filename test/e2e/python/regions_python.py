#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A Python program's annotations through torsh.py are in the recording, on every CPython of this
machine; and torsh.py reads it."""

import collections
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from timeline import nested, timeline  # noqa: E402

FOLDER = ROOT / "tools/python"
PROGRAM = pythons.SOURCES / "regions.py"
ENVIRONMENT = {"PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
SAYS = "3 add Adds. 5 wait\n"


def annotates(python):
    result = run([python.path, PROGRAM], {**clean_environment(), **ENVIRONMENT})
    expect_equal((result.returncode, result.stdout.decode()), (0, "alone []\n" + SAYS), f"without the agent ({result.stderr})")
    result, output = record([python.path, PROGRAM], env=ENVIRONMENT)
    expect_equal((result.returncode, result.stdout.decode()), (0, "there []\n" + SAYS), f"with the agent ({result.stderr})")
    events = timeline(output)
    main = events[0]["thread"]
    expect_equal(nested(events, main), [(0, "outer"), (1, "outer"), (0, "fails"), (0, "pushed")], "ranges")
    expect_equal(nested(events, main, "functions"), [(0, "decorated")], "ranges of a domain")
    outer = next(event for event in events if event.get("name") == "outer")
    expect_equal((outer["category"], outer["color"], outer["payload"]), ("kind", 0xff112233, 2.5), "attributes")
    expect_equal([(event["name"], event["payload"]) for event in events if event["event"] == "mark"],
                 [("whole", -7), ("large", 2**64 - 1), ("caught \u00e4?", None)], "marks")
    expect_equal([(event["name"], event["domain"], event["kind"], event["payload"]) for event in events
                  if event["event"] == "value"],
                 [("loss", None, 0, 1.0), ("items", "store", 1, 4.0), ("length", None, 2, 17.5)], "values")
    expect_equal([event["number"] for event in events if event["event"] == "step"], [3, 2**64 - 1], "steps")
    starts = {event["name"]: event for event in events if event["event"] == "range_start"}
    ends = {event["range"]: event for event in events if event["event"] == "range_end"}
    expect_equal(sorted(starts), ["across", "coroutine"], "ranges that were started")
    expect_equal(ends[starts["across"]["range"]]["thread"] != main, True, "ended by another thread")
    expect_equal(ends[starts["coroutine"]["range"]]["thread"], main, "thread that the coroutine ran on")
    threads = collections.Counter(event["thread"] for event in events if event["event"] == "range_push")
    rounds = [thread for thread, n in threads.items() if n == 600]
    expect_equal(len(rounds), 4, f"threads with all ranges ({threads})")
    for thread in rounds:
        ranges = nested(events, thread)
        expect_equal(ranges, [(0, ranges[0][1]), (1, "inner")] * 300, "ranges of a thread")


for python in pythons.find_all():
    add_case("annotates_by_" + python.name, annotates, python)


@case
def recordings_are_read_back():
    result, output = record([PROGRAMS / "entries"])
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(FOLDER))
    os.environ["TORSH"] = str(TORSH)
    import torsh as module

    recording = module.Recording(output)
    report = recording.read("leaks", "--no-lines", limit=2, min_bytes="5K")
    expect_equal(report["leaks"], leaks(output, "--no-lines", "--min-bytes", "5K")["leaks"][:2], "leaks")
    assert any("session" in row for row in recording.events())
    try:
        module.Recording("/nonexistent").read("leaks")
    except module.RecordingError as error:
        assert "nonexistent" in str(error), error
    else:
        raise AssertionError("what is not there was read")


main()
