#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a person sees first of a Python program with a leak: the leak, in few lines, without the agent's own counters."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SYNTHETIC = BUILD / "test/synthetic"
LEAKING = """
import ctypes, decimal, json, unittest
malloc = ctypes.CDLL(None).malloc
def keep(n):
    malloc(n)
for i in range(50):
    keep(10000)
"""


def leaking():
    """A recording of it, made once for all cases."""
    def make(folder):
        (folder / "leaking.py").write_text(LEAKING)
        result, _ = record([sys.executable, folder / "leaking.py"], folder / "out")
        expect_equal(result.returncode, 0, result.stderr.decode())
        return str(folder / "out")
    return pathlib.Path(once("first_screens", make))


@case
def the_leak_is_in_the_first_lines_of_few():
    lines = torsh("leaks", leaking()).splitlines()
    assert len(lines) <= 40, f"{len(lines)} lines"
    assert lines[0].startswith("488 KiB lost in 50 blocks, at 1 line of yours"), lines[0]
    assert "leaking.py:5 keep" in lines[3], lines[:4]


@case
def what_is_suppressed_is_one_line():
    text = torsh("leaks", leaking())
    expect_equal([line for line in text.splitlines() if "suppressed:" in line or "(built in)" in line], [], "rules")
    expect_equal(len([line for line in text.splitlines() if line.startswith("Kept")]), 1, "lines about what is kept")
    assert "(built in)" in torsh("leaks", leaking(), "--kept"), "--kept lists no rules"


@case
def the_agents_own_counters_are_in_json_only():
    counters = [name for name in leaks(leaking())["counters"] if "_" in name]
    assert counters, "no counters"
    for command in ("report", "leaks", "peak"):
        text = torsh(command, leaking())
        expect_equal([name for name in counters if re.search(rf"\\b{re.escape(name)}\\b", text)], [], f"counters in torsh {command}")
        assert "calibrate" not in text and "<torsh>" not in text, f"the agent's frames in torsh {command}"


@case
def steps_begin_with_the_slowest():
    recording = scratch("recording") / "synthetic.torsh"
    expect_equal(run([SYNTHETIC, recording, "4000", "2", "1"]).returncode, 0, "status of synthetic")
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    text = torsh("steps", recording)
    slowest = max(steps, key=lambda step: step["duration_ns"])["index"]
    assert len(steps) > 10, f"{len(steps)} steps"
    rows = text[text.index("the 10 slowest"):].splitlines()[2:]
    expect_equal((len(rows), int(rows[0].split()[0])), (10, slowest), "rows, and the first of them")


main()
