#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Counters of the CPU: what programs count themselves, of threads, operators, modules and steps; where there is no PMU, or no right to
it, the reason. The PMU of the tests is simulated: pages as the kernel's, in which the program counts (cpu_pmu.c).
"""

import errno
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import torch_python  # noqa: E402
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

COUNTED = PROGRAMS / "cpu_counted"
PMU = PROGRAMS / "cpu_pmu"
SCRIPT = ROOT / "test/python/cpu/counted.py"
MULTIPLIED = SCRIPT.with_name("multiplied.py")
PERF = {"TORSH_PROFILER_ACTIVITIES": "perf"}
OF_TORCH = {"TORSH_PROFILER_ACTIVITIES": "torch,perf"}
HARDWARE = ("cycles", "instructions", "branch_misses", "l1d_misses", "llc_misses", "dtlb_misses")
MARGIN_FAULTS = 60  # pages of the interpreter's or the C library's own around what a program counts
SCOPES = ("few", "outer", "inner")
ROOFLINE = ("flops_per_cycle", "peak_share", "llc_miss_bytes", "llc_miss_gb_per_s", "flops_per_llc_miss_byte")


def counted(command, env, **options):
    result, output = record(command, env=env, **options)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return result.stdout.decode(), output


def reports_of(output):
    reports = {command: read_report(command, output) for command in ("ops", "modules", "steps")}
    for command, report in reports.items():
        expect_fits(command, report)
        expect_equal(report["counters_reason"], reports["ops"]["counters_reason"], f"the reason in torsh {command}")
    check_counts(reports["ops"]["events"])
    return reports


@case
def threads_have_what_they_count():
    text, output = counted([COUNTED, "threads", "4"], PERF)
    threads = {row["tid"]: row["counters"] for row in reports_of(output)["ops"]["counter_threads"]}
    rows = [list(map(int, line.split())) for line in text.splitlines()]
    expect_equal(len(rows), 4, "threads")
    for tid, faults, waits, moves, ns in rows:
        found = threads[tid]
        assert faults <= found["minor_faults"] <= faults + MARGIN_FAULTS, (faults, found)
        assert waits <= found["voluntary_switches"] <= waits + 10, (waits, found)
        assert found["task_clock_ns"] >= ns, (ns, found)
        assert found["migrations"] is None or found["migrations"] >= moves, (moves, found)
        expect_equal(found["major_faults"], 0, "reads from a disk")


@case
@needs("torch")
def operators_have_what_the_program_counts():
    text, output = counted([torch_python(), SCRIPT], OF_TORCH)
    reports = reports_of(output)
    ops = {row["name"]: row for row in reports["ops"]["ops"]}
    for name, (faults, waits, ns) in json.loads(text).items():
        found = ops[name]["counters"]
        assert faults <= found["minor_faults"] <= faults + MARGIN_FAULTS, (name, faults, found)
        assert waits <= found["voluntary_switches"] <= waits + 10, (name, waits, found)
        # Its own measure of outer has what the agent does at the begin and the end of inner.
        assert found["task_clock_ns"] >= ns or name == "outer", (name, ns, found)
    inner, outer = ops["inner"]["counters"], ops["outer"]
    for field in ("minor_faults", "voluntary_switches", "task_clock_ns"):
        expect_equal(outer["self_counters"][field], outer["counters"][field] - inner[field], f"{field} of outer alone")
    linear = next(row for row in reports["modules"]["modules"] if row["name"] == "Linear:Linear")
    assert 0 < linear["counters"]["task_clock_ns"] <= linear["total_ns"], linear


def without_pmu(report, *words):
    for row in [*report["counter_threads"], *report["ops"]]:
        expect_equal([row["counters"][name] for name in HARDWARE], [None] * len(HARDWARE), "counters of the processor")
        expect_equal((row["counters"]["ipc"], row["counters"]["access"]), (None, None), "what follows from them")
        assert row["counters"]["task_clock_ns"] > 0, row
    for word in words:
        assert word in report["counters_reason"], (word, report["counters_reason"])


@case
def where_nothing_is_permitted_the_kernels_counts_remain():
    for error, words in ((errno.ENOSYS, ["no perf_event_open", "docker run"]), (errno.ENOENT, ["no performance monitoring unit", "pmu=on"]),
                         (errno.EACCES, ["no counters of the processor"]), (errno.EPERM, ["no counters of the processor"])):
        text, output = counted([PMU, str(error), COUNTED, "threads", "2"], {**PERF, "TORSH_PROFILER_FILTER": COUNTED.name})
        report = reports_of(output)["ops"]
        without_pmu(report, *words)
        threads = {row["tid"]: row["counters"] for row in report["counter_threads"]}
        for tid, faults, waits, _, _ in (map(int, line.split()) for line in text.splitlines()):
            assert faults <= threads[tid]["minor_faults"] <= faults + MARGIN_FAULTS, (faults, threads[tid])
            assert waits <= threads[tid]["voluntary_switches"], (waits, threads[tid])
            expect_equal(threads[tid]["migrations"], None, "migrations")
        assert report["counters_reason"] in torsh("ops", output, "--counters")


@case
@needs("torch")
def counters_of_the_processor_are_the_operators():
    text, output = counted([PMU, "pmu", torch_python(), SCRIPT, "pmu"], {**OF_TORCH, "TORSH_PROFILER_FILTER": "python*"})
    report = reports_of(output)["ops"]
    expect_equal(report["counters_reason"], None, "why some are missing")
    ops = {row["name"]: row for row in report["ops"]}
    known = {name: dict(zip(HARDWARE, counts[3:])) for name, counts in json.loads(text).items()}
    for name in SCOPES:
        expect_equal({field: ops[name]["self_counters"][field] for field in HARDWARE}, known[name], f"counters of {name}")
        expect_equal(ops[name]["self_counters"]["ipc"],
                     float(f"{known[name]['instructions'] / known[name]['cycles']:.6g}"), f"instructions a cycle of {name}")
    both = {field: known["outer"][field] + known["inner"][field] for field in HARDWARE}
    expect_equal({field: ops["outer"]["counters"][field] for field in HARDWARE}, both, "counters of outer with what is inside")
    main, = (row["counters"] for row in report["counter_threads"] if row["pid"] == row["tid"])
    expect_equal([main[field] for field in HARDWARE], [sum(known[name][field] for name in SCOPES) for field in HARDWARE], "of the thread")
    expect_equal((ops["outer"]["self_counters"]["access"], ops["few"]["self_counters"]["access"]), ("streaming", None), "patterns")
    shown = torsh("ops", output, "--counters")
    assert "streaming: it reads memory in order, or from huge pages: 64 misses of the first cache, 32 of the last and 1 of the TLB" in shown, shown


def multiplied(pmu, threads, *arguments):
    """What the program says, what torsh ops does, and its scope."""
    one = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    text, output = counted([PMU, pmu, torch_python(), MULTIPLIED, *(["pmu"] if pmu == "pmu" else [])],
                           {**OF_TORCH, **one, "TORSH_PROFILER_FILTER": "python*"})
    expect_equal(json.loads(text)["threads"], threads, "threads of PyTorch")
    report = read_report("ops", output, *arguments)
    expect_fits("ops", report)
    scope, = (row for row in report["ops"] if row["name"] == "product")
    expect_equal(scope["flops_all"], json.loads(text)["flops"], "floating point operations")
    return report["cpu_roofline"], scope, report, output


@case
@needs("torch")
def operators_have_their_place_below_the_peak_of_a_core():
    limits, scope, _, output = multiplied("pmu", 1, "--cpu-peak=32")
    found, flops, ns = scope["cpu_roofline"], scope["flops_all"], scope["counters"]["task_clock_ns"]
    expect_equal((limits["peak_flops_per_cycle"], limits["peak_reason"]), (32, None), "what a core can do")
    assert 0 <= limits["other_threads_share"] <= 0.01 and limits["other_threads_reason"] is None, limits
    cycles, misses = 8388608, 16384
    expect_equal((flops / cycles, found["flops_per_cycle"], found["peak_share"]), (16, 16, 0.5), "FLOPs in a cycle")
    expect_equal((found["llc_miss_bytes"], found["flops_per_llc_miss_byte"]), (misses * 64, flops / (misses * 64)), "from memory")
    expect_equal((found["gflop_per_s"], found["llc_miss_gb_per_s"]),
                 (float(f"{flops / ns:.6g}"), float(f"{misses * 64 / ns:.6g}")), "by time")
    expect_equal(found["reason"], None, "why some are missing")
    shown = torsh("ops", output, "--counters", "--cpu-peak=32")
    assert "FLOPs/cycle" in shown and "50 % of what a core can do in a cycle" in shown, shown
    limits = read_report("ops", output)["cpu_roofline"]
    assert limits["peak_flops_per_cycle"] is None and "--cpu-peak" in limits["peak_reason"], limits
    assert "--cpu-peak is at least 1" in run([TORSH, "ops", output, "--cpu-peak=0"]).stderr.decode()


@case
@needs("torch")
def without_a_pmu_there_is_no_roofline():
    limits, scope, report, output = multiplied(str(errno.ENOENT), 1, "--cpu-peak=32")
    found = scope["cpu_roofline"]
    expect_equal([found[name] for name in ROOFLINE], [None] * len(ROOFLINE), "what needs counters of the processor")
    expect_equal(found["reason"], report["counters_reason"], "the reason")
    assert "no performance monitoring unit" in found["reason"], found
    expect_equal(found["gflop_per_s"], float(f"{scope['flops_all'] / scope['counters']['task_clock_ns']:.6g}"), "by time")
    assert limits["memory_gb_per_s"] is None and "perf_event_paranoid" in limits["memory_reason"], limits
    assert "FLOPs/cycle" not in torsh("ops", output, "--counters")


@case
@needs("torch")
def what_other_threads_compute_is_no_operators():
    limits, scope, _, _ = multiplied("pmu", 2, "--cpu-peak=32")
    found = scope["cpu_roofline"]
    assert "OMP_NUM_THREADS=1" in limits["other_threads_reason"], limits
    expect_equal([found[name] for name in ("gflop_per_s", *ROOFLINE)], [None] * (1 + len(ROOFLINE)), "beside other threads")
    expect_equal(found["reason"], limits["other_threads_reason"], "the reason")


@case
def nothing_is_counted_unless_asked_for():
    _, output = counted([COUNTED, "many", "2"], {})
    report = reports_of(output)["ops"]
    expect_equal(report["counter_threads"], [], "threads")
    assert "does not name perf" in report["counters_reason"], report["counters_reason"]
    assert "does not name perf" in torsh("ops", output, "--counters")


@case
def the_program_is_as_without():
    """Descriptors below 512, of children, after 10,000 threads, and with a small limit."""
    for arguments in (("many", "10000"), ("few",)):
        bare = run([COUNTED, *arguments])
        text, _ = counted([COUNTED, *arguments], PERF)
        # The first thread's own counter is above 511.
        expect_equal(text.replace("1 counters", "0 counters"), bare.stdout.decode(), " ".join(arguments))
    text, _ = counted([COUNTED, "fork"], PERF)
    bare = run([COUNTED, "fork"]).stdout.decode()
    # A child has its own counter at most, and not those of four threads of its parent; so has what it executes.
    expect_equal(text.replace("1 counters", "0 counters"), bare, "fork")


if __name__ == "__main__":
    main()
