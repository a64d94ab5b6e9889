#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every group of torsh ops, and the holders of tensors at their peak, against sums that are made here from the dump."""

import collections
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402
from stand_in import build, find_python  # noqa: E402

BACKWARD, USER, MODULE_SOURCE = 1, 7, "module"
NONE = None
# Of the percentiles, which come from a histogram.
PRECISION = 0.032


def record_groups(**env):
    python = find_python()
    result, output = record([python.path, build(python, 0) / "groups.py"], env=env)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return output


class Call:
    """An operator with the report's values for it."""

    def __init__(self, operator, outer, is_setup):
        self.operator, self.outer, self.module, self.is_setup = operator, outer, NONE, is_setup
        self.allocated = self.freed = 0

    def duration(self):
        return self.operator.end_ns - self.operator.at_ns

    def own(self):
        return self.duration() - sum(child.end_ns - child.at_ns for child in self.operator.children)


def module_of(call, modules, numbers, by_sequence):
    """The innermost one around it; of backward that of the latest forward call with its number, of its forward thread."""
    module = modules[-1] if modules else call.outer.module if call.outer else NONE
    operator = call.operator
    thread = operator.forward_thread if operator.scope == BACKWARD else numbers.get(operator.thread, 0)
    if phase_of(call) == "backward":
        return by_sequence.get((thread, operator.sequence), module)
    if module and operator.sequence is not None:
        by_sequence[thread, operator.sequence] = module
    return module


def calls_of(found, see_tensor=lambda event, call: None):
    """Calls in their order, with their modules and the tensors that they allocated themselves, which are shown."""
    by_begin = {(operator.thread, operator.at_ns, operator.record): operator for operator in operators(found)}
    calls, stacks, modules, by_sequence, numbers = [], collections.defaultdict(list), collections.defaultdict(list), {}, {}
    is_setup = any(event["event"] == "range_push" and event["source"] == MODULE_SOURCE for event in found)
    for event in found:
        thread = event.get("thread")
        if (event.get("source") == MODULE_SOURCE and event["event"] == "range_push"
                or event["event"] == "op_begin" and event["name"].startswith("enumerate(DataLoader)")):
            is_setup = False
        if event["event"] == "range_push" and event["source"] == MODULE_SOURCE:
            modules[thread].append(event["name"])
        elif event["event"] == "range_pop" and event["source"] == MODULE_SOURCE:
            modules[thread].pop()
        elif event["event"] == "op_thread":
            numbers[thread] = event["number"]
        elif event["event"] == "op_begin":
            call = Call(by_begin[thread, event["at_ns"], event["record"]], (stacks[thread] or [NONE])[-1], is_setup)
            call.module = module_of(call, modules[thread], numbers, by_sequence)
            stacks[thread].append(call)
            calls.append(call)
        elif event["event"] == "op_end":
            stacks[thread].pop()
        elif event["event"] == "tensor":
            call = (stacks[thread] or [NONE])[-1]
            see_tensor(event, call)
            if call and event["is_free"]:
                call.freed += event["bytes"]
            elif call:
                call.allocated += event["bytes"]
    return calls


def phase_of(call):
    name = call.operator.name
    if name.startswith("Optimizer."):
        return "optimizer"
    if name.startswith("enumerate(DataLoader)"):
        return "data"
    if call.operator.scope == BACKWARD:
        return "backward"
    if call.outer and phase_of(call.outer) not in ("setup", "forward"):
        return phase_of(call.outer)
    return "loss" if call.module and call.module.endswith("Loss") else "setup" if call.is_setup else "forward"


def step_of(steps):
    spans = [(step["start_ns"], step["start_ns"] + step["duration_ns"], step["index"]) for step in steps["steps"]]
    return lambda call: next((index for begin, end, index in spans if begin <= call.operator.at_ns < end), NONE)


def sums(calls, key):
    """By key: calls, own and total time, memory of their own and with what is inside, durations."""
    groups = collections.defaultdict(lambda: [0, 0, 0, 0, 0, []])
    for call in calls:
        group = groups[key(call)]
        group[0] += 1
        group[1] += call.own()
        group[3] += call.allocated
        group[4] += call.freed
        group[5].append(call.duration())
    return groups


def nearest_rank(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def expect_groups(ours, theirs):
    found = {key: [entry[name] for name in ("calls", "self_cpu_ns", "self_allocated_bytes", "self_freed_bytes", "min_ns",
                                            "max_ns")] for key, entry in ours.items()}
    expect_equal(found, {key: [group[0], group[1], group[3], group[4], min(group[5]), max(group[5])]
                         for key, group in theirs.items()}, "groups")
    for key, entry in ours.items():
        for name, share in (("p50_ns", 0.5), ("p99_ns", 0.99)):
            exact = nearest_rank(theirs[key][5], share)
            assert abs(entry[name] - exact) <= PRECISION * exact + 1, f"{name} of {key}: {entry[name]}, exact {exact}"


def report_of(output, group, *options):
    return read_report("ops", output, "--group", group, "--limit", "0", *options)


@case
def groups_are_those_of_the_dump():
    output = record_groups()
    calls = calls_of(events(output))
    step = step_of(read_report("steps", output, "--limit", "0"))
    keys = {
        "name": (lambda entry: entry["name"], lambda call: call.operator.name),
        "shape": (lambda entry: (entry["name"], entry["inputs"]), lambda call: (call.operator.name, call.operator.inputs)),
        "module": (lambda entry: entry["name"], lambda call: call.module),
        "phase": (lambda entry: entry["name"], phase_of),
        "step": (lambda entry: entry["step"], step),
    }
    assert len(calls) > 150, f"{len(calls)} calls"
    for group, (of_entry, of_call) in keys.items():
        report = report_of(output, group)
        theirs = sums(calls, of_call)
        assert len(theirs) > 2, f"{group}: {dict(theirs)}"
        expect_groups({of_entry(entry): entry for entry in report["ops"]}, theirs)
        expect_equal((report["calls"], report["self_cpu_ns"]), (len(calls), sum(call.own() for call in calls)), "sums")
        expect_equal(total(report["ops"], "calls"), len(calls), f"calls of all groups by {group}")


@case
def stacks_are_those_of_the_dump():
    output = record_groups(TORSH_PROFILER_OPERATOR_STACKS="1")
    calls = calls_of(events(output))
    theirs = sums(calls, lambda call: (call.operator.name, call.operator.stack))
    found = sorted((entry["name"], entry["calls"], entry["self_cpu_ns"]) for entry in report_of(output, "stack")["ops"])
    expect_equal(found, sorted((key[0], group[0], group[1]) for key, group in theirs.items()), "groups by stack")
    assert len(found) > 10, found


@case
def threads_are_distinguished():
    output = record_groups()
    calls = calls_of(events(output))
    [process] = read_report("report", output)["processes"]
    main = [call for call in calls if call.operator.thread == calls[0].operator.thread]
    report = report_of(output, "name", "--thread", str(process["pid"]))
    expect_groups({entry["name"]: entry for entry in report["ops"]}, sums(main, lambda call: call.operator.name))
    assert len(main) < len(calls), "no other thread had an operator"


@case
def sorts_and_limits():
    output = record_groups()
    everything = report_of(output, "name")["ops"]
    orders = {"self": "self_cpu_ns", "total": "cpu_ns", "calls": "calls", "average": "average_ns", "p99": "p99_ns",
              "memory": "self_allocated_bytes", "flops": "self_flops_all"}
    for order, field in orders.items():
        report = read_report("ops", output, "--sort", order, "--limit", "3")
        values = [entry[field] or 0 for entry in report["ops"]]
        expect_equal(values, sorted((entry[field] or 0 for entry in everything), reverse=True)[:3], f"first by {order}")
        expect_equal(report["omitted"], len(everything) - 3, "left out")
    names = [entry["name"] for entry in read_report("ops", output, "--sort", "name", "--limit", "0")["ops"]]
    expect_equal(names, sorted(entry["name"] for entry in everything), "by name")


def replay(recording):
    """Tensors that are live at the peak, each as bytes, operator, module and stack; and what is held at the peak and the end."""
    live, now, most = {}, {"held": 0}, {"held": 0}

    def see_tensor(event, call):
        if event["is_free"]:
            now["held"] -= live.pop(event["address"])[0]
            return
        live[event["address"]] = event["bytes"], *((call.operator.name, call.module) if call else (NONE, NONE)), event["stack"]
        now["held"] += event["bytes"]
        if now["held"] > most["held"]:
            most.update(held=now["held"], live=dict(live))

    calls_of(events(recording), see_tensor)
    return most, now


@case
def holders_of_tensors_are_those_of_a_replay():
    output = record_groups()
    most, now = replay(output)
    report = read_report("tensors", output, "--limit", "0")
    [device] = report["devices"]
    expect_equal((device["device"], device["peak_bytes"], device["peak_blocks"], device["held_bytes"]),
                 ("cpu", most["held"], len(most["live"]), now["held"]), "peak and what is held at the end")
    theirs = collections.Counter()
    for n_bytes, operator, module, _ in most["live"].values():
        theirs[operator, module] += n_bytes
    ours = collections.Counter()
    for holder in device["holders"]:
        ours[holder["operator"], holder["module"]] += holder["bytes"]
    expect_equal(ours, theirs, "holders at the peak")
    assert len(theirs) > 3, theirs


@case
def stacks_of_tensors_are_those_of_a_replay():
    output = record_groups()
    most, _ = replay(output)
    theirs = collections.defaultdict(lambda: [0, 0])
    for n_bytes, _, _, stack in most["live"].values():
        theirs[stack][0] += n_bytes
        theirs[stack][1] += 1
    [device] = read_report("tensors", output, "--group", "stack", "--limit", "0")["devices"]
    expect_equal(sorted([holder["bytes"], holder["blocks"]] for holder in device["holders"]), sorted(theirs.values()),
                 "bytes and blocks of each stack")
    assert len(theirs) > 3, theirs
    # Lines of the program that allocate; a tensor without a stack would be in none.
    lines = {(frame["function"], frame["line"]) for holder in device["holders"] for frame in holder["stack"]
             if (frame["file"] or "").endswith("groups.py")}
    source = (ROOT / "test/torch_stand_in/groups.py").read_text().splitlines()
    assert all("(" in source[line - 1] for _, line in lines), lines
    assert {"work", "inner", "<module>"} <= {function.rsplit(".", 1)[-1] for function, _ in lines}, lines


main()
