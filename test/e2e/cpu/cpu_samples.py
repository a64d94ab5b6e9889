#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Samples of processor time: functions have the time that they measure themselves, and the program sees nothing of it."""

import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402

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


def sampled(command, **env):
    result, output = record(command, env={**SAMPLED, **env})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return result.stdout.decode(), output


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
    expect_equal(report["source"], "timer", "source")
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
        assert b"ID: " in record(["cat", TIMERS], env=SAMPLED)[0].stdout, "no timer where samples were asked for"


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
    _, output = sampled([PROGRAMS / "cpu_burn", "0.05"], TORSH_PROFILER_CPU_HZ=10000)
    report = read_report("cpu", output)
    expect_equal(report["asked_hz"], 10000, "the rate that was asked for")
    assert report["hz"] < 10000 and "ticks" in report["reason"], (report["hz"], report["reason"])
    assert "10000 Hz were asked for" in torsh("cpu", output)


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
