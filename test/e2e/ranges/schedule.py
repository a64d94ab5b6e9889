#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
TORSH_PROFILER_SCHEDULE: which steps are recorded and reported, against a naive list of what each step is. Programs that
do something else in each step show by their counts which steps these were.
"""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators, without_twins  # noqa: E402
from timeline import events  # noqa: E402
from stand_in import build, find_python  # noqa: E402
from timeline import timeline  # noqa: E402
from environments import torch_python  # noqa: E402

PROGRAM = PROGRAMS / "scheduled"
N_STEPS = 24
FIRST_NUMBER = 100
SPECS = {
    "active:1": dict(active=1),
    "active:3,repeat:2": dict(active=3, repeat=2),
    "skip:2,wait:1,warmup:1,active:2,repeat:2": dict(skip=2, wait=1, warmup=1, active=2, repeat=2),
    "wait:2,active:3": dict(wait=2, active=3),
    "repeat:1,active:4,warmup:3,skip:5": dict(repeat=1, active=4, warmup=3, skip=5),
    "skip:100,active:1": dict(skip=100, active=1),
    "skip:1,wait:0,warmup:0,active:4294967295,repeat:0": dict(skip=1, active=4294967295),
}
REST, WARM_UP, ACTIVE = "rest", "warm-up", "active"


def actions(skip=0, wait=0, warmup=0, active=0, repeat=0):
    """What each of the steps is, by writing them down one after the other."""
    steps = [REST] * skip
    cycle = [REST] * wait + [WARM_UP] * warmup + [ACTIVE] * min(active, N_STEPS)
    for _ in range(repeat or N_STEPS):
        steps += cycle
    return (steps + [REST] * N_STEPS)[:N_STEPS]


def chosen(spec, *wanted):
    return [i for i, action in enumerate(actions(**SPECS[spec])) if action in wanted]


def ranges_of(numbers):
    """[3, 4, 7] as [[3, 4], [7, 7]]."""
    ranges = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def record_marked(spec, *arguments):
    result, output = record([PROGRAM, N_STEPS, *arguments], env={"TORSH_PROFILER_SCHEDULE": spec})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return output


def calls(report, kind="regions"):
    return {entry["name"]: entry["calls"] for entry in report[kind]}


def expect_selection(report, numbers, rule, spec):
    [selection] = report["selection"]
    expect_equal((selection["ranges"], selection["shown"], selection["steps"], selection["rule"]),
                 (ranges_of(numbers), len(numbers), N_STEPS, rule), "steps that the report is about")
    expect_equal(selection["schedule"], {**dict(skip=0, wait=0, warmup=0, repeat=0), **SPECS[spec]}, "schedule")


def active_steps_are_reported(spec):
    output, active = record_marked(spec), chosen(spec, ACTIVE)
    n_work = 2 * sum(i + 1 for i in active)
    expected = {"work": n_work, "inner": n_work, "elsewhere": len(active), "handed over": len(active),
                "into the next": len(active)}
    report = read_report("regions", output, "--limit", "0")
    expect_equal(calls(report), {name: n for name, n in expected.items() if n}, "ranges")
    expect_equal({mark["name"]: mark["marks"] for mark in report["marks"]}, {"moment": n_work} if n_work else {}, "marks")
    [loss] = report["values"]
    expect_equal(loss["values"], N_STEPS, "values, which are recorded in every step")
    expect_equal((report["unpaired_ends"], [entry["left_open"] for entry in report["regions"] if entry["left_open"]]),
                 (0, []), "ends without begins, and begins without ends")
    numbers = [FIRST_NUMBER + i for i in active]
    expect_selection(report, numbers, "user", spec)
    steps = read_report("steps", output, "--limit", "0")
    expect_equal([step["index"] for step in steps["steps"]], numbers, "steps")
    text = torsh("regions", output)
    assert f"{len(active)} of {N_STEPS} steps of process" in text, text


def only_these_are_sent(spec):
    output, sent = record_marked(spec), chosen(spec, WARM_UP, ACTIVE)
    # Everything before the first step is sent: no step has come yet.
    pushed = collections.Counter(event["name"] for event in timeline(output) if event["event"] == "range_push")
    n_work = 2 * sum(i + 1 for i in sent)
    expect_equal(pushed, collections.Counter({"whole": 1, "setup": 1, "work": n_work, "inner": n_work,
                                              "elsewhere": len(sent), "into the next": len(sent)}), "ranges sent")
    popped = sum(event["event"] == "range_pop" for event in timeline(output))
    expect_equal(popped, sum(pushed.values()), "ends sent")


def the_heap_is_exact_in_every_step(spec):
    leaked = leaks(record_marked(spec))
    [lost] = entries_through(leaked["leaks"], "leak")
    expect_equal((lost["blocks"], lost["bytes"]), (N_STEPS, sum(1000 + i for i in range(N_STEPS))), "leaks of all steps")


for name in SPECS:
    for check in (active_steps_are_reported, only_these_are_sent, the_heap_is_exact_in_every_step):
        add_case(f"{check.__name__}_{name.replace(':', '').replace(',', '_')}", check, name)


@case
def without_steps_all_is_recorded_and_that_is_reported():
    output = record_marked("skip:2,active:2", "unmarked")
    report = read_report("regions", output, "--limit", "0")
    expect_equal(calls(report)["work"], 2 * sum(i + 1 for i in range(N_STEPS)), "ranges")
    expect_equal(report["selection"], [], "restrictions")
    sentence = "the schedule skip:2,wait:0,warmup:0,active:2,repeat:0 was not applied"
    assert any(note.startswith(sentence) for note in report["notes"]), report["notes"]
    assert sentence in torsh("regions", output)


@case
def exports_hold_the_active_steps():
    spec = "skip:2,wait:1,warmup:1,active:2,repeat:2"
    output, active = record_marked(spec), chosen(spec, ACTIVE)
    file = scratch("export") / "trace.json"
    torsh("export", output, "--format", "chrome", "-o", file)
    slices = [event for event in json.loads(file.read_text())["traceEvents"] if event.get("ph") == "X"]
    names = collections.Counter(event["name"] for event in slices if event["args"].get("Rule") != "end of the recording")
    n_work = 2 * sum(i + 1 for i in active)
    expect_equal((names["work"], names["setup"], names["whole"]), (n_work, 0, 0), "slices")
    steps = {name for name in names if name.startswith("ProfilerStep#")}
    expect_equal(steps, {f"ProfilerStep#{FIRST_NUMBER + i}" for i in active}, "steps")


@case
def a_forked_child_counts_its_own_steps():
    """Two programs one after the other, and both in a shell: each begins with its step 0."""
    command = ["bash", "-c", f"{shell_words(PROGRAM, 6)}; {shell_words(PROGRAM, 4)}"]
    result, output = record(command, env={"TORSH_PROFILER_SCHEDULE": "skip:1,active:2,repeat:1"})
    expect_equal(result.returncode, 0, "status")
    selection = read_report("regions", output)["selection"]
    expect_equal([(entry["ranges"], entry["steps"]) for entry in selection], [([[101, 102]], 6), ([[101, 102]], 4)],
                 "steps of both")


@case
def torsh_run_takes_a_schedule():
    output = scratch() / "out"
    result = run([TORSH, "run", "--agent", AGENT, "-o", output, "--schedule", "skip:3,active:1,repeat:1", "--", PROGRAM, 6])
    expect_equal(result.returncode, 0, "status")
    expect_equal(calls(read_report("regions", output))["work"], 8, "ranges of step 3")


# ---- steps that PyTorch marks, without PyTorch
# ----------------------------------------------------------------------


def record_stand_in(by, spec):
    python = find_python()
    package = build(python, 0)
    result, output = record([python.path, package / "scheduled.py", N_STEPS, by], env={"TORSH_PROFILER_SCHEDULE": spec})
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return output


def steps_of(by):
    for spec in ("skip:2,wait:1,warmup:1,active:2,repeat:2", "active:3,repeat:2"):
        output, active = record_stand_in(by, spec), chosen(spec, ACTIVE)
        first = FIRST_NUMBER if by == "profiler" else 0
        rule = "profiler_step" if by == "profiler" else "optimizer"
        report = read_report("ops", output, "--limit", "0")
        ours = calls(report, "ops")
        n_work = sum(i + 1 for i in active)
        expect_equal((ours["aten::work"], ours["aten::within"]), (n_work, n_work), "operators")
        # Without modules the first operator begins the first step.
        expect_equal((ours.get("aten::setup", 0), ours.get("aten::teardown", 0)),
                     (int(by != "profiler" and 0 in active), 0), "what is in no step")
        expect_selection(report, [first + i for i in active], rule, spec)
        expect_equal((report["cut_calls"], report["unmatched_ends"]), (0, 0), "calls without ends, ends without calls")
        sent = collections.Counter(event.get("name") for event in events(output) if event["event"] == "op_begin")
        # The first step of an optimizer is recognised when it is over.
        known = chosen(spec, WARM_UP, ACTIVE) + ([] if by == "profiler" or 0 in active else [0])
        expect_equal(sent["aten::work"], sum(i + 1 for i in known), "operators sent")


for teller in ("profiler", "optimizer", "optimizers"):
    add_case(f"steps_by_{teller}", steps_of, teller)


# ---- real PyTorch ---------------------------------------------------------------------------------------------------

TORCH = """
import collections, json, sys, torch
from torch.profiler import ProfilerActivity, profile, schedule

mode, numbers, n_steps = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = collections.Counter()

def step(i):
    # The first step begins with the first module where an optimizer's calls end steps.
    torch.nn.functional.mse_loss(model(torch.ones(2, 4)), torch.zeros(2, 4)).backward()
    for _ in range(i + 1):
        torch.relu(torch.ones(3))
    optimizer.step()
    optimizer.zero_grad()

of_step = schedule(**numbers)
if mode == "profiler":
    def ready(profiler):
        seen.update(event.name for event in profiler.events())
    with profile(activities=[ProfilerActivity.CPU], schedule=of_step, on_trace_ready=ready) as profiler:
        for i in range(n_steps):
            step(i)
            profiler.step()
else:
    for i in range(n_steps):
        step(i)
    # RECORD and RECORD_AND_SAVE
    seen["aten::relu"] = sum(i + 1 for i in range(n_steps) if of_step(i).value >= 2)
json.dump(seen, sys.stdout)
"""


@needs("torch")
def agrees_with_torch(mode, spec):
    script = scratch("script") / "train.py"
    script.write_text(TORCH)
    numbers = {"wait": 0, "warmup": 0, **SPECS[spec]}
    numbers["skip_first"] = numbers.pop("skip", 0)
    result, output = record([torch_python(), script, mode, json.dumps(numbers), N_STEPS],
                            env={"TORSH_PROFILER_SCHEDULE": spec, "TORSH_PROFILER_ACTIVITIES": "torch"})
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    theirs = json.loads(result.stdout)
    report = read_report("ops", output, "--limit", "0")
    ours = calls(report, "ops")
    active = chosen(spec, ACTIVE)
    expect_equal((ours["aten::relu"], theirs["aten::relu"]), (sum(i + 1 for i in active),) * 2, "calls of relu")
    steps = read_report("steps", output, "--limit", "0")
    expect_equal([step["index"] for step in steps["steps"]], active, "steps")
    expect_equal(steps["rule"], "profiler_step" if mode == "profiler" else "optimizer", "rule")
    if mode == "profiler":
        spans = [(step["start_ns"], step["start_ns"] + step["duration_ns"]) for step in steps["steps"]]
        within = [operator for operator in operators(events(output))
                  if any(start <= operator.at_ns < end for start, end in spans)]
        expect_equal(collections.Counter(operator.name for operator in within), ours, "calls that were recorded in the steps")
        ours = collections.Counter(operator.name for operator in without_twins(within))
        names = [name for name in theirs if name.startswith(("aten::", "Optimizer", "ProfilerStep#")) or "Backward" in name]
        differences = {name: (ours.get(name, 0), theirs[name]) for name in names if ours.get(name, 0) != theirs[name]}
        expect_equal(differences, {}, "calls by name, ours and torch.profiler's")


for name in ("skip:2,wait:1,warmup:1,active:2,repeat:2", "active:3,repeat:2"):
    for way in ("profiler", "alone"):
        add_case(f"as_torch_{way}_{name.replace(':', '').replace(',', '_')}", agrees_with_torch, way, name)

main()
