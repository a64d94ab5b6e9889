#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`torsh check` of devices: budgets that are just met and just exceeded, by the simulated CUDA's
own log; and the messages if there is nothing to compare."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import schema  # noqa: E402
from device_memory import program, replay  # noqa: E402
from simcuda import duration_ns, of_kind, record_simulated  # noqa: E402

WORKING = PROGRAMS / "cuda_driver"
OPTIONS = ("--max-device-peak", "--max-device-leak", "--max-device-refused", "--max-device-time")
OWN = ("cuda:0", "cuda:1", "managed", "pinned")


def check(output, *arguments):
    """The one budget's check; its status has to fit."""
    result = run([TORSH, "check", output, "--json", *arguments])
    assert result.returncode in (0, 1), result.stderr.decode()
    report = json.loads(result.stdout)
    schema.expect_fits("check", report)
    (found,) = report["checks"]
    expect_equal((report["passed"], found["passed"]), (result.returncode == 0,) * 2, "passed")
    return found


def expect_value(output, option, value, device, *arguments):
    """It is kept at the value, and broken one below."""
    for limit in (value, value - 1):
        found = check(output, option, str(limit), *arguments)
        expect_equal((found["value"], found["device"], found["passed"], found["reason"]),
                     (value, device, limit == value, None), f"{option} {limit} {arguments}")


def expect_unknown(output, option, words, *arguments):
    found = check(output, option, "1", *arguments)
    expect_equal((found["value"], found["device"], found["passed"]), (None, None, False), f"{option} {arguments}")
    assert words in found["reason"], found
    text = torsh("check", output, option, "1", *arguments, expect=1)
    assert "not known" in text and found["reason"] in text, text


@case
def budgets_of_memory_are_those_of_the_simulations_log():
    output, truth = record_simulated([program(), "ways"], devices=2)
    places = replay(truth)
    highest = max(("cuda:0", "cuda:1"), key=lambda name: places[name].peak_bytes)
    expect_value(output, "--max-device-peak", places[highest].peak_bytes, highest)
    expect_value(output, "--max-device-leak", sum(places[name].bytes for name in OWN), None)
    for name, place in places.items():
        found = {what: check(output, f"--max-device-{what}", "1T", "--device", name)["value"] for what in ("peak", "leak")}
        expect_equal(found, {"peak": place.peak_bytes, "leak": place.bytes}, name)


@case
def refused_allocations_can_break_a_budget():
    output, truth = record_simulated([BUILD / "simcuda/programs/room", "refused"])
    refused = len(of_kind(truth, "refused"))
    assert refused > 1, refused
    for limit in (refused, refused - 1):
        expect_equal(check(output, "--max-device-refused", str(limit))["passed"], limit == refused, f"with {limit}")


@case
def times_are_those_of_the_device_that_worked_longest():
    output, truth = record_simulated([WORKING, 2, 20])
    total_ns = sum(duration_ns(line) for line in of_kind(truth, "kernel", "memcpy", "memset"))
    expect_value(output, "--max-device-time", total_ns, "cuda:0")
    expect_value(output, "--max-device-time", total_ns, "cuda:0", "--device", "cuda:0")


def kernels_of(truth):
    """Calls and time by name, as the simulation ran them."""
    sums = {}
    for line in of_kind(truth, "kernel"):
        calls, total_ns = sums.get(line["name"], (0, 0))
        sums[line["name"]] = (calls + 1, total_ns + duration_ns(line))
    return sums


@case
def two_runs_differ_by_the_kernels_of_their_logs():
    (before, truth), (after, more) = (record_simulated([WORKING, 1, n], output=scratch(f"run-{n}")) for n in (5, 9))
    old, new = kernels_of(truth), kernels_of(more)
    report = json.loads(torsh("diff", before, after, "--json", "--limit", "0"))
    schema.expect_fits("diff", report)
    found = {row["name"]: row for row in report["kernels"] if row["name"] in old | new}
    assert old and old != new, old
    expect_equal(found.keys(), old.keys() | new.keys(), "kernels")
    for name, row in found.items():
        for what, i in (("calls", 0), ("total_ns", 1)):
            expect_equal((row[what]["before"], row[what]["after"]), (old.get(name, (0, 0))[i], new.get(name, (0, 0))[i]),
                         f"{what} of {name}")


@case
def a_device_that_did_nothing_is_at_zero():
    output, _ = record_simulated([WORKING, 1, 5], devices=2)
    expect_equal(check(output, "--max-device-peak", "0", "--device", "cuda:1")["value"], 0, "bytes")
    expect_equal(check(output, "--max-device-time", "0", "--device", "cuda:1")["value"], 0, "time")
    # The same without the heap, which has no device data.
    output, _ = record_simulated([WORKING, 1, 5], devices=2, env={"TORSH_PROFILER_ACTIVITIES": "cuda"})
    expect_equal(check(output, "--max-device-leak", "0", "--device", "cuda:1")["value"], 0, "bytes")


@case
def missing_device_values_break_the_budget_with_a_reason():
    _, output = record(["true"])
    for option in OPTIONS:
        expect_unknown(output, option, "devices")
    output, _ = record_simulated([program(), "ways"])
    expect_unknown(output, "--max-device-peak", "it has that of cuda:0", "--device", "cuda:7")
    expect_unknown(output, "--max-device-time", "cuda:7", "--device", "cuda:7")
    output, _ = record_simulated([program(), "ways"], env={"TORSH_PROFILER_PROFILE_MEMORY": "0"})
    expect_unknown(output, "--max-device-leak", "TORSH_PROFILER_PROFILE_MEMORY=0")
    output, _ = record_simulated([WORKING, 1, 5], env={"CUDA_INJECTION64_PATH": "/other/tool.so"})
    expect_unknown(output, "--max-device-time", "has no times")
    output, _ = record_simulated([WORKING, 1, 5], untimed_kernels=2)
    expect_unknown(output, "--max-device-time", "records of devices are missing")


@case
def budgets_of_devices_that_make_no_sense_are_wrong_usage():
    output, _ = record_simulated([WORKING, 1, 5])
    for arguments in (["--device", "cuda:0"], ["--device", "cuda:0", "--max-peak", "1G"], ["--max-device-time", "soon"],
                      ["--max-device-time", "1s", "--device", "pinned"]):
        result = run([TORSH, "check", output, *arguments])
        expect_equal((result.returncode, bool(result.stderr)), (2, True), f"status with {arguments}")


if __name__ == "__main__":
    main()
