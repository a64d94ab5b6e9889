#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
CUDA graphs on the simulated CUDA: each kernel at the line that captured, added or launched it, the memory that graphs get
against the simulation's own log, and nodes that run their graphs several times or never.
"""

import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from exported import exported  # noqa: E402
from simcuda import cuda_python, duration_ns, need_simcuda, of_kind, record_simulated  # noqa: E402
import schema  # noqa: E402

KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
SOURCE = ROOT / "test/simcuda/programs/graphs.c"
STACKS = {"TORSH_PROFILER_OPERATOR_STACKS": "1"}
N_LAUNCHES = 4
# CUpti_ActivityMemoryKind, as the log has it.
DEVICE, ARRAY = 3, 4

CAPTURED = """
import torch
x = torch.randn(1 << 10, device="cuda")
def inner(y):
    z = torch.relu(y)
    return z.exp()
def work():
    y = inner(x * 2)
    return torch.cat([y, y])
work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    work()
for i in range(7):
    graph.replay()
torch.cuda.synchronize()
"""


def program():
    need_simcuda()
    return BUILD / "simcuda/programs/graphs"


def kernels_report(output):
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    for row in report["kernels"] + report["copies"] + report["graphs"]:
        in_lines = sum(line["calls"] for line in row["lines"])
        expect_equal(in_lines + row["calls_without_line"], row["calls"], "calls with and without a line")
    return report


def lines_by_kernel(report):
    """(line, captured, calls) of each kernel's."""
    return {row["symbol"]: {(line["line"], line["captured"], line["calls"]) for line in row["lines"]}
            for row in report["kernels"]}


def lines_of_source():
    """By kernel the line that launches it, from the program's comments; a comment on a line of its
    own is about the next line."""
    return {match[1]: number + line.strip().startswith("/*") for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
            if (match := re.search(r"/\* line of (\w+) \*/", line))}


@case
def kernels_of_a_programs_graphs_are_at_the_lines_that_captured_them():
    printed = lines_of_source()
    output, truth = record_simulated([program(), "lines"])
    report = kernels_report(output)
    calls = collections.Counter(line["name"] for line in of_kind(truth, "kernel"))
    expect_equal(lines_by_kernel(report), {
        **{name: {(printed[name], True, calls[name])} for name in ("captured", "captured_thrice", "added")},
        "launched": set(),
    }, "lines")
    (row,) = [row for row in report["kernels"] if row["symbol"] == "captured"]
    (line,) = row["lines"]
    expect_equal((line["function"], pathlib.Path(line["file"]).name), ("capture_some", SOURCE.name), "place")
    expect_equal(line["total_ns"], sum(duration_ns(line) for line in of_kind(truth, "kernel") if line["name"] == "captured"),
                 "time")


@case
def launches_have_their_lines_where_these_are_requested():
    printed = lines_of_source()
    for faults in ("", "cuptiActivityEnable=10"):
        output, _ = record_simulated([program(), "lines"], env=STACKS, faults=faults)
        found = lines_by_kernel(kernels_report(output))
        expect_equal(found["launched"], {(printed["launched"], False, 5)}, f"launched, with the faults {faults!r}")
    # Without CUPTI nodes are not reported; what is missing is not made up.
    assert not any(captured for lines in found.values() for _, captured, _ in lines), found


@case
def without_stacks_kernels_have_no_lines():
    output, _ = record_simulated([program(), "lines"], env={"TORSH_PROFILER_WITH_STACK": "0"})
    expect_equal(set().union(*lines_by_kernel(kernels_report(output)).values()), set(), "lines")


@case
def exports_report_the_line_of_a_graphs_kernel():
    printed = lines_of_source()
    output, _ = record_simulated([program(), "lines"], env=STACKS)
    trace = json.loads(exported(output, "t.json", "--format", "chrome").read_text())["traceEvents"]
    at = {event["name"]: event["args"].get("requested at") for event in trace if event.get("cat") == "kernel"}
    profile = json.loads(exported(output, "p.json", "--format", "profile").read_text())
    in_profile = {kernel["kernel_name"]: kernel["source_line"]
                  for kernel in [kernel for operator in profile["operators"] for kernel in operator["kernels"]]
                  + profile["unattributed_kernels"]}
    for name, line in printed.items():
        assert f"{SOURCE.name}({line}): " in at[name], (name, at)
        expect_equal(in_profile[name], at[name], name)
    picture = exported(output, "t.pftrace", "--format", "perfetto").read_bytes()
    assert b"asked_for_at" in picture
    for name, line in printed.items():
        assert f"{SOURCE.name}({line}): ".encode() in picture, name
    launches = [event for event in trace if event.get("cat") == "cuda_driver" and event["name"] == "cuLaunchKernel"]
    assert all("launch_some" in event["args"]["Call stack"] or "capture_some" in event["args"]["Call stack"]
               for event in launches), launches


@case
@needs("torch")
def kernels_of_pytorchs_graphs_are_at_the_lines_that_captured_them():
    output, truth = record_simulated([cuda_python(), "-c", CAPTURED])
    report = kernels_report(output)
    lines = collections.Counter()
    for row in report["kernels"] + report["copies"]:
        for line in row["lines"]:
            if line["captured"]:
                expect_equal(line["file"], "<string>", "file")
                lines[line["function"], line["line"]] += line["calls"]
    replayed = [line for line in of_kind(truth, *KINDS) if line["node"]]
    expect_equal(sum(lines.values()), len(replayed), "nodes that ran")
    expect_equal({place: calls // 7 for place, calls in lines.items()},
                 {("inner", 5): 1, ("inner", 6): 1, ("work", 8): 1, ("work", 9): lines["work", 9] // 7}, "lines")
    text = torsh("kernels", output)
    assert "captured at inner, <string>:5" in text, text


@case
@needs("torch")
def eager_kernels_of_pytorch_have_lines_where_stacks_are_requested():
    output, truth = record_simulated([cuda_python(), "-c", CAPTURED], env=STACKS)
    report = kernels_report(output)
    places = {(line["function"], line["line"]) for row in report["kernels"] for line in row["lines"] if not line["captured"]}
    assert {("inner", 5), ("inner", 6), ("work", 8), ("work", 9)} <= places, places
    expect_equal(sum(row["calls_without_line"] for row in report["kernels"] + report["copies"]), 0, "without a line")


# ---- memory ----------------------------------------------------------------------------------------------------------------

class Memory:
    """The device's state by the log: what is alive, and the highest sum."""

    def __init__(self, truth):
        self.live, self.peak_bytes, self.allocs, self.frees = {}, 0, 0, 0
        for line in of_kind(truth, "alloc", "free"):
            if line["memory"] not in (DEVICE, ARRAY):
                continue
            if line["kind"] == "free":
                del self.live[line["address"]]
                self.frees += 1
                continue
            assert line["address"] not in self.live, line
            self.live[line["address"]] = line["bytes"]
            self.allocs += 1
            self.peak_bytes = max(self.peak_bytes, self.bytes())

    def bytes(self):
        return sum(self.live.values())


def compare_memory(output, truth):
    memory = Memory(truth)
    leaks = read_report("leaks", output, "--device", "cuda:0", "--limit", "0")
    peak = read_report("peak", output, "--device", "cuda:0", "--limit", "0")
    schema.expect_fits("leaks", leaks)
    schema.expect_fits("peak", peak)
    (device,) = leaks["devices"]
    expect_equal((leaks["leaked_bytes"], leaks["leaked_blocks"]), (memory.bytes(), len(memory.live)), "left")
    expect_equal((peak["peak_bytes"], peak["attributed_bytes"]), (memory.peak_bytes, memory.peak_bytes), "peak")
    expect_equal((device["allocs"], device["frees"]), (memory.allocs, memory.frees), "allocations and frees")
    expect_equal(device["unknown_frees"], 0, "frees of what nobody knows")
    return memory, leaks


@case
def memory_of_simulated_graphs_is_alive_from_a_launch_to_its_free():
    output, truth = record_simulated([program(), "memory"])
    expect_equal(of_kind(truth, "unsupported"), [], "calls that are not simulated")
    memory, leaks = compare_memory(output, truth)
    expect_equal(memory.bytes(), 2 * 200 * 1024, "left by the program")
    functions = {frame["function"] for leak in leaks["leaks"] for frame in leak["stack"]}
    assert "leak_captured" in functions, functions
    (leak,) = {leak["blocks"] for leak in leaks["leaks"]}
    expect_equal(leak * len(leaks["leaks"]), 2, "blocks")


@case
def random_memory_of_simulated_graphs_is_followed_exactly():
    for seed in (1, 2, 3):
        output, truth = record_simulated([program(), "random", seed])
        memory, _ = compare_memory(output, truth)
        assert memory.allocs == 20 * 5 * 6, memory.allocs


@case
def memory_that_no_simulated_graph_has_is_trimmed():
    output, truth = record_simulated([program(), "trim"])
    memory, leaks = compare_memory(output, truth)
    expect_equal(memory.bytes(), 0, "left")
    (device,) = leaks["devices"]
    expect_equal(device["driver"]["graphs"], {"reserved_bytes": 0, "reserved_high_bytes": 512 << 10, "used_bytes": 0,
                                              "used_high_bytes": 512 << 10}, "as the driver reports")


@case
@needs("torch")
def memory_that_pytorch_gets_in_a_simulated_graph_adds_up():
    output, truth = record_simulated([cuda_python(), "-c", CAPTURED], env={"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"})
    assert any(event["event"] == "graph_memory" for event in events(output)), "no node of the graph gets memory"
    memory = Memory(truth)
    (device,) = read_report("leaks", output, "--device", "cuda:0")["devices"]
    expect_equal((device["current_bytes"], device["allocs"], device["unknown_frees"]), (memory.bytes(), memory.allocs, 0), "alive")
    peak = read_report("peak", output, "--device", "cuda:0")
    expect_equal((peak["peak_bytes"], peak["attributed_bytes"]), (memory.peak_bytes, memory.peak_bytes), "peak")


# ---- conditions --------------------------------------------------------------------------------------------------------------

def operations(lines, fields):
    """What was done how often, by fields that name it; of what a node does several times each is one."""
    return collections.Counter(tuple(line[field] for field in fields) for line in lines)


@case
def graphs_within_simulated_graphs_run_as_often_as_they_should():
    for rounds in (1, 3):
        output, truth = record_simulated([program(), "conditions"], loop_rounds=rounds)
        done = collections.Counter(line["name"] for line in of_kind(truth, "kernel"))
        expect_equal(done, {"if_then": N_LAUNCHES, "if_else": N_LAUNCHES, "in_loop": 2 * rounds * N_LAUNCHES,
                            "in_inner_loop": rounds * rounds * N_LAUNCHES, "in_switch": N_LAUNCHES,
                            "in_child": 2 * N_LAUNCHES}, "kernels")
        expect_equal(of_kind(truth, "violation", "unsupported"), [], "violations")
        found = [event for event in events(output) if event["event"] == "kernel"]
        fields = ("name", "correlation", "node", "graph", "device", "context", "stream")
        expect_equal(operations(found, fields), operations(of_kind(truth, "kernel"), fields), "records")
        expect_equal(sum(event["duration_ns"] for event in found), sum(map(duration_ns, of_kind(truth, "kernel"))), "time")
        report = kernels_report(output)
        expect_equal({row["symbol"]: row["calls"] for row in report["kernels"]}, dict(done), "calls")
        assert all(row["calls_without_line"] == 0 for row in report["kernels"]), report["kernels"]


if __name__ == "__main__":
    main()
