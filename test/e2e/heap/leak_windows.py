#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Leaks of a window of time, against the list that the program prints of what it lost where: each window has exactly these
blocks, and what the recording can't decide is never counted.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from timeline import timeline  # noqa: E402

PROGRAM = PROGRAMS / "windows"
N_STEPS, FIRST, ANYWHERE = 6, 10, 1000

Block = collections.namedtuple("Block", "step region bytes")


def made():
    """The program's list, and its recording."""
    text, output = once("windows", recorded)
    lines = (line.split() for line in text.splitlines())
    return [Block(int(step), region, int(size)) for step, region, size in lines], output


def recorded(folder):
    result, output = record([PROGRAM, N_STEPS], folder)
    expect_equal(result.returncode, 0, f"status ({result.stderr})")
    return result.stdout.decode(), str(output)


def in_window(output, *arguments):
    report = leaks(output, *arguments)
    expect_fits("leaks", report)
    expect_equal((total(report["leaks"]), total(report["leaks"], "blocks")),
                 (report["leaked_bytes"], report["leaked_blocks"]), f"sums with {arguments}")
    expect_equal((total(report["undecided"]["leaks"]), total(report["undecided"]["leaks"], "blocks")),
                 (report["undecided"]["bytes"], report["undecided"]["blocks"]), f"undecided sums with {arguments}")
    return report


def expect_window(report, blocks, is_anywhere_decided, what):
    """These blocks leaked, and the shared stack is undecided unless all of it is in or out."""
    anywhere = [block for block in blocks if block.bytes == ANYWHERE]
    sure = blocks if is_anywhere_decided else [block for block in blocks if block.bytes != ANYWHERE]
    expect_equal((report["leaked_bytes"], report["leaked_blocks"]), (sum(b.bytes for b in sure), len(sure)), what)
    expected = (0, 0) if is_anywhere_decided else (N_STEPS * ANYWHERE, N_STEPS)
    expect_equal((report["undecided"]["bytes"], report["undecided"]["blocks"]), expected, f"undecided: {what}")
    assert report["undecided"]["blocks"] >= (0 if is_anywhere_decided else len(anywhere))
    expect_equal({leak["stack"][1]["function"] for leak in report["undecided"]["leaks"]},
                 set() if is_anywhere_decided else {"lose_anywhere"}, f"who is undecided: {what}")


def begin_since(mark_ns):
    """A window since a mark begins two edges before it: WINDOW_EDGE_NS and the WINDOW_EDGE_PART of the time."""
    return mark_ns - 2 * (100_000 + mark_ns // 100_000)


@case
def marks_and_times_are_exact():
    blocks, output = made()
    events = timeline(output)
    at = {(event["name"], k): event["at_ns"] for name in ("ready", "done")
          for k, event in enumerate(event for event in events if event.get("name") == name)}
    everything = leaks(output)
    assert "window" not in everything and "undecided" not in everything
    expect_equal(everything["leaked_bytes"], sum(block.bytes for block in blocks), "all leaks")
    setup, ready, done, tail = ([block for block in blocks if block.bytes == size] for size in (11, 12, 13, 14))
    steps = [block for block in blocks if block.step >= FIRST]
    for arguments, wanted in (
            (("--since", "ready"), ready + steps + done + tail), (("--since", "done"), done + tail),
            (("--from", f"{at['done', 1]}ns"), tail), (("--to", f"{at['ready', 0]}ns"), setup),
            (("--from", f"{at['done', 0]}ns", "--to", f"{at['done', 1]}ns"), done),
            (("--since", "ready", "--to", f"{at['done', 0]}ns"), ready + steps), (("--from", "3600"), [])):
        expect_window(in_window(output, *arguments), wanted, True, str(arguments))
    report = in_window(output, "--since", "done")
    expect_equal((report["window"]["since"], report["window"]["marks"], report["alive_at"]), ("done", 2, "end"), "window")
    [process] = report["window"]["processes"]
    expect_equal(process["spans"], [[begin_since(at["done", 0]), None]], "span of a mark")


@case
def regions_are_all_their_spans():
    blocks, output = made()
    for region, name in (("train", "train"), ("train", "own/train"), ("eval", "eval")):
        wanted = [block for block in blocks if block.region == region]
        report = in_window(output, "--region", name)
        # The oldest and the youngest block of the shared stack are in and out of "train", and it is called by no "eval";
        # but that isn't in its two times.
        expect_window(report, wanted, False, f"region {name}")
        [process] = report["window"]["processes"]
        expect_equal(len(process["spans"]), N_STEPS, f"spans of {name}")
    both = in_window(output, "--region", "eval", "--steps", f"{FIRST + 2}-{FIRST + 3}")
    expect_window(both, [b for b in blocks if b.region == "eval" and b.step in (FIRST + 2, FIRST + 3)], False, "both")


@case
def steps_are_exact_where_stacks_differ():
    blocks, output = made()
    for first, last in ((FIRST, FIRST), (FIRST + 2, FIRST + 4)):
        wanted = [block for block in blocks if first <= block.step <= last]
        report = in_window(output, "--steps", f"{first}-{last}")
        expect_window(report, wanted, False, f"steps {first}-{last}")
        expect_equal((report["window"]["first_step"], report["window"]["last_step"]), (first, last), "numbers of steps")


@case
def the_screen_says_what_is_counted():
    _, output = made()
    text = torsh("leaks", output, "--region", "train")
    for words in ("leaked in 6 blocks", "window: ", "6 spans of it", "region train", "alive when their process ended",
                  "undecided: up to 5.86 KiB in up to 6 blocks", "UP TO"):
        assert words in text, f"'{words}' is not in\n{text}"
    for wrong, words in ((("--region", "nobody"), 'no region "nobody"'), (("--since", "never"), 'no mark "never"'),
                         (("--steps", "99"), "no such steps"), (("--from", "2s", "--to", "1s"), "--from has to be before --to"),
                         (("--growth", "--since", "ready"), "restricted"), (("--from", "soon"), "takes a time")):
        result = run([TORSH, "leaks", output, *wrong])
        assert result.returncode == 2 and words in result.stderr.decode(), (wrong, result.stderr)


main()
