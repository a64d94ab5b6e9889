#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh peak at other moments than the peak: exact at marks, the nearest one elsewhere, and what changed between two."""

import collections
import functools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

PHASES = 6


@functools.cache
def phases():
    """The recording, and for each mark what each function had then: (bytes, blocks)."""
    result, output = record([PROGRAMS / "phases"])
    expect_equal(result.returncode, 0, "status")
    truth = collections.defaultdict(dict)
    for line in result.stdout.decode().splitlines():
        mark, function, size, blocks = line.split()
        truth[mark.replace("phase", "phase ")][function] = int(size), int(blocks)
    expect_equal(len(truth), PHASES, "marks")
    return output, truth


def moments(*arguments, output=None):
    report = read_report("peak", output or phases()[0], "--limit", "0", *arguments)
    expect_fits("peak-moments", report)
    return report


def by_keeper(report, *lists):
    """(bytes, blocks) of each function that keeps blocks."""
    found = collections.Counter(), collections.Counter()
    for name in lists or ("holders",):
        for site in report[name]:
            for function in functions(site):
                if function.startswith("keep_"):
                    found[0][function] += site["bytes"]
                    found[1][function] += site["blocks"]
    return {name: (found[0][name], found[1][name]) for name in {*found[0], *found[1]} if found[0][name] or found[1][name]}


def known(truth):
    return {name: amount for name, amount in truth.items() if amount != (0, 0)}


@case
def a_mark_shows_what_was_live_at_it():
    for mark, truth in phases()[1].items():
        report = moments("--mark", mark)
        expect_equal(by_keeper(report), known(truth), f"live blocks at {mark}")
        (shown,) = report["moments"]
        expect_equal((shown["at"]["kind"], shown["at"]["mark"]), ("mark", mark), "the moment")
        expect_equal(report["bytes"], shown["at"]["bytes"], "bytes of all sites, and of the moment")
        expect_equal(report["bytes"], sum(site["bytes"] for site in report["holders"]), "bytes of the sites")


@case
def two_moments_are_subtracted():
    _, truth = phases()
    for first, second in ((0, 1), (1, 4), (5, 2)):
        before, after = truth[f"phase {first}"], truth[f"phase {second}"]
        report = moments("--since", f"phase {first}", "--to", f"phase {second}")
        wanted = {name: tuple(y - x for x, y in zip(before[name], after[name])) for name in before}
        expect_equal(by_keeper(report, "holders", "given_back"), known(wanted), "what changed")
        expect_equal(report["bytes"], sum(site["bytes"] for site in report["holders"] + report["given_back"]), "the sum of the change")


@case
def the_moment_nearest_to_a_time_is_shown():
    marks = [moments("--mark", f"phase {i}")["moments"][0]["at"] for i in range(PHASES)]
    for mark in marks:
        at = moments("--at", f"{mark['at_ns'] + 1}ns")["moments"][0]["at"]
        assert at["distance_ns"] == abs(at["at_ns"] - mark["at_ns"] - 1) <= 1, at
    assert moments("--mark", "phase 0")["moments"][0]["kept_moments"] > PHASES, "there are no regular moments"


@case
def the_highest_moment_of_a_window_is_shown():
    output, _ = phases()
    highest = peak(output)
    whole = moments("--from", "0")
    expect_equal((whole["bytes"], whole["window"]["has_peak"]), (highest["peak_bytes"], True), "the highest moment of all")
    report = moments("--from", "phase 0", "--to", "phase 2")
    window = report["window"]
    assert report["bytes"] >= moments("--mark", "phase 0")["bytes"], "the window's begin is higher"
    assert report["moments"][0]["at"]["at_ns"] in range(window["from_ns"], window["to_ns"]), window


@case
def the_start_the_peak_and_the_end_are_moments():
    output, _ = phases()
    highest = peak(output)
    expect_equal(moments("--at", "start")["bytes"], 0, "bytes at the start")
    expect_equal(moments("--at", "peak")["bytes"], highest["peak_bytes"], "bytes at the peak")
    alive = leaks(output)["alive"]
    expect_equal(moments("--at", "end")["bytes"], alive["bytes"], "bytes at the end")
    expect_equal(moments("--since", "start")["bytes"], alive["bytes"], "what all of the run left")


@case
def people_read_which_moment_is_shown():
    output, _ = phases()
    text = torsh("peak", output, "--mark", "phase 1")
    assert 'the mark "phase 1"' in text and "were live" in text, text
    text = torsh("peak", output, "--at", "100s")
    assert "earlier than requested" in text, text
    text = torsh("peak", output, "--since", "phase 4")
    assert "the heap changed by" in text and 'at the mark "phase 4"' in text, text


@case
def a_moment_that_nobody_marked_is_refused():
    result = run([TORSH, "peak", phases()[0], "--mark", "nowhere"])
    expect_equal(result.returncode, 2, "status")
    assert b'"nowhere"' in result.stderr, result.stderr


@case
def a_programs_windows_have_their_highest_moment():
    """Exact by function and in all, in a snapshot and in the recording: windows overlap, two threads allocate."""
    folder = scratch("windows")
    result, output = record([PROGRAMS / "window_peaks", folder])
    expect_equal(result.returncode, 0, f"status ({result.stderr})")
    truth, peaks = collections.defaultdict(dict), {}
    for line in result.stdout.decode().splitlines():
        window, function, *numbers = line.split()
        truth[window][function] = int(numbers[0]), int(numbers[1])
        peaks[window] = int(numbers[2])
    for recording in (folder / "now.torsh", output):
        for window, keepers in truth.items():
            report = moments("--region", window, output=recording)
            expect_equal(by_keeper(report), known(keepers), f"what was live in {window}")
            expect_equal((report["bytes"], sum(site["bytes"] for site in report["holders"])), (peaks[window],) * 2, f"peak of {window}")
    assert "the highest moment of a window of the program" in torsh("peak", output, "--region", "w0"), "the kind of the moment"


@case
def steps_end_at_moments():
    script = "import torsh\nkept = []\nfor i in range(20):\n    torsh.step(i)\n    kept.append(bytearray(100000))\n"
    result, output = record([sys.executable, "-c", script], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    sizes = [moments("--step", n, output=output) for n in (3, 4, 12)]
    expect_equal([one["moments"][0]["at"]["step"] for one in sizes], [3, 4, 12], "steps")
    for steps, (before, after) in ((1, sizes[:2]), (8, sizes[1:])):
        assert 0 <= after["bytes"] - before["bytes"] - steps * 100001 < 4096 * steps, (before["bytes"], after["bytes"])
    report = moments("--steps", "5-6", output=output)
    assert report["bytes"] >= sizes[1]["bytes"], "steps 5 and 6 had less than the end of step 4"


@case
def recordings_from_before_moments_have_the_start_the_peak_and_the_end():
    old = ROOT / "test/e2e/recordings/format-1/entries-folded.torsh"
    report = moments("--at", "peak", output=old)
    expect_equal((report["bytes"], report["moments"][0]["kept_moments"]), (peak(old)["peak_bytes"], 0), "the peak of an old recording")
    assert "no moments were kept" in torsh("peak", old, "--at", "1ms"), "the missing others are not reported"


@case
def a_killed_writers_moments_are_there():
    """All but the last bytes: what a writer that was killed leaves."""
    output, truth = phases()
    (whole,) = recordings(output)
    cut = scratch("cut") / "cut.torsh"
    data = whole.read_bytes()
    n_known = set()
    for part in (0.3, 0.6, 0.9, 0.99):
        cut.write_bytes(data[:int(len(data) * part)])
        result = run([TORSH, "peak", cut, "--json", "--limit", "0", "--mark", "phase 0"])
        n_known.add(result.returncode)
        if result.returncode == 0:
            report = json.loads(result.stdout)
            expect_equal(by_keeper(report), known(truth["phase 0"]), f"live blocks at phase 0 in {part} of the file")


main()
