#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Phases and groups of operators in reports of real trainings, against the program's own phase
marks and against sums made from the dump."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from schema import expect_fits  # noqa: E402
from timeline import events  # noqa: E402
from torch_python import OPERATORS_ONLY, TORCH, torch_python  # noqa: E402

SCRIPT = ROOT / "test/python/phases.py"
PHASES = ("data", "forward", "loss", "backward", "optimizer")
N_STEPS = 4
TORSH_SOURCE, MODULE_SOURCE = "torsh", "module"
ENGINE = "autograd::engine::evaluate_function"


# Trained in children of one process; a recording of one process remains, "plain", for reports that are not limited to one.
FORKED = ("functional", "accumulation", "two_optimizers", "closure", "functional_closure", "mixed_precision", "distributed",
          "checkpointed", "without_modules")


def recorded(*ways):
    """The recording of a training in these ways, and the process that each is in: its number and its pid."""
    def make(folder):
        result, output = record([torch_python(), SCRIPT, ROOT / "tools/python", *ways], folder / "out", env=OPERATORS_ONLY)
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
        numbers = numbers_of(output)
        return str(output), {way: [numbers[pid], pid] for way, pid in json.loads(result.stdout).items()}
    return once(f"phases-{'-'.join(ways)}-{TORCH}", make)


def train(way):
    """The recording of a training in that way, the number of its process and what limits a report to it."""
    if way not in FORKED:
        output, _ = recorded(way)
        return output, 1, []
    output, processes = recorded(*FORKED)
    number, pid = processes[way]
    return output, number, ["--pid", str(pid)]


def numbers_of(output):
    """A recording's processes by pid."""
    rows = (json.loads(line)["process"] for line in torsh("dump", output, "--only", "process").splitlines())
    return {row["pid"]: row["process"] for row in rows}


def printed(recorded):
    """The program's marks: (phase, begin, end), innermost first."""
    opened, spans = [], []
    for event in recorded:
        if event["event"] == "range_push" and event["source"] == TORSH_SOURCE:
            opened.append((event["name"], event["at_ns"]))
        elif event["event"] == "range_pop" and event["source"] == TORSH_SOURCE:
            name, begin = opened.pop()
            spans.append((name, begin, event["at_ns"]))
    return sorted(spans, key=lambda span: span[1] - span[2], reverse=True)


def phase_at(spans, at_ns):
    return next((name for name, begin, end in spans if begin <= at_ns < end and name in PHASES), None)


def of_process(found, number):
    return [event for event in found if event.get("process") == number]


def workers_of(found):
    """Processes beside the first one that ran operators."""
    return {event["process"] for event in found if event["event"] == "op_begin"} - {1}


def phases_are_what_the_program_marks(way):
    output, number, only = train(way)
    found = events(output)
    its_own = of_process(found, number)
    spans = printed(its_own)
    nodes = [operator.at_ns for operator in operators(its_own) if operator.name.startswith(ENGINE)]
    setup_end = min(begin for name, begin, _ in spans if name in PHASES)
    theirs = collections.Counter()
    for operator in operators(its_own):
        phase = phase_at(spans, operator.at_ns)
        # What backward() makes before the first node of autograd is in no scope, and taken for what is around.
        if phase == "backward" and not is_after_node(operator, nodes, spans):
            phase = phase_at([span for span in spans if span[0] != "backward"], operator.at_ns)
        theirs[phase or ("setup" if operator.at_ns < setup_end else "forward")] += 1
    of_workers = 0 if only else sum(len(operators(of_process(found, worker))) for worker in workers_of(found))
    expect_equal(by_phase(output, *only), dict(theirs + collections.Counter(data=of_workers)), "operators by phase")
    expect_equal(of_workers > 0, "workers" in way, "workers ran operators")
    steps_are_of_these_phases(output, spans, only)


def by_phase(output, *options):
    report = read_report("ops", output, "--group", "phase", "--limit", "0", *options)
    return {entry["name"]: entry["calls"] for entry in report["ops"]}


def steps_are_of_these_phases(output, spans, only):
    steps = read_report("steps", output, "--limit", "0", *only)
    expect_equal((steps["rule"], len(steps["steps"])), ("optimizer", N_STEPS), "rule and number of steps")
    for step in steps["steps"]:
        begin, end = step["start_ns"], step["start_ns"] + step["duration_ns"]
        expect_equal(sum(step["phases"].values()), step["duration_ns"], f"sum of the phases of step {step['index']}")
        for phase in {name for name, _, _ in spans} & set(PHASES):
            of_program = sum(min(span[2], end) - max(span[1], begin) for span in spans
                             if span[0] == phase and span[1] < end and span[2] > begin)
            assert step["phases"][phase] > 0, f"no {phase} in step {step['index']}: {step}"
            # What is in operators and modules is no more than what the program was in; other things count as forward.
            assert step["phases"][phase] <= of_program or phase == "forward", \
                f"{phase} of step {step['index']}: {step['phases']}, the program was in it for {of_program}"


def is_after_node(operator, nodes, spans):
    """Has a node of autograd begun since the last loss?"""
    loss_end = max((end for name, _, end in spans if name == "loss" and end <= operator.at_ns), default=0)
    return any(loss_end <= node <= operator.at_ns for node in nodes)


@case
def workers_load_data_whichever_is_requested():
    """The same of a worker alone, which only its parent identifies as one."""
    output, *_ = train("workers")
    found = events(output)
    pids = {number: pid for pid, number in numbers_of(output).items()}
    expect_equal(len(workers_of(found)), 2, "workers")
    for number in workers_of(found):
        n = len(operators(of_process(found, number)))
        expect_equal(by_phase(output, "--pid", str(pids[number])), {"data": n}, f"process {number} alone")
    expect_equal(set(by_phase(output, "--pid", str(pids[1]))), {"setup", *PHASES}, "the process that trains, alone")
    memory = read_report("tensors", output, "--limit", "0")["devices"]
    expect_equal({device["pid"] for device in memory}, {pids[n] for n in workers_of(found) | {1}}, "processes with tensors")
    for device in memory:
        expect_equal(sum(holder["bytes"] for holder in device["holders"]), device["peak_bytes"], "bytes at the peak")
        assert device["held_bytes"] <= device["peak_bytes"], f"more at the end than at the peak: {device}"
        # The host's allocator reserves nothing; its values after a fork include the parent's
        # tensors.
        expect_equal({device[name] for name in device if "reserved" in name or "allocated_" in name}, {None}, "its sums")


@case
def windows_hold_what_begins_in_them():
    """Of ops, modules, regions and steps, as the dump has it: regions of the program's own, times, steps, and both."""
    output, *_ = train("plain")
    found = events(output)
    spans = printed(found)
    names = collections.Counter(name for name, _, _ in spans)
    times = sorted(at for span in spans for at in span[1:])
    first, last = f"{times[len(times) // 3]}ns", f"{times[2 * len(times) // 3]}ns"

    def counted(is_in):
        return collections.Counter(operator.name for operator in operators(found) if is_in(operator.at_ns))

    def of_region(name):
        return lambda at: any(begin <= at < end for span, begin, end in spans if span == name)

    between = lambda at: int(first[:-2]) <= at < int(last[:-2])  # noqa: E731
    for arguments, is_in in [(("--region", name), of_region(name)) for name in names] + [
            (("--from", first, "--to", last), between), (("--from", last), lambda at: at >= int(last[:-2])),
            (("--region", "forward", "--to", last), lambda at: of_region("forward")(at) and at < int(last[:-2]))]:
        report = read_report("ops", output, "--limit", "0", *arguments)
        expect_fits("ops", report)
        expect_equal({entry["name"]: entry["calls"] for entry in report["ops"]}, dict(counted(is_in)), f"operators {arguments}")
        assert report["window"]["processes"], arguments
    modules = [event for event in found if event["event"] == "range_push" and event["source"] == MODULE_SOURCE]
    report = read_report("modules", output, "--limit", "0", "--from", first, "--to", last)
    expect_equal(sum(row["calls"] for row in report["modules"]), sum(between(event["at_ns"]) for event in modules), "modules")
    steps = read_report("steps", output, "--limit", "0")["steps"]
    report = read_report("steps", output, "--limit", "0", "--from", first, "--to", last)
    expect_equal([step["index"] for step in report["steps"]], [step["index"] for step in steps if between(step["start_ns"])], "steps")
    report = read_report("regions", output, "--limit", "0", "--from", first, "--to", last)
    expect_equal({row["name"]: row["calls"] for row in report["regions"] if row["name"] in names},
                 dict(collections.Counter(name for name, begin, _ in spans if between(begin))), "regions")
    assert "window: " in torsh("ops", output, "--from", first) and "window" not in read_report("ops", output)
    for wrong, words in ((("--region", "nobody"), 'no region "nobody"'), (("--since", "never"), 'no mark "never"'),
                         (("--from", "2s", "--to", "1s"), "--from has to be before --to")):
        result = run([TORSH, "ops", output, *wrong])
        assert result.returncode == 2 and words in result.stderr.decode(), (wrong, result.stderr)


for name in ("plain", *FORKED, "workers"):
    add_case(f"phases_of_{name}", phases_are_what_the_program_marks, name)
for name in ("spawned_workers", "served_workers"):
    add_long_case(f"phases_of_{name}", phases_are_what_the_program_marks, name)

main()
