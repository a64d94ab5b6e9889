#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Requests that a Python program tells of are steps, on every CPython of this machine; the program does the same without
the agent."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from timeline import timeline  # noqa: E402

PROGRAM = ROOT / "test/python/inference/requests.py"
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"}
PRINTED = """5 function Counts.
[1, 2] cancelled
caught
['http.response.start', 'http.response.body']
b'whole' b'in parts'
"""
# Steps of each name, and ranges of all of them: a coroutine has one for each turn, an answer in parts one for each and one for
# the end; what is inside of a request has its own, and is none.
STEPS = {"function": (1, 2), "again": (1, 1), "turns": (2, 6), "waits": (1, 2), "raises": (1, 3), "inside": (2, 2), "GET /asgi": (1, 1),
         "GET /whole": (1, 1), "GET /parts": (1, 4), "across": (1, 1)}


def tells(python):
    result = run([python.path, PROGRAM], {**clean_environment(), **ENVIRONMENT})
    expect_equal((result.returncode, result.stdout.decode()), (0, PRINTED), f"without the agent ({result.stderr.decode()})")
    result, output = record([python.path, PROGRAM], env=ENVIRONMENT)
    expect_equal((result.returncode, result.stdout.decode()), (0, PRINTED), f"with the agent ({result.stderr.decode()})")
    report = read_report("steps", output, "--limit", "0")
    expect_equal((report["rule"], report["certainty"]), ("requests", 1), "rule")
    steps = collections.Counter(step["name"] for step in report["steps"])
    expect_equal(steps, {name: n for name, (n, _) in STEPS.items()}, "steps")
    ranges = collections.Counter(event["name"] for event in timeline(output)
                                 if event["event"] in ("range_push", "range_start") and event["domain"] == "torsh.request")
    assert ranges.pop("inner") == 2, "once for each call of the function"
    assert ranges["again"] == 2, "entered twice"
    del ranges["again"]
    expect_equal(ranges, {name: n for name, (_, n) in STEPS.items() if name != "again"}, "ranges")


for python in pythons.find_all():
    add_case("tells_by_" + python.name, tells, python)

main()
