#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the machine's memory controllers move. Where the kernel shows them to nobody, that is said; else they are simulated: a folder in
place of the kernel's event sources, in a mount namespace, and files of readings in place of its counters (cpu_pmu.c).
"""

import errno
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

SOURCES = pathlib.Path("/sys/bus/event_source/devices")
PERF = {"TORSH_PROFILER_ACTIVITIES": "perf"}
PMU = PROGRAMS / "cpu_pmu"
UNCORE_TYPE = 4321  # of cpu_pmu.c
MIB = 1 << 20  # that a simulated source reads from memory between two readings; it writes half of that
PERIOD_NS = 10_000_000
SECONDS = 1
FIGURES = ("read_gb_per_s", "written_gb_per_s", "read_bytes", "written_bytes", "highest_gb_per_s")

all_wait()


def put_sources(type_):
    """The files of a client's memory controller."""
    folder = scratch("devices")
    source = folder / "uncore_imc"
    for name, text in {"type": type_, "cpumask": 0, "format/event": "config:0-7",
                       "events/data_reads": "event=0x01", "events/data_reads.scale": "6.103515625e-5", "events/data_reads.unit": "MiB",
                       "events/data_writes": "event=0x02", "events/data_writes.scale": "6.103515625e-5",
                       "events/data_writes.unit": "MiB"}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"{text}\n")
    return folder


def record_simulated(pmu):
    """A program of a second where the kernel seems to show a controller."""
    need_root()
    folder = put_sources(UNCORE_TYPE)
    if run(["unshare", "-m", "mount", "--bind", folder, SOURCES]).returncode:
        raise Skip("may not mount here")
    sleeper = [sys.executable, "-c", f"import time; time.sleep({SECONDS})"]
    result, output = record(["unshare", "-m", "sh", "-c", f"mount --bind {folder} {SOURCES}; exec {shell_words(PMU, pmu, *sleeper)}"],
                            env={**PERF, "TORSH_PROFILER_FILTER": "python*"})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return output


def traffic_of(output):
    """The same in all reports."""
    reports = {command: read_report(command, output) for command in ("ops", "steps", "report")}
    for command, report in reports.items():
        expect_fits(command, report)
        expect_equal(report["memory_traffic"], reports["ops"]["memory_traffic"], f"traffic in torsh {command}")
    expect_equal(reports["ops"]["cpu_roofline"]["memory_reason"], reports["ops"]["memory_traffic"]["reason"], "the roofline's reason")
    return reports["ops"]["memory_traffic"]


def expect_nothing(traffic, *words):
    expect_equal([traffic[name] for name in FIGURES], [None] * len(FIGURES), "figures")
    expect_equal((traffic["of"], traffic["ns"]), ("machine", 0), "what was counted")
    for word in words:
        assert word in traffic["reason"], (word, traffic["reason"])


@case
def where_the_kernel_shows_no_controller_that_is_said():
    names = os.listdir(SOURCES) if SOURCES.exists() else []
    if any(name.startswith(("uncore_imc", "amd_umc", "amd_df", "arm_cmn", "arm_dmc620")) for name in names):
        raise Skip("the kernel shows memory controllers here")
    result, output = record([PROGRAMS / "cpu_counted", "threads", "2"], env=PERF)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    traffic = traffic_of(output)
    expect_nothing(traffic, "/sys/bus/event_source/devices", "sudo modprobe", "perf_event_paranoid")
    expect_equal((traffic["source"], traffic["counters"]), (None, 0), "sources")
    assert traffic["reason"] in torsh("ops", output, "--counters")


@case
def without_the_activity_nothing_is_counted():
    _, output = record([PROGRAMS / "cpu_counted", "threads", "2"], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_nothing(traffic_of(output), "does not name perf")


@case
def what_is_refused_has_the_command_that_would_allow_it():
    traffic = traffic_of(record_simulated(str(errno.EACCES)))
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    expect_nothing(traffic, "sudo sysctl kernel.perf_event_paranoid=0" if paranoid > 0 else "docker run --cap-add PERFMON")
    expect_equal(traffic["source"], "uncore_imc", "source")


@case
def simulated_controllers_are_counted_for_the_whole_run():
    output = record_simulated("uncore")
    traffic = traffic_of(output)
    expect_equal((traffic["source"], traffic["counters"], traffic["counted_share"], traffic["reason"]), ("uncore_imc", 2, 1, None), "how")
    read, ns = traffic["read_bytes"], traffic["ns"]
    assert read % MIB == 0 and read == 2 * traffic["written_bytes"], traffic
    assert 2 <= read // MIB <= ns // PERIOD_NS + 1 and ns <= 20 * SECONDS * 1_000_000_000, traffic
    expect_equal((traffic["read_gb_per_s"], traffic["written_gb_per_s"]), (float(f"{read / ns:.6g}"), float(f"{read / 2 / ns:.6g}")), "rates")
    assert traffic["highest_gb_per_s"] >= traffic["read_gb_per_s"] + traffic["written_gb_per_s"] - 1e-5, traffic
    assert "of the whole machine, all programs" in torsh("ops", output, "--counters")


if __name__ == "__main__":
    main()
