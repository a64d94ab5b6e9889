#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What was live at a moment, and how old it was by then: between the bounds, against a replay of all events."""

import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

WEIGHTS = """import torsh
def make_weights():
    return [bytearray(300000) for _ in range(10)]
def keep(kept):
    kept.append(bytearray(100000))
def make_batch():
    return [bytearray(50000) for _ in range(4)]
weights = make_weights()
kept = []
for i in range(20):
    torsh.step(i)
    keep(kept)
    make_batch()
kept = weights = None
"""


@functools.cache
def phases():
    """A recording with all events, and these as (ns, address, bytes; 0: the block ends)."""
    _, output = record([PROGRAMS / "phases"], env={"TORSH_PROFILER_RECORD": "full"})
    changes = []
    for line in torsh("dump", output, "--only", "events").splitlines():
        event = json.loads(line)
        if event["event"] == "alloc":
            assert event["entry"] != 2, "a realloc"
            changes.append((event["at_ns"], event["address"], event["size"]))
        elif event["event"] == "free":
            changes.append((event["at_ns"], event["address"], 0))
    return output, changes


def old_at(changes, moment, age_ns):
    """
    (bytes, blocks) that are live at the moment and at least that old, as bounds: times of events are whole microseconds.
    The moment is the first one within its microsecond at which the heap has its sums.
    """
    at_us, live, bytes_now = moment["at_ns"] // 1000, {}, 0
    for i, (at_ns, address, size) in enumerate(changes):
        if at_ns // 1000 >= at_us and (bytes_now, len(live)) == (moment["bytes"], moment["blocks"]):
            break
        assert at_ns // 1000 <= at_us, f"no such moment: {moment}"
        bytes_now += size - live.pop(address, (0, 0))[1]
        if size:
            live[address] = at_ns, size
    expect_equal((bytes_now, len(live)), (moment["bytes"], moment["blocks"]), f"the heap at {moment}")

    def older(than_ns):
        old = [size for at_ns, size in live.values() if at_ns <= moment["at_ns"] - than_ns]
        return sum(old), len(old)

    return older(age_ns + 1000), older(age_ns - 1000)


def aged(output, *arguments):
    report = read_report("peak", output, "--limit", "0", *arguments)
    expect_fits("peak-moments", report)
    for part in (report, report["undecided"]):
        expect_equal((total(part["holders"]), total(part["holders"], "blocks")), (part["bytes"], part["blocks"]), "sums")
    return report


@case
def ages_are_within_their_bounds():
    output, changes = phases()
    n_decided = 0
    moments = [("peak", ()), ("end", ("--at", "end")), *((f"phase {i}", ("--mark", f"phase {i}")) for i in range(1, 6))]
    for name, chosen in moments:
        for age_ms in (0, 1, 5, 20, 50, 1000):
            report = aged(output, *chosen, "--alive-for", f"{age_ms}ms")
            (process,) = report["moments"]
            least, most = old_at(changes, process["at"], age_ms * 1_000_000)
            for kind, low, high in zip(("bytes", "blocks"), least, most):
                assert report[kind] <= high and low <= report[kind] + report["undecided"][kind], (name, age_ms, kind, low, high, report[kind])
            n_decided += not report["undecided"]["blocks"]
            expect_equal((report["alive_for"]["age_ns"], report["alive_for"]["steps"]), (age_ms * 1_000_000, None), "the age")
    # What is older than the process is nothing, and of each moment that is sure; so is that all is at least new.
    assert n_decided >= len(moments), n_decided
    everything = aged(output, "--alive-for", "0ns")
    expect_equal(everything["bytes"] + everything["undecided"]["bytes"], peak(output)["peak_bytes"], "all of the peak")


@case
def at_the_end_all_is_decided():
    output, changes = phases()
    for age_ms in (1, 10, 40):
        report = aged(output, "--at", "end", "--alive-for", f"{age_ms}ms")
        (process,) = report["moments"]
        least, most = old_at(changes, process["at"], age_ms * 1_000_000)
        left = report["undecided"]["blocks"]
        assert left * 20 <= most[1], f"{left} of {most[1]} blocks are undecided"
        assert left or least <= (report["bytes"], report["blocks"]) <= most, (age_ms, least, report["bytes"], most)


@case
def weights_are_older_than_batches():
    """In steps: what came before all of them is old, what the last ones made is not."""
    result, output = record([sys.executable, "-c", WEIGHTS], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")

    def of(part, function):
        return total(entries_through(part["holders"], function))

    report = aged(output, "--alive-for", "5steps")
    expect_equal((report["alive_for"]["age_ns"], report["alive_for"]["steps"]), (None, 5), "the age")
    assert report["moments"][0]["at"]["kind"] == "peak", report["moments"]
    # Of the last of 20 steps: 15 blocks are from before the last five.
    for function, size in (("make_weights", 10 * 300001), ("keep", 15 * 100001)):
        assert 0 <= of(report, function) - size < 4096 and of(report["undecided"], function) < 4096, (function, of(report, function))
    assert of(report, "make_batch") < 4096, of(report, "make_batch")
    text = torsh("peak", output, "--alive-for", "5steps")
    assert ", from before the last 5 steps" in text, text


@case
def a_change_has_no_age():
    output, _ = phases()
    for arguments, words in ((("--since", "start"), "which have no age"), (("--from", "0"), None)):
        result = run([TORSH, "peak", output, "--alive-for", "1ms", *arguments])
        assert result.returncode == (2 if words else 0) and (words or "").encode() in result.stderr, (arguments, result.stderr)
    result = run([TORSH, "peak", output, "--alive-for", "2steps"])
    assert result.returncode == 2 and b"no steps that could be counted" in result.stderr, result.stderr


main()
