#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The session-wide peak: the moment at which all processes together hold most. Processes take
turns, so that each one's part is defined."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402

# Each line: a process (0: the first) and by how many bytes its memory grows, or shrinks by what it got then.
SCRIPT = pythons.SOURCES / "turns.py"
HOLD = "hold"


def record_turns(turns, how):
    result, output = record([sys.executable, SCRIPT, how, json.dumps(turns)])
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    return output, json.loads(result.stdout)


def held(report):
    """Bytes that the script allocated, by pid."""
    sums = {}
    for entry in entries_through(report["holders"], HOLD):
        # ctypes allocates a little on the way.
        if entry["bytes"] >= 1000000:
            sums[entry["pid"]] = sums.get(entry["pid"], 0) + entry["bytes"]
    return sums


def check_turns(turns, at_peak, how):
    output, pids = record_turns(turns, how)
    together = peak(output)
    check_counts(together["events"])
    expect_equal((together["of"], together["pid"]), ("session", None), "what it is of")
    expect_equal(held(together), {pids[who]: n for who, n in at_peak.items()}, "held at the peak of all")
    expect_equal(total(together["holders"]), together["peak_bytes"], "sum of the holders")
    expect_equal(total(together["holders"], "blocks"), together["peak_blocks"], "blocks of the holders")
    for who, pid in enumerate(pids):
        alone = peak(output, "--pid", str(pid))
        expect_equal((alone["of"], alone["pid"]), ("process", pid), "what it is of")
        expect_equal(held(alone), {pid: highest(turns, who)}, f"held by process {who} at its own peak")
    limit = together["peak_bytes"]
    torsh("check", output, "--max-peak", str(limit))
    torsh("check", output, "--max-peak", str(limit - 1), expect=1)
    page = read_report("report", output)["peak"]
    expect_equal((page["of"], page["peak_bytes"], page["peak_blocks"], page["at_ns"]),
                 ("session", limit, together["peak_blocks"], together["at_ns"]), "the page's peak")
    folded = torsh("export", output, "--format", "folded", "--what", "peak")
    expect_equal(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), limit, "bytes exported")


def highest(turns, who):
    sizes = [0]
    for process, change in turns:
        if process == who:
            sizes.append(sizes[-1] + change)
    return max(sizes)


MB = 1000000
# The first process is highest alone, then lower than both together.
TOGETHER = [[0, 9 * MB], [0, -9 * MB], [1, 5 * MB], [0, 6 * MB], [1, -5 * MB], [0, 4 * MB]]
# Three processes; the first one's own peak is not the moment.
THREE = [[0, 8 * MB], [1, 3 * MB], [0, -5 * MB], [2, 7 * MB], [1, 2 * MB], [0, 4 * MB], [1, -5 * MB], [0, 4 * MB]]
# What a process had is gone when it has ended.
ENDED = [[0, 2 * MB], [1, 7 * MB], ["end", 1], [0, 6 * MB], [2, 3 * MB]]


@case
def the_peak_of_two_forked_processes():
    check_turns(TOGETHER, {0: 6 * MB, 1: 5 * MB}, "fork")


@case
def the_peak_of_two_spawned_processes():
    check_turns(TOGETHER, {0: 6 * MB, 1: 5 * MB}, "spawn")


@case
def the_peak_of_three_forked_processes():
    check_turns(THREE, {0: 7 * MB, 1: 5 * MB, 2: 7 * MB}, "fork")


@case
def what_ended_counts_no_more():
    check_turns(ENDED, {0: 8 * MB, 2: 3 * MB}, "fork")


@case
def a_program_that_another_became_begins_with_nothing():
    _, output = record(["sh", "-c", f"exec sh -c 'exec {PROGRAMS / 'operators'}'"])
    report = peak(output)
    expect_equal([process["end"] for process in report["processes"]][:2], ["exec", "exec"], "ends")
    expect_equal(report["peak_bytes"], max(process["peak_bytes"] for process in report["processes"]),
                 "bytes of the highest of them")


@case
def one_process_is_the_session():
    _, output = record([PROGRAMS / "operators"])
    report = peak(output)
    expect_equal((report["of"], report["pid"]), ("process", report["processes"][0]["pid"]), "what it is of")
    expect_equal(report["peak_bytes"], report["processes"][0]["peak_bytes"], "its peak")


main()
