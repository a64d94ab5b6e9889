#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The heap's highest sum in a window, against a replay of all events; and what is not exact is not called so."""

import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

STEPS = """import torsh
def work(n):
    big = bytearray(100000 + 1000 * n)
kept = []
for i in range(20):
    torsh.step(i)
    work(i * 7 % 20)
    kept.append(bytearray(1000))
"""


@functools.cache
def phases():
    """The recording, and the states of the heap: [(microsecond, bytes, blocks) after each event]."""
    _, output = record([PROGRAMS / "phases"], env={"TORSH_PROFILER_RECORD": "full"})
    live, states, size = {}, [(0, 0, 0)], 0
    for line in torsh("dump", output, "--only", "events").splitlines():
        event = json.loads(line)
        if event["event"] not in ("alloc", "free"):
            continue
        size -= live.pop(event["address"], 0)
        if event["event"] == "alloc":
            live[event["address"]] = event["size"]
            size += event["size"]
        states.append((event["at_ns"] // 1000, size, len(live)))
    return output, states


def window(output, *arguments):
    report = read_report("peak", output, "--limit", "0", *arguments)
    expect_fits("peak-moments", report)
    return report


def place_of(states, moment):
    """The index of the last state before the moment, whose microsecond and sums are known."""
    at_us = moment["at_ns"] // 1000
    return next(i for i, (us, size, blocks) in enumerate(states)
                if us <= at_us and (i + 1 == len(states) or states[i + 1][0] >= at_us)
                and (size, blocks) == (moment["bytes"], moment["blocks"]))


@case
def between_two_marks_the_highest_sum_is_exact():
    output, states = phases()
    marks = [place_of(states, window(output, "--mark", f"phase {i}")["moments"][0]["at"]) for i in range(6)]
    for first, last in ((0, 1), (1, 2), (2, 3), (0, 3), (1, 5), (3, 4)):
        report = window(output, "--from", f"phase {first}", "--to", f"phase {last}")
        highest = max(size for _, size, _ in states[marks[first]:marks[last] + 1])
        expect_equal((report["window"]["highest_bytes"], report["window"]["is_exact"]), (highest, True), f"phases {first} to {last}")
        assert report["bytes"] <= highest and report["window"]["from_ns"] <= report["window"]["highest_ns"] < report["window"]["to_ns"], report["window"]
    text = torsh("peak", output, "--from", "phase 1", "--to", "phase 2")
    assert "the heap's highest in this window was exactly" in text or "exact: the heap was never larger" in text, text


@case
def between_any_two_times_it_is_a_bound_or_exact():
    output, states = phases()
    begin, end = window(output, "--at", "start")["moments"][0]["at"]["at_ns"], window(output, "--at", "end")["moments"][0]["at"]["at_ns"]
    n_exact = 0
    for i in range(1, 12):
        for k in range(i + 1, 13):
            from_ns, to_ns = (begin + (end - begin) * part // 13 // 1000 * 1000 for part in (i, k))
            result = run([TORSH, "peak", output, "--json", "--limit", "0", "--from", f"{from_ns}ns", "--to", f"{to_ns}ns"])
            if result.returncode:
                assert b"no moment was kept in this window" in result.stderr, result.stderr
                continue
            report = json.loads(result.stdout)["window"]
            inside = [size for us, size, _ in states if from_ns // 1000 < us < to_ns // 1000]
            around = [size for us, size, _ in states if us <= to_ns // 1000 and us >= from_ns // 1000]
            before = [size for us, size, _ in states if us < from_ns // 1000][-1:]
            assert report["highest_bytes"] <= max(around + before), (i, k, report, max(around))
            if report["is_exact"]:
                n_exact += 1
                assert max(inside, default=0) <= report["highest_bytes"], (i, k, report, max(inside))
    assert n_exact, "none is exact"
    whole = window(output, "--from", "0")
    expect_equal((whole["window"]["highest_bytes"], whole["window"]["is_exact"]), (peak(output)["peak_bytes"], True), "the whole run")


@case
def steps_have_their_highest_sums():
    result, output = record([sys.executable, "-c", STEPS], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    for step in (3, 10, 15):
        report = window(output, "--steps", f"{step}-{step}")
        low = window(output, "--step", str(step))["bytes"]
        assert report["window"]["is_exact"], report["window"]
        # The work of the step is 100,000 bytes and 1,000 for each of its number.
        assert abs(report["window"]["highest_bytes"] - low - 100_000 - 1000 * (step * 7 % 20)) < 8192, (step, report["window"], low)


@case
def recordings_from_before_do_not_know_it():
    old = ROOT / "test/e2e/recordings/format-1/entries-folded.torsh"
    report = window(old, "--from", "0")["window"]
    expect_equal((report["highest_bytes"], report["is_exact"], report["has_peak"]), (None, False, True), "an old recording")


main()
