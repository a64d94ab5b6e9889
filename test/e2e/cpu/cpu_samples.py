#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Samples of processor time: functions have the time that they measure themselves, and the program sees nothing of it."""

import errno
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402

SAMPLED = {"TORSH_PROFILER_ACTIVITIES": "samples", "TORSH_PROFILER_CPU_HZ": 1000}
SHARE_S = 0.3
TIMERS = pathlib.Path("/proc/self/timers")

PYTHON = """
import threading, time
def burn(seconds):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < seconds * 1e9:
        for i in range(2000):
            pass
    return time.thread_time_ns() - begin
def first():
    return burn(0.4)
def second():
    return burn(0.2)
def of_thread():
    times["of_thread"] = burn(0.3)
times = {}
thread = threading.Thread(target=of_thread)
thread.start()
times["first"], times["second"] = first(), second()
thread.join()
for name, ns in times.items():
    print(name, ns)
"""

# Allocates in each turn: samples interrupt the recording of blocks.
ALLOCATING = """
import time
kept = []
begin, n = time.thread_time(), 0
while time.thread_time() - begin < 1:
    kept = [bytearray(700) for _ in range(200)]
    n += 1
print("turns", n > 0)
"""


def sampled(command, output=None, **env):
    result, output = record(command, output, env={**SAMPLED, **env})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return result.stdout.decode(), output


def source():
    """What samples at 1,000 Hz: ticks are too coarse for timers."""
    _, output = sampled([PROGRAMS / "cpu_burn", "0.01"], scratch("source"))
    return read_report("cpu", output)["source"]


def truth_of(text):
    return {name: int(ns) for name, ns in map(str.split, text.splitlines())}


def longest_sample(output):
    """No function that runs once can be off by more than this at its begin, and at its end."""
    events = [json.loads(line) for line in torsh("dump", output).splitlines()]
    return max(event["cpu_ns"] for event in events if event.get("event") == "cpu_sample")


def total_of(report, function):
    return sum(row["total_ns"] for row in report["functions"] if row["function"] == function)


def check_functions(report, truth, output):
    slack = 2 * longest_sample(output)
    for function, ns in truth.items():
        found = total_of(report, function)
        assert abs(found - ns) <= slack, f"{function}: {found} ns, by its own measure {ns}, and no more than {slack} between"
        assert found > 0, f"{function} has no sample"


@case
def functions_have_the_time_that_they_measure():
    text, output = sampled([PROGRAMS / "cpu_burn", SHARE_S])
    truth, report = truth_of(text), read_report("cpu", output, "--limit", "0")
    check_functions(report, truth, output)
    check_counts(report["events"])
    expect_equal(report["source"], source(), "source")
    expect_equal(report["ns"], sum(thread["ns"] for thread in report["threads"]), "the sum of the threads")
    expect_equal(report["ns"], sum(row["self_ns"] for row in report["functions"]), "the sum of the functions")
    expect_equal(report["samples"], sum(row["self_samples"] for row in report["lines"]), "the samples of the lines")
    # The first thread, the burning one and the child: the one that sleeps has none.
    expect_equal(sorted(thread["samples"] > 0 for thread in report["threads"]), [True] * 3, "threads with samples")
    lines = [row for row in report["lines"] if row["function"] == "burn_long"]
    assert lines and all(row["file"].endswith("cpu_burn.c") and row["line"] for row in lines), lines


@case
def lines_of_python_have_their_time():
    text, output = sampled([sys.executable, "-c", PYTHON], TORSH_PROFILER_ACTIVITIES="samples,python")
    report = read_report("cpu", output, "--limit", "0", "--stacks", "python")
    check_functions(report, truth_of(text), output)
    assert any(row["python"] and row["function"] == "burn" and row["line"] for row in report["functions"]), report["functions"][:5]


COLLECTING = """
import gc, json
gc.disable()
runs = []
def watch(phase, info):
    if phase == "stop":
        runs.append((info["generation"], info["collected"]))
gc.callbacks.append(watch)
for generation in (0, 0, 0, 1, 2):
    for _ in range(1000):
        cycle = []
        cycle.append(cycle)
    gc.collect(generation)
gc.callbacks.clear()
print(json.dumps(runs))
"""


@case
def runs_of_pythons_collector_are_there_by_generation():
    """As the program's own callbacks count them; what the interpreter runs at its start and its end comes on top."""
    text, output = sampled([sys.executable, "-c", COLLECTING], TORSH_PROFILER_ACTIVITIES="samples,python")
    told, report = json.loads(text), read_report("cpu", output)
    expect_fits("cpu", report)
    expect_equal([row["generation"] for row in report["gc"]], [0, 1, 2], "generations")
    recorded = [event for event in map(json.loads, torsh("dump", output).splitlines()) if event.get("event") == "python_gc"]
    for row in report["gc"]:
        ours = [run for run in told if run[0] == row["generation"]]
        all_ns = [event["duration_ns"] for event in recorded if event["generation"] == row["generation"]]
        expect_equal((row["runs"], row["total_ns"], row["longest_ns"]), (len(all_ns), sum(all_ns), max(all_ns)), "runs of the dump")
        assert row["runs"] >= len(ours) and row["collected"] >= sum(run[1] for run in ours) >= 1000, (row, ours)
    assert re.search(r"Python's garbage collector: .* in \d+ runs, the longest .*; generation 0 .* in \d+, generation 1", torsh("cpu", output)), torsh("cpu", output)
    _, plain = sampled([PROGRAMS / "cpu_burn", "0.01"])
    expect_equal(read_report("cpu", plain)["gc"], None, "of a program without Python")


@case
def exports_of_stacks_have_the_same_time():
    """folded, speedscope and, as pprof itself reads it, pprof: function by function where the rest has a caller in common."""
    _, output = sampled([PROGRAMS / "cpu_burn", SHARE_S])
    report = read_report("cpu", output, "--limit", "0")
    lines = [line.rpartition(" ") for line in torsh("export", output, "--format", "folded", "--what", "cpu", "--all").splitlines()]
    expect_equal(sum(int(ns) for _, _, ns in lines), report["ns"], "the sum of the folded stacks")
    for function in ("burn_long", "burn_short"):
        found = sum(int(ns) for stack, _, ns in lines if any(frame.startswith(function) for frame in stack.split(";")))
        expect_equal(found, total_of(report, function), f"{function} in folded stacks")
    scope = json.loads(torsh("export", output, "--format", "speedscope", "--what", "cpu", "--all"))
    expect_equal([(one["name"], one["unit"], sum(one["weights"])) for one in scope["profiles"]], [("cpu", "nanoseconds", report["ns"])],
                 "profiles of speedscope")
    if not shutil.which("go"):
        missing("golang-go, which has pprof")
    profile = exported(output, "cpu.pb.gz", "--format", "pprof", "--what", "cpu", "--all")
    for sample, unit, whole in (("cpu", "ns", report["ns"]), ("samples", "count", report["samples"])):
        result = run(["go", "tool", "pprof", "-symbolize=none", "-top", f"-unit={unit}", "-nodefraction=0", f"-sample_index={sample}", profile],
                     clean_environment() | {"HOME": str(scratch("home"))})
        expect_equal(result.returncode, 0, result.stderr.decode())
        shown = re.search(r"of (\S+?)(?:ns)? total", result.stdout.decode())
        expect_equal(int(float(shown[1])), whole, f"{sample} in pprof: {result.stdout.decode()[:300]}")
    # Without samples the export is empty, and says why.
    _, plain = record([PROGRAMS / "cpu_burn", "0.01"], scratch("plain"))
    result = run([TORSH, "export", plain, "--format", "folded", "--what", "cpu"])
    expect_equal((result.returncode, result.stdout), (0, b""), "what was not sampled")
    assert b"no samples of processor time were recorded" in result.stderr, result.stderr


@case
def nothing_is_sampled_unless_asked_for():
    for activities in ("heap,vm", None):
        env = {"TORSH_PROFILER_ACTIVITIES": activities} if activities else {}
        result, output = record(["cat", TIMERS], env=env) if TIMERS.exists() else record(["true"], env=env)
        expect_equal((result.returncode, result.stdout), (0, b""), "the timers of the process")
        report = read_report("cpu", output)
        expect_equal((report["samples"], report["source"], report["hz"], report["functions"]), (0, None, None, []), "the report")
        assert report["reason"], "no reason"
        assert "No samples were asked for" in torsh("cpu", output)
    if TIMERS.exists():
        env = {**SAMPLED, "TORSH_PROFILER_CPU_HZ": 99}
        assert b"ID: " in record(["cat", TIMERS], env=env)[0].stdout, "no timer where samples were asked for"


@case
def run_adds_the_samples():
    output = scratch()
    result = run([TORSH, "run", "--cpu", "--cpu-hz", "50", "-o", output, "--", PROGRAMS / "cpu_burn", "0.1"])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = read_report("cpu", output)
    expect_equal((report["asked_hz"], report["hz"], report["reason"]), (50, 50.0, None), "the rate")
    assert report["samples"] and read_report("peak", output)["version"], "samples, and the heap"


@case
def rates_above_the_ticks_are_said():
    """Where perf_event_open is refused timers remain."""
    for error in (errno.EACCES, errno.EPERM, errno.ENOSYS):
        _, output = sampled([PROGRAMS / "cpu_pmu", str(error), PROGRAMS / "cpu_burn", "0.05"], TORSH_PROFILER_CPU_HZ=10000,
                            TORSH_PROFILER_FILTER="cpu_burn")
        report = read_report("cpu", output)
        expect_equal((report["asked_hz"], report["source"]), (10000, "timer"), "the rate that was asked for, and the source")
        assert report["samples"] and report["hz"] < 10000, report["hz"]
        assert "ticks only, and perf_event_open is not permitted" in report["reason"], report["reason"]
        assert "10000 Hz were asked for" in torsh("cpu", output)


def need_clocks():
    if source() != "perf_event":
        missing("kernel.perf_event_paranoid of 2 or less, for clocks by perf_event_open")


@case
def rates_above_the_ticks_are_kept_by_clocks():
    need_clocks()
    for hertz in (1000, 10000):
        text, output = sampled([PROGRAMS / "cpu_burn", "0.2"], TORSH_PROFILER_CPU_HZ=hertz)
        report = read_report("cpu", output, "--limit", "0")
        expect_equal((report["asked_hz"], report["hz"], report["reason"]), (hertz, hertz, None), "the rate")
        # What is not sampled, in the kernel or because the machine was late, is counted.
        of_all = report["samples"] + report["lost"]
        assert abs(of_all - report["ns"] * hertz / 1e9) <= 0.02 * of_all, (of_all, report["ns"])
        assert abs(report["ns"] - sum(truth_of(text).values())) <= 0.05 * report["ns"], (report["ns"], text)


@case
def known_functions_have_their_time_to_two_percent():
    need_clocks()
    text, output = sampled([PROGRAMS / "cpu_burn", "1"])
    report = read_report("cpu", output, "--limit", "0")
    for function, ns in truth_of(text).items():
        found = total_of(report, function)
        assert abs(found - ns) <= 0.02 * ns, f"{function}: {found} ns, by its own measure {ns}"


@case
def clocks_leave_no_descriptor():
    need_clocks()
    bare = run([PROGRAMS / "cpu_counted", "many", "2000"])
    text, output = sampled([PROGRAMS / "cpu_counted", "many", "2000"])
    expect_equal(text, bare.stdout.decode(), "descriptors after many threads")
    text, _ = sampled([PROGRAMS / "cpu_counted", "fork"])
    expect_equal(text, run([PROGRAMS / "cpu_counted", "fork"]).stdout.decode(), "descriptors of a child")


@case
def samples_interrupt_what_is_recorded():
    env = {"TORSH_PROFILER_ACTIVITIES": "heap,vm,python,samples", "TORSH_PROFILER_CPU_HZ": 10000, "PYTHONMALLOC": "malloc"}
    text, output = sampled([sys.executable, "-c", ALLOCATING], **env)
    expect_equal(text, "turns True\n", "output")
    report = read_report("cpu", output, "--limit", "0")
    check_counts(report["events"])
    assert report["samples"] > 20, report["samples"]


def same_with_and_without(*arguments):
    bare = run([PROGRAMS / "cpu_signals", *arguments])
    result, output = record([PROGRAMS / "cpu_signals", *arguments], env={**SAMPLED, "TORSH_PROFILER_CPU_HZ": 10000})
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 f"cpu_signals {' '.join(arguments)}")
    return read_report("cpu", output)


@case
def signals_timers_and_masks_are_the_programs():
    for what in ("state", "waits", "spawn"):
        assert same_with_and_without(what)["samples"], what


@case
def a_signal_that_the_program_takes_is_left_to_it():
    assert same_with_and_without("state")["signal"], "no signal"
    report = same_with_and_without("fault")
    # Timers go on with another one.
    assert report["source"] == "timer" and report["signal"] > 32 and "ticks" in report["reason"], (report["signal"], report["reason"])
    for what in ("takes", "one"):
        report = same_with_and_without(what)
        expect_equal((report["source"], report["signal"]), (None, None), what)
        assert "all real-time signals" in report["reason"], report["reason"]
        assert "Sampling ended" in torsh("cpu", report["recording"]["file"]), "the text doesn't have the reason"


@case
def a_signal_from_elsewhere_does_what_it_did():
    signal = same_with_and_without("state")["signal"]
    for number in (signal, signal - 1):
        same_with_and_without("kill", str(number))


@case
@waits
def no_call_is_interrupted():
    bare = run([PROGRAMS / "cpu_blocking", "0.01"])
    result, output = record([PROGRAMS / "cpu_blocking", "0.05"], env={**SAMPLED, "TORSH_PROFILER_CPU_HZ": 10000})
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), "what the calls returned")
    assert bare.stdout.count(b": 0 failed") == bare.stdout.count(b"\n") > 10, bare.stdout
    assert read_report("cpu", output)["samples"] > 10, "hardly a sample"


if __name__ == "__main__":
    main()
