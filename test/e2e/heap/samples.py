#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""TORSH_PROFILER_HEAP=sampled: what stays exact, and how good the estimates are."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = str(PROGRAMS / "samples")
N_RUNS = 200
TRUTH = {"keep_small": (20000 * 64, 20000), "keep_medium": (300 * 8000, 300), "keep_large": (100 * 40000, 100)}


def recorded(command, heap, **env):
    result, output = record(command, env={"TORSH_PROFILER_HEAP": heap, **env})
    return result, output


def heap_of(output):
    heap = read_report("report", output)["heap"]
    return {name: heap[name] for name in ("allocations", "frees", "allocated_bytes", "sizes")}


@case
def counts_are_exact_in_threads_and_forks():
    _, exact = recorded([PROGRAM, "counts"], "exact")
    _, sampled = recorded([PROGRAM, "counts"], "sampled:16K")
    expect_equal(heap_of(sampled), heap_of(exact), "the heap's counts")
    threads = [sorted((t["allocations"], t["allocated_bytes"], t["frees"]) for t in read_report("report", o)["threads"])
               for o in (sampled, exact)]
    expect_equal(threads[0], threads[1], "the threads' counts")
    expect_equal(read_report("report", sampled)["heap"]["temporary"], None, "temporary blocks")


@case
def a_killed_process_loses_no_counts():
    _, exact = recorded([PROGRAM, "killed"], "exact")
    _, sampled = recorded([PROGRAM, "killed"], "sampled")
    expect_equal(heap_of(sampled), heap_of(exact), "the heap's counts")


@case
def no_free_is_taken_for_a_samples():
    _, output = recorded([PROGRAM, "counts"], "sampled:1K")
    events = read_report("report", output)["events"]
    expect_equal((events["unknown_frees"], events["implicit_frees"], events["dropped"]), (0, 0, 0), "frees")


@case
def intervals_hold_in_95_of_100_runs():
    script = f"i=0; while [ $((i += 1)) -le {N_RUNS} ]; do TORSH_PROFILER_HEAP_SEED=$i {PROGRAM} leaks; done"
    _, output = recorded(["sh", "-c", script], "sampled:32K")
    report = leaks(output)
    found = {}
    for leak in report["leaks"]:
        name = next((f["function"] for f in leak["stack"] if f.get("function") in TRUTH), None)
        if name:
            expect_equal(leak["interval"]["sampled_every"], 32 << 10, "the rate")
            found[leak["pid"], name] = leak
    expect_equal(len({pid for pid, _ in found}), N_RUNS, "runs")
    for index, figure in enumerate(("bytes", "blocks")):
        held = 0
        for (_, name), leak in found.items():
            low, high = leak["interval"][figure]
            held += low <= TRUTH[name][index] <= high
        # A site without a sample is not there: no interval holds.
        share = held / (len(TRUTH) * N_RUNS)
        assert 0.93 <= share <= 0.97, f"{figure}: {share}"
    for name, (size, _) in TRUTH.items():
        mean = sum(leak["bytes"] for (_, of), leak in found.items() if of == name) / N_RUNS
        assert abs(mean / size - 1) < 0.1, f"{name}: {mean} of {size}"


@case
def reports_say_that_figures_are_estimates():
    _, output = recorded([PROGRAM, "leaks"], "sampled:32K", TORSH_PROFILER_HEAP_SEED="7")
    for command in ("report", "leaks", "peak"):
        text = torsh(command, output, *(["-v"] if command == "report" else []))
        assert "sampled, one in 32.0 KiB" in text, f"{command}: {text}"
        assert "95 %: " in text, f"{command}: {text}"
    assert "sampled, one in 32.0 KiB" in torsh("report", output)
    text = torsh("check", output, "--max-leak", "100M", "--max-peak", "100M")
    assert "sampled, one block in 32.0 KiB" in text and text.count("(estimated, 95 %: ") == 2, text
    checked = read_report("check", output, "--max-leak", "100M")
    expect_equal(checked["sampled_every"], 32 << 10, "the rate")
    low, high = checked["checks"][0]["interval"]
    assert low < checked["checks"][0]["value"] < high, checked
    assert "the heap of AFTER was sampled, one block in 32.0 KiB" in torsh("diff", output, output)


@case
def exact_recordings_have_no_such_words():
    _, output = recorded([PROGRAM, "leaks"], "exact")
    for command in (("report",), ("check", "--max-leak", "100M"), ("diff", output)):
        text = torsh(command[0], output, *command[1:])
        assert "was sampled" not in text and "were sampled" not in text and "estimated" not in text, f"{command}: {text}"


main()
