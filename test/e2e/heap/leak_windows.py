#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Leaks of a window of time, against the list that the program prints of what it lost where: each window has exactly these
blocks, also those right at its edges and those of stacks that allocate in and out of it.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from timeline import timeline  # noqa: E402

PROGRAM = PROGRAMS / "windows"
N_STEPS, FIRST = 6, 10

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


def expect_window(report, blocks, what):
    """These blocks leaked, and none is undecided."""
    expect_equal((report["leaked_bytes"], report["leaked_blocks"]), (sum(b.bytes for b in blocks), len(blocks)), what)
    expect_equal((report["undecided"]["bytes"], report["undecided"]["blocks"]), (0, 0), f"undecided: {what}")


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
        expect_window(in_window(output, *arguments), wanted, str(arguments))
    # Rates are of the time in the window.
    (leak,) = in_window(output, "--from", f"{at['done', 0]}ns", "--to", f"{at['done', 1]}ns")["leaks"]
    seconds = (at["done", 1] - at["done", 0]) / 1e9
    assert abs(leak["bytes_per_s"] * seconds - 13) < 1e-9 and abs(leak["blocks_per_s"] * seconds - 1) < 1e-9, leak
    (end,) = read_report("peak", output, "--at", "end")["moments"]
    (start,) = read_report("peak", output, "--at", "start")["moments"]
    for leak in everything["leaks"]:
        seconds = (end["at"]["at_ns"] - start["at"]["at_ns"]) / 1e9
        assert abs(leak["bytes_per_s"] * seconds / leak["bytes"] - 1) < 1e-9, leak
    report = in_window(output, "--since", "done")
    expect_equal((report["window"]["since"], report["window"]["marks"], report["alive_at"]), ("done", 2, "end"), "window")
    [process] = report["window"]["processes"]
    expect_equal(process["spans"], [[at["done", 0], None]], "span of a mark")


@case
def regions_are_all_their_spans():
    blocks, output = made()
    for region, name in (("train", "train"), ("train", "own/train"), ("eval", "eval")):
        wanted = [block for block in blocks if block.region == region]
        report = in_window(output, "--region", name)
        expect_window(report, wanted, f"region {name}")
        [process] = report["window"]["processes"]
        expect_equal(len(process["spans"]), N_STEPS, f"spans of {name}")
    both = in_window(output, "--region", "eval", "--steps", f"{FIRST + 2}-{FIRST + 3}")
    expect_window(both, [b for b in blocks if b.region == "eval" and b.step in (FIRST + 2, FIRST + 3)], "both")


@case
def steps_are_exact():
    blocks, output = made()
    for first, last in ((FIRST, FIRST), (FIRST + 2, FIRST + 4)):
        wanted = [block for block in blocks if first <= block.step <= last]
        report = in_window(output, "--steps", f"{first}-{last}")
        expect_window(report, wanted, f"steps {first}-{last}")
        expect_equal((report["window"]["first_step"], report["window"]["last_step"]), (first, last), "numbers of steps")


@case
def ages_are_exact():
    """In steps, and in times that are chosen between blocks whose order is known."""
    blocks, output = made()
    early = [block for block in blocks if block.bytes in (11, 12)]
    steps = [block for block in blocks if block.step >= FIRST]
    for n in (1, 2, N_STEPS):
        wanted = early + [block for block in steps if block.step < FIRST + N_STEPS - n]
        report = in_window(output, "--older-than", f"{n}steps")
        expect_window(report, wanted, f"older than {n} steps")
        expect_equal((report["window"]["older_than_steps"], report["window"]["older_than_ns"]), (n, None), "the window")
    (end,) = read_report("peak", output, "--at", "end")["moments"]
    marks = [event["at_ns"] for event in timeline(output) if event.get("name") == "done"]
    done = [block for block in blocks if block.bytes == 13]
    for mark, wanted in zip(marks, (early + steps, early + steps + done)):
        report = in_window(output, "--older-than", f"{end['at']['at_ns'] - mark}ns")
        expect_window(report, wanted, "older than a mark")
    expect_window(in_window(output, "--older-than", "3600s"), [], "older than the process")
    expect_window(in_window(output, "--older-than", "0ns"), blocks, "all blocks")
    both = in_window(output, "--older-than", "2steps", "--region", "eval")
    expect_window(both, [b for b in blocks if b.region == "eval" and b.step < FIRST + N_STEPS - 2], "with a region")
    assert ", from before the last 2 steps" in torsh("leaks", output, "--older-than", "2steps"), "the window"
    for wrong, words in (("soon", "takes an age"), ("0steps", "takes an age"), (f"{N_STEPS + 1}steps", None)):
        result = run([TORSH, "leaks", output, "--older-than", wrong])
        assert result.returncode == (2 if words else 0) and (words or "").encode() in result.stderr, (wrong, result.stderr)


@case
def the_screen_says_what_is_counted():
    _, output = made()
    text = torsh("leaks", output, "--region", "train")
    for words in ("lost in 9 blocks", "window: ", "6 spans of it", "region train", "alive when their process ended"):
        assert words in text, f"'{words}' is not in\n{text}"
    for wrong, words in ((("--region", "nobody"), 'no region "nobody"'), (("--since", "never"), 'no mark "never"'),
                         (("--steps", "99"), "no such steps"), (("--from", "2s", "--to", "1s"), "--from has to be before --to"),
                         (("--from", "soon"), "takes a time")):
        result = run([TORSH, "leaks", output, *wrong])
        assert result.returncode == 2 and words in result.stderr.decode(), (wrong, result.stderr)


@case
def what_a_recording_does_not_decide_is_apart():
    """Recordings from before the times of groups of blocks."""
    old = ROOT / "test/e2e/recordings/format-3/killed-folded.torsh"
    report = in_window(old, "--from", "10ms")
    expect_equal((report["leaked_blocks"], report["undecided"]["blocks"]), (400_000, 400_000), "blocks")
    text = torsh("leaks", old, "--from", "10ms")
    for words in ("undecided: up to ", "in up to 400,000 blocks", "UP TO"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
def of_many_blocks_of_a_stack_groups_are_decided():
    """All of the groups but those at the two edges."""
    result, output = record([PROGRAM, "0", "6000"])
    n = int(result.stdout.split()[-1])
    expect_equal(n, 2000, "blocks in the region")
    report = in_window(output, "--region", "bulk")
    counted, undecided = report["leaked_blocks"], report["undecided"]["blocks"]
    assert 0 < counted <= n <= counted + undecided, (counted, undecided)
    expect_equal(in_window(output, "--from", "0ns")["leaked_blocks"] - 4, 6000, "blocks in all")


@case
def growth_in_a_window_is_of_its_steps():
    """Each half of the steps loses on its own: neither grows over the whole run."""
    result, output = record([PROGRAMS / "growth_windows"])
    expect_equal(result.returncode, 0, "status")

    def grown(*arguments):
        report = read_report("leaks", output, "--growth", "--limit", "0", *arguments)
        expect_fits("leaks-growth", report)
        return report["steps"], {entry["stack"][0]["function"]: (entry["bytes_per_step"], entry["blocks_per_step"], entry["steps"])
                                 for entry in report["growth"]}

    expect_equal(grown(), (100, {}), "the whole run")
    # The last step of the run has not ended. The first quarter of the steps does not count.
    for arguments, steps, wanted in ((("--steps", "0-49"), 50, {"lose_first": (100, 1, 37)}),
                                     (("--steps", "50-99"), 49, {"lose_second": (200, 1, 36)}),
                                     (("--region", "first"), 50, {"lose_first": (100, 1, 37)}),
                                     (("--region", "second", "--steps", "60-79"), 20, {"lose_second": (200, 1, 15)}),
                                     (("--steps", "0-3"), 4, {})):
        expect_equal(grown(*arguments), (steps, wanted), f"growth with {arguments}")
    refused = run([TORSH, "leaks", ROOT / "test/e2e/recordings/format-3/killed-folded.torsh", "--growth", "--from", "1ms"])
    assert refused.returncode == 2 and b"older version" in refused.stderr, refused.stderr


main()
