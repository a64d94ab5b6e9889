#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Device sections of reports in text form, on the simulated CUDA: the page of `torsh report`
against the simulation's own log; every table and sentence names its device and its process."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import schema  # noqa: E402
from device_memory import peak_of, program, replay  # noqa: E402
from simcuda import duration_ns, of_kind, record_simulated  # noqa: E402

WORKING = PROGRAMS / "cuda_driver"
WITH_RANGES = PROGRAMS / "cuda_evidence"
OUTSIDE = "launched outside of every operator"


def page_of(output):
    report = read_report("report", output)
    schema.expect_fits("report", report)
    return report["devices"]


@case
def the_page_of_a_recording_has_what_devices_did():
    output, truth = record_simulated([WORKING, 2, 20])
    devices = page_of(output)
    total_ns = sum(duration_ns(line) for line in of_kind(truth, "kernel", "memcpy", "memset"))
    expect_equal((devices["total_ns"], devices["attributed_ns"]), (total_ns, 0), "time")
    (kernels,) = read_report("kernels", output)["processes"]
    expect_equal(devices["processes"], [kernels], "how they were seen")
    text = torsh("report", output, "--verbose")
    assert re.search(r"^Devices: \S+ .s of kernels, copies and memsets$", text, re.M), text
    assert f"pid {kernels['pid']}: devices by CUPTI" in text, text


@case
def the_page_of_a_recording_has_the_memory_of_devices():
    output, truth = record_simulated([program(), "ways"], devices=2)
    found = {memory["device"]: (memory["peak_bytes"], memory["current_bytes"]) for memory in page_of(output)["memory"]}
    expect_equal(found, {name: (place.peak_bytes, place.bytes) for name, place in replay(truth).items()}, "memory")
    text = torsh("report", output, "--verbose")
    for name in found:
        assert f": of {name} at most " in text, (name, text)


@case
def the_page_of_a_recording_reports_why_devices_were_not_seen_better():
    output, _ = record_simulated([WORKING, 1, 5], faults="cuptiSubscribe*=39")
    (process,) = page_of(output)["processes"]
    assert process["mode"] == "EVENTS" and process["reason"], process
    assert process["reason"] in torsh("report", output), "the reason"


@case
def the_timeline_can_be_left_out_of_the_page():
    output, _ = record_simulated([WORKING, 1, 5])
    whole, part = (read_report("report", output, *options) for options in ((), ("--no-timeline",)))
    schema.expect_fits("report", part)
    expect_equal(part.pop("critical_path_reason"), "the timeline was not read", "why there is no critical path")
    del whole["critical_path_reason"]
    timeline = ("devices", "inefficiencies", "rules", "critical_path")
    expect_equal([part[name] for name in timeline], [None] * len(timeline), "what is of the timeline")
    expect_equal({name: part[name] for name in part if name not in timeline},
                 {name: whole[name] for name in whole if name not in timeline}, "the rest")
    text = torsh("report", output, "--no-timeline")
    assert "--no-timeline" in text and "DEVICES" not in text and "FINDINGS" not in text, text
    text = torsh("report", output, "--no-timeline", "--verbose")
    assert "--no-timeline" in text and "Devices:" not in text and "Inefficiencies" not in text, text


@case
def the_page_of_a_program_without_devices_has_none():
    _, output = record(["true"])
    expect_equal(page_of(output), None, "devices")
    assert "DEVICES" not in torsh("report", output), "a section about nothing"
    assert "Devices" not in torsh("report", output, "--verbose"), "a section about nothing"


def rows(text):
    """Of each row of the table the calls, and those of the operators below it."""
    found = []
    for line in text.splitlines():
        row = re.match(r"\S.*?  +([\d,]+)  +[\d.]+ \S+  +[\d.]+%", line)
        part = re.match(r"    ([\d,]+) calls?, [\d.]+ \S+(: | in .*\(confidence (high|medium|low)\)$)", line)
        if row:
            found.append((int(row[1].replace(",", "")), []))
        elif found and part:
            found[-1][1].append(int(part[1].replace(",", "")))
    return found


@case
def operators_of_a_kernel_have_calls_that_add_up_to_its_own():
    output, _ = record_simulated([WITH_RANGES])
    report = read_report("kernels", output)
    found = rows(torsh("kernels", output))
    expect_equal(sorted(calls for calls, _ in found), sorted(row["calls"] for row in report["kernels"] + report["copies"]),
                 "calls")
    for calls, of_operators in found:
        expect_equal(sum(of_operators), calls, "calls of its operators")
    assert OUTSIDE in torsh("kernels", output), "what has no operator is to be printed beside what has one"


@case
def kernels_of_a_program_without_operators_report_it_once():
    output, _ = record_simulated([WORKING, 1, 5])
    text = torsh("kernels", output)
    expect_equal((text.count(OUTSIDE), text.count("launched without operators")), (0, 1), "sentences")
    expect_equal({row["reason"] for row in read_report("kernels", output)["unattributed"]},
                 {"it was launched outside of every operator that was recorded"}, "reasons in JSON")


@case
def what_a_device_held_is_reported_of_each_process():
    memory = program()
    output, _ = record_simulated(["sh", "-c", '"$0" ways; "$0" release', memory])
    processes = [process for process in read_report("peak", output, "--device", "cuda:0")["processes"]
                 if process["peak_bytes"] is not None]
    expect_equal(len(processes), 2, "processes with memory of the device")
    text = torsh("leaks", output, "--device", "cuda:0")
    for process in processes:
        expect_equal(len(re.findall(rf"^pid {process['pid']} held \S+ .* of cuda:0 at the end$", text, re.M)), 1, text)
    highest = peak_of(output, "cuda:0")
    expect_equal(highest["pid"], max(processes, key=lambda process: process["peak_bytes"])["pid"], "the process with the peak that is shown")


if __name__ == "__main__":
    main()
