#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Who held the heap at other peaks than its own: when most was resident, and when the heap and all devices had most."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target, snapshot  # noqa: E402
from schema import expect_fits  # noqa: E402
from device_memory import program  # noqa: E402
from simcuda import record_simulated  # noqa: E402

MIB = 1 << 20
OLD = ROOT / "test/e2e/recordings/format-1/entries-folded.torsh"


def at(output, moment):
    report = read_report("peak", output, "--limit", "0", "--at", moment)
    expect_fits("peak-moments", report)
    (process,) = report["moments"]
    return report, process


def held(report, name):
    return total(entries_through(report["holders"], name))


def resident_until(target, least):
    """Let the program go on until the writer has sampled so much."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        target.send("e")
        result = run([TORSH, "peak", snapshot(target.pid), "--json", "--limit", "0", "--at", "rss-peak"])
        if result.returncode == 0:
            report = json.loads(result.stdout)
            if report["moments"][0]["at"]["resident_bytes"] >= least:
                return report
    raise AssertionError(f"no sample of {least} bytes within {TIMEOUT_S} s")


@case
def who_held_the_heap_when_most_was_resident():
    with Target([PROGRAMS / "written_pages"]) as target:
        target.send("e")
        target.send("t")
        report = resident_until(target, 64 * MIB)
        expect_equal(held(report, "write_big"), 64 * MIB, "what was written, in a snapshot")
        target.send("fu")
        target.send("e")
        target.end()
    output = target.output
    highest = peak(output)
    expect_equal((held(highest, "write_big"), held(highest, "reserve_big")), (0, 256 * MIB), "at the peak of the heap")
    report, process = at(output, "rss-peak")
    expect_equal((held(report, "write_big"), held(report, "reserve_big")), (64 * MIB, 0), "when most was resident")
    moment = process["at"]
    expect_equal((moment["kind"], moment["bytes"]), ("rss", report["bytes"]), "the moment")
    assert 64 * MIB <= moment["resident_bytes"] <= process["rss_peak_bytes"] == highest["rss_peak_bytes"], process
    assert moment["at_ns"] < highest["at_ns"], "the heap's peak came first"
    text = torsh("peak", output, "--at", "rss-peak")
    for words in ("the highest sample of the resident set, ", "the highest resident set between samples, too: ", "write_big"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
def of_many_samples_only_the_highest_is_kept():
    output = None
    with Target([PROGRAMS / "written_pages"]) as target:
        for i in range(3):
            target.send("t")
            resident_until(target, (i + 1) * 64 * MIB)
        target.end()
        output = target.output
    report, process = at(output, "rss-peak")
    expect_equal(held(report, "write_big"), 3 * 64 * MIB, "when most was resident")
    assert process["at"]["resident_bytes"] >= 3 * 64 * MIB, process


@case
def who_held_the_heap_at_the_joint_peak_of_it_and_simulated_devices():
    """Readers compute the joint peak from all of the device's changes, the writer the heap's holders: both are at one moment."""
    for seed in (4, 5, 6):
        output, _ = record_simulated([program(), "random", seed])
        report, process = at(output, "joint-peak")
        joint = read_report("peak", output, "--device", "all")["joint"]
        expect_equal(process["joint"], joint, "the joint peak")
        expect_equal((process["at"]["at_ns"], process["at"]["distance_ns"], process["is_exact"]), (joint["at_ns"], 0, True), "the moment")
        expect_equal((report["bytes"], total(report["holders"])), (joint["heap_bytes"],) * 2, "the heap's part")
        expect_equal(joint["bytes"], joint["heap_bytes"] + sum(device["bytes"] for device in joint["devices"]), "all parts")
    assert ": exactly this moment" in torsh("peak", output, "--at", "joint-peak"), "the text"
    # Also of kinds of memory that the writer does not follow: then the report does not call it exact.
    output, _ = record_simulated([program(), "ways"])
    report, process = at(output, "joint-peak")
    expect_equal(report["bytes"], total(report["holders"]), "sums")
    assert process["is_exact"] == (process["at"]["distance_ns"] == 0 and report["bytes"] == process["joint"]["heap_bytes"]), process


@case
def what_was_not_sampled_is_refused():
    for moment, words in (("rss-peak", "the resident set was not sampled"), ("joint-peak", "no memory of devices was recorded")):
        result = run([TORSH, "peak", OLD, "--at", moment])
        assert result.returncode == 2 and words in result.stderr.decode(), (moment, result.stderr)


main()
