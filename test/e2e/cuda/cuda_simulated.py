#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the agent records of devices, on the simulated CUDA: each kernel, copy and memset against the simulation's own log,
and on the operator that launched it.
"""

import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402
from simcuda import (PROFILED, cuda_python, duration_ns, of_kind, record_simulated, recording_environment,
                     trained_with_graphs)  # noqa: E402
import schema  # noqa: E402

PROGRAM = PROGRAMS / "cuda_driver"
KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
WAITS = {1: "event", 2: "stream for event", 3: "stream", 4: "context"}
LOSSES = ("dropped", "without_room", "invalid", "flushes_cut", "buffers_kept")
COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}

TRAIN = """
import torch
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(3):
    x = torch.randn(16, 64).to(device)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""

GRAPHS = """
import torch
x = torch.randn(1 << 10, device="cuda")
layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
inputs = torch.randn(16, 64, device="cuda")

def work():
    y = torch.relu(x * 2)
    return torch.cat([y, y.exp()])

def step(forward):
    loss = forward(inputs).sum()
    loss.backward()

work()
step(layer)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    work()
for i in range(7):
    graph.replay()
graphed = torch.cuda.make_graphed_callables(layer, (inputs,))
for i in range(3):
    step(graphed)
torch.cuda.synchronize()
"""


def spans(found):
    """What devices did, by what identifies it in the simulation."""
    return {(event["correlation"], event["node"]): event for event in found if event["event"] in KINDS.values()}


def compare(found, truth, within_ns=0):
    """Every operation once, with its name, place, bytes and nanoseconds."""
    expected, ours = of_kind(truth, *KINDS), spans(found)
    expect_equal(of_kind(truth, "violation"), [], "violations")
    expect_equal(sum(event["event"] in KINDS.values() for event in found), len(ours), "different keys")
    expect_equal(len(ours), len(expected), "operations")
    for line in expected:
        event = ours[line["correlation"], line["node"]]
        expect_equal(event["event"], KINDS[line["kind"]], "what")
        assert abs(event["duration_ns"] - duration_ns(line)) <= within_ns, (event, line)
        for field in ("device", "context", "stream", "graph"):
            expect_equal(event[field], line[field], field)
        if line["kind"] == "kernel":
            expect_equal([event[f"grid_{axis}"] for axis in "xyz"], line["grid"], "grid")
            expect_equal([event[f"block_{axis}"] for axis in "xyz"], line["block"], "block")
            expect_equal((event["name"], event["registers"]), (line["name"], line["registers"]), "name, registers")
            expect_equal(event["dynamic_shared_bytes"], line["shared"], "shared memory")
        else:
            expect_equal(event["bytes"], line["bytes"], "bytes")
        if line["kind"] == "memcpy":
            expect_equal(event["kind"], COPY_KINDS[line["copy"]], "direction")
        if line["kind"] == "memset":
            expect_equal(event["value"], line["value"], "value")


def losses(report):
    (process,) = report["processes"]
    return {name: process[name] for name in LOSSES}


def check_report(output, truth):
    """torsh kernels prints the sums of the log."""
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    expect_equal([process["mode"] for process in report["processes"]], ["CUPTI"], "mode")
    expect_equal(losses(report), dict.fromkeys(LOSSES, 0), "losses")
    sums = collections.Counter()
    for line in of_kind(truth, "kernel"):
        sums[line["name"]] += duration_ns(line)
    expect_equal({kernel["symbol"]: kernel["total_ns"] for kernel in report["kernels"]}, dict(sums), "time of kernels")
    copies = collections.Counter()
    for line in of_kind(truth, "memcpy", "memset"):
        copies[line.get("copy", "memset")] += line["bytes"]
    expect_equal({copy["kind"]: copy["bytes"] for copy in report["copies"]}, dict(copies), "bytes of copies")
    expect_equal(report["total_ns"], sum(duration_ns(line) for line in of_kind(truth, *KINDS)), "time of devices")
    return report


@case
def simulated_work_of_a_program_is_recorded_exactly():
    output, truth = record_simulated([PROGRAM, 1, 20], kernel_ns=12345)
    compare(events(output), truth)
    report = check_report(output, truth)
    expect_equal({row["reason"] for row in report["unattributed"]},
                 {"it was launched outside of every operator that was recorded"}, "reasons")


@case
def simulated_work_of_many_threads_is_recorded_exactly():
    output, truth = record_simulated([PROGRAM, 16, 500], kernel_ns=300)
    expect_equal(len(of_kind(truth, "kernel")), 16 * 500, "kernels")
    compare(events(output), truth)
    check_report(output, truth)


@case
def simulated_kernels_begin_after_their_launch_on_one_clock():
    output, _ = record_simulated([PROGRAM, 1, 50])
    found = events(output)
    launches = {event["correlation"]: event for event in found if event["event"] == "launch"}
    assert launches
    width_ns = read_report("kernels", output)["processes"][0]["clock_width_ns"]
    for event in spans(found).values():
        assert event["begin_ns"] + width_ns + 1000 >= launches[event["correlation"]]["begin_ns"], (event, launches)


@case
def simulated_records_of_other_versions_of_cupti_are_read():
    for version in ("120400", "120800", "130000"):
        output, truth = record_simulated([PROGRAM, 1, 10], cupti_version=version)
        compare(events(output), truth)


@case
def simulated_work_is_there_after_underscore_exit():
    output, truth = record_simulated([PROGRAM, 2, 30, "_exit"], expect=3)
    found = events(output)
    # The simulation writes its log at its own end, which is not reached here: the program prints
    # what it did.
    expect_equal(collections.Counter(event["event"] for event in found if event["event"] in KINDS.values()),
                 {"kernel": 60, "copy": 6, "memset": 2}, "what was recorded")
    assert not of_kind(truth, "violation"), truth


@case
def a_flush_that_hangs_at_the_end_does_not_hold_the_program():
    for how, status in (("return", 0), ("_exit", 3)):
        # An hour: a process that waits for it ends with the test.
        output, _ = record_simulated([PROGRAM, 1, 10, how], expect=status, flush_ns=3600_000_000_000)
        report = read_report("kernels", output)
        expect_equal([process["flushes_cut"] for process in report["processes"]], [1], "flushes_cut")
        assert any("did not end within 2 s" in note for note in report["notes"]), report["notes"]


@case
def a_flush_that_is_slow_is_waited_for():
    output, truth = record_simulated([PROGRAM, 1, 10], flush_ns=300_000_000)
    compare(events(output), truth)
    check_report(output, truth)


@case
def exec_brings_what_was_done_before_it():
    output, _ = record_simulated([PROGRAM, 2, 30, "exec"])
    found = events(output)
    expect_equal(collections.Counter(event["event"] for event in found if event["event"] in KINDS.values()),
                 {"kernel": 60, "copy": 6, "memset": 2}, "what was recorded")


@case
def simulated_cupti_is_left_alone_by_a_forked_child():
    output, truth = record_simulated([PROGRAM, 1, 10, "fork"])
    compare(events(output), truth)


# libcupti is loaded, as PyTorch does, but not called: without a driver many of its functions call themselves for ever.
REAL = """
import ctypes, sys
runtime, cupti = (ctypes.CDLL(path) for path in sys.argv[1:])
n, pointer = ctypes.c_int(), ctypes.c_void_p()
print(runtime.cudaGetDeviceCount(ctypes.byref(n)), runtime.cudaMalloc(ctypes.byref(pointer), 4096), n.value)
"""


@case
def the_real_libraries_without_a_driver_are_left_alone():
    paths = [next(iter(sorted(BUILD.glob(f"venv/lib/python3*/site-packages/nvidia/cu13/lib/{name}.so.13"))), None)
             for name in ("libcudart", "libcupti")]
    if not all(paths):
        missing("PyPI's libraries of CUDA 13 are not below build/venv")
    command, output = [sys.executable, "-c", REAL, *paths], scratch()
    alone, ours = run(command, clean_environment()), run(command, agent_environment(output))
    if alone.stdout.decode().startswith("0 "):
        raise Skip("there is a driver")
    expect_equal((ours.stdout, ours.returncode), (alone.stdout, alone.returncode), "what the program saw")
    (process,) = read_report("kernels", output)["processes"]
    expect_equal((process["mode"], process["reason"]),
                 ("HOST_ONLY", "CUDA's runtime is loaded, but no driver started in this process"), "mode")


@case
def without_the_activity_simulated_cuda_is_left_alone():
    output, truth = record_simulated([PROGRAM], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal(of_kind(truth, "injection"), [], "injected tools")
    expect_equal(spans(events(output)), {}, "what was recorded")


def innermost_operators(found):
    """By correlation, the operator that was open on the launching thread when the call returned."""
    all_of_them, by_launch = operators(found), {}
    for launch in (event for event in found if event["event"] == "launch"):
        around = [operator for operator in all_of_them if operator.thread == launch["thread"]
                  and operator.at_ns <= launch["at_ns"] <= (operator.end_ns or operator.at_ns)]
        by_launch[launch["correlation"]] = max(around, key=lambda operator: operator.at_ns).name if around else None
    return by_launch


@case
def calls_and_waits_on_simulated_cuda_are_those_of_the_truth():
    output, truth = record_simulated([PROGRAM, 4, 20], log_calls=1, kernel_ns=200_000)
    report = check_report(output, truth)
    made = collections.Counter(line["name"] for line in of_kind(truth, "call"))
    calls = {call["name"]: call for call in report["calls"]}
    for name in ("cuLaunchKernel", "cuStreamCreate", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemAlloc_v2", "cuMemFree_v2",
                 "cuMemcpyHtoD_v2", "cuMemsetD8_v2"):
        expect_equal((calls[name]["calls"], calls[name]["failed"]), (made[name], 0), name)
    assert "cuCtxSetCurrent" not in calls, "queried all the time"
    waits = collections.Counter()
    for line in of_kind(truth, "sync"):
        waits[WAITS[line["type"]]] += duration_ns(line)
    expect_equal({wait["kind"]: wait["total_ns"] for wait in report["waits"]}, dict(waits), "waits")


@case
def simulated_devices_are_described_and_filled():
    output, _ = record_simulated([PROGRAM, 1, 10], devices=2, processors=8, arch=86, memory="1G")
    report = read_report("kernels", output)
    expect_equal([(device["device"], device["multiprocessors"], device["compute_capability"], device["memory_bytes"])
                  for device in report["devices"]], [(0, 8, "8.6", 1 << 30), (1, 8, "8.6", 1 << 30)], "devices")
    (kernel,) = report["kernels"]
    (launch,) = kernel["launches"]
    expect_equal((launch["grid"], launch["block"], launch["registers"], launch["dynamic_shared_bytes"]),
                 ([4, 2, 1], [64, 1, 1], 32, 256), "launch")
    # 64 warps and 32 blocks of 2 warps each: all of them, on 8 multiprocessors.
    expect_equal((launch["occupancy"], launch["limited_by"], launch["waves"]), (1, "warps", 8 / (32 * 8)), "occupancy")
    output, _ = record_simulated([PROGRAM, 1, 10], arch=61)
    (kernel,) = read_report("kernels", output)["kernels"]
    expect_equal((kernel["launches"][0]["occupancy"], kernel["launches"][0]["occupancy_reason"]),
                 (None, "the rules for this compute capability are not known"), "of an old device")


def whatever_is_missing(report):
    """What a report contains about a degradation: the mode's reasons, notes, and counts that are
    not 0."""
    printed = [process["reason"] for process in report["processes"] if process["reason"]]
    printed += [note for note in report["notes"] if note.startswith("cuda")]
    printed += [(name, process[name]) for process in report["processes"] for name in LOSSES if process[name] != 0]
    return printed + [row["reason"] for row in report["unattributed"] if "not seen" in row["reason"]]


@case
def each_function_of_simulated_cupti_may_fail():
    # Functions that are called only for another client, only after a failure, or for which a
    # failure loses nothing.
    unneeded = {"ActivityRegisterTimestampCallback", "ActivityDisable", "Unsubscribe", "GetDeviceId", "GetContextId", "Subscribe", "GetResultString", "ActivityFlushPeriod",
                "GetGraphNodeId", "GetGraphId"}
    names = re.findall(r"^CUPTI(?:_OPTIONAL)?\((\w+),", (ROOT / "shim/cuda/cupti.def").read_text(), re.M)
    assert len(names) > 12, names
    for name in names:
        for fault in ("999", "1@1") if IS_QUICK else ("999", "999@2+", "1@1", "15", "35@1"):
            output, truth = record_simulated([PROGRAM, 2, 20], faults=f"cupti{name}={fault}")
            expect_equal(of_kind(truth, "violation"), [], f"violations with {name}={fault}")
            expect_equal(len(of_kind(truth, "kernel")), 40, f"what the program did with {name}={fault}")
            report = read_report("kernels", output)
            is_whole = len(spans(events(output))) == len(of_kind(truth, *KINDS))
            assert is_whole or whatever_is_missing(report), (name, fault, report)
            if fault == "999" and name not in unneeded:
                assert whatever_is_missing(report), (name, fault, report)


@case
def simulated_cupti_is_flushed_once_at_the_end():
    # What is complete, and what still runs: a third flush would fail, and one after the driver's own end harm.
    output, truth = record_simulated([PROGRAM, 1, 20], faults="cuptiActivityFlushAll=999@3+")
    compare(events(output), truth)
    (process,) = read_report("kernels", output)["processes"]
    expect_equal(process["flushes_cut"], 0, "flushes that failed")


@case
def simulated_memory_of_a_device_that_cupti_does_not_name_is_there():
    output, _ = record_simulated([PROGRAM, 1, 20], faults="cuptiGetDeviceId=999")
    result = run([TORSH, "peak", output, "--device", "cuda:0"])
    expect_equal(result.returncode, 2, "status")
    assert b'it has that of cuda:?' in result.stderr, result.stderr
    report = json.loads(torsh("peak", output, "--device", "cuda:?", "--json"))
    expect_equal(report["peak_bytes"], 2 * 4096, "bytes")


@case
def lost_buffers_of_simulated_cupti_are_counted():
    for every in (1, 2):
        output, truth = record_simulated([PROGRAM, 8, 100], lost_buffers=every)
        report = read_report("kernels", output)
        (process,) = report["processes"]
        assert process["buffers_kept"] > 0, process
        recorded, done = spans(events(output)), of_kind(truth, *KINDS)
        # Of every second one it depends on the threads what it holds.
        assert every > 1 or not recorded, recorded
        assert {(line["correlation"], line["node"]) for line in done} >= set(recorded), "invented"


@case
def untimed_kernels_of_simulated_cupti_are_counted():
    output, truth = record_simulated([PROGRAM, 1, 100], untimed_kernels=10)
    (process,) = read_report("kernels", output)["processes"]
    expect_equal(process["invalid"], 10, "invalid")
    expect_equal(sum(event["event"] == "kernel" for event in spans(events(output)).values()), 90, "kernels")


@case
def simulated_kernels_of_more_threads_than_we_have_buffers_for():
    output, truth = record_simulated([PROGRAM, 64, 50])
    compare(events(output), truth)
    check_report(output, truth)


@case
def a_drifting_and_stepping_clock_of_simulated_cupti_is_followed():
    # 50 ppm, and NTP's steps forth and back while kernels run.
    settings = {"skew_ppb": 50_000, "clock_steps": "400000000:50000000,900000000:-30000000", "kernel_ns": 20_000_000}
    output, _ = record_simulated([PROGRAM, 1, 70], **settings)
    found = events(output)
    (process,) = read_report("kernels", output)["processes"]
    assert 49_000_000 <= process["clock_step_ns"] <= 51_000_000, process
    launches = {event["correlation"]: event for event in found if event["event"] == "launch"}
    # The clock may step anywhere between two readings: a time may be off by the step, which the
    # report contains.
    for event in spans(found).values():
        early_ns = launches[event["correlation"]]["begin_ns"] - event["begin_ns"]
        assert early_ns <= process["clock_width_ns"] + process["clock_step_ns"] + 1000, (event, early_ns, process)


@case
def a_program_that_is_killed_keeps_what_was_delivered():
    output, expected = scratch(), {"kernel": 60, "copy": 6, "memset": 2}

    def delivered():
        return collections.Counter(event["event"] for event in events(output) if event["event"] in KINDS.values())

    environment = recording_environment(output, scratch("truth") / "truth", {"TORSH_PROFILER_CHECKPOINT": "100ms"})
    with started([PROGRAM, 2, 30, "wait"], environment) as process:
        # CUPTI delivers its records once a second.
        wait_until(lambda: recordings(output) and delivered() == expected, f"{expected} in the recording")
        process.kill()
    expect_equal(delivered(), expected, "what was recorded")
    report = read_report("kernels", output)
    expect_equal([process["records"] for process in report["processes"]], [None], "losses are not known")


@case
def a_program_may_end_in_a_function_of_a_stream():
    for how in ("host_exit", "host__exit", "quick_exit"):
        output, _ = record_simulated([PROGRAM, 1, 20, how], expect=4)
        kinds = collections.Counter(event["event"] for event in events(output) if event["event"] in KINDS.values())
        report = read_report("kernels", output)
        assert kinds["kernel"] == 20 or whatever_is_missing(report), (how, kinds, report)


@case
@needs("torch")
def pytorch_on_simulated_cuda_has_each_kernel_on_its_operator():
    python = cuda_python()
    output, truth = record_simulated([python, "-c", TRAIN])
    found = events(output)
    compare(found, truth)
    report = check_report(output, truth)
    expect_equal(report["unattributed"], [], "without an operator")
    expect_equal(report["attributed_ns"], report["total_ns"], "time in operators")
    by_launch, expected = innermost_operators(found), collections.Counter()
    for line in of_kind(truth, *KINDS):
        expected[by_launch[line["correlation"]]] += duration_ns(line)
    ops = read_report("ops", output, "--limit", "0")["ops"]
    expect_equal({op["name"]: op["self_device_ns"] for op in ops if op["self_device_ns"]}, dict(expected), "self_device_ns")
    (linear,) = [op for op in ops if op["name"] == "aten::linear"]
    (addmm,) = [op for op in ops if op["name"] == "aten::addmm"]
    expect_equal(linear["device_ns"], addmm["device_ns"], "device_ns of what is around")


@case
@needs("torch")
def pytorchs_graphs_on_simulated_cuda_are_recorded_node_by_node():
    output, truth = trained_with_graphs()
    assert any(line["node"] for line in of_kind(truth, "kernel")), "no graph"
    compare(events(output), truth, within_ns=10)


def operators_of_nodes(found):
    """By node the operator that was innermost on the thread that captured it, or where it is a clone, its original."""
    all_of_them, by_node = operators(found), {}
    for node in (event for event in found if event["event"] == "graph_node"):
        around = [operator for operator in all_of_them if operator.thread == node["thread"]
                  and operator.at_ns <= node["at_ns"] <= (operator.end_ns or operator.at_ns)]
        innermost = max(around, key=lambda operator: operator.at_ns).name if around else None
        if node["original"]:
            by_node[node["node"]] = by_node[node["original"]]
        else:
            by_node.setdefault(node["node"], innermost)
    return by_node


@case
@needs("torch")
def kernels_of_pytorchs_graphs_belong_to_what_captured_them():
    output, truth = record_simulated([cuda_python(), "-c", GRAPHS])
    found = events(output)
    compare(found, truth)
    by_node, by_launch, expected = operators_of_nodes(found), innermost_operators(found), collections.Counter()
    for line in of_kind(truth, *KINDS):
        expected[by_node.get(line["node"]) or by_launch[line["correlation"]]] += duration_ns(line)
    report = check_report(output, truth)
    replayed = [line for line in of_kind(truth, *KINDS) if line["node"]]
    assert len(replayed) > 20, replayed
    assert all(by_node[line["node"]] for line in replayed), "a node was captured outside of every operator"
    captured = sum(op["total_ns"] for row in report["kernels"] + report["copies"] for op in row["ops"]
                   if op["method"] == "graph_capture")
    expect_equal(captured, sum(duration_ns(line) for line in replayed), "time of nodes")
    # The same work was done without a graph first: by the same operators.
    for kernel in report["kernels"]:
        of = collections.defaultdict(set)
        for op in kernel["ops"]:
            of[op["method"]].add(op["name"])
        assert of["graph_capture"] <= of["direct_launch"], (kernel["symbol"], of)
    ops = read_report("ops", output, "--limit", "0")["ops"]
    expect_equal({op["name"]: op["self_device_ns"] for op in ops if op["self_device_ns"]},
                 {name: time for name, time in expected.items() if name}, "self_device_ns")
    in_steps = read_report("ops", output, "--limit", "0", "--group", "step")["ops"]
    expect_equal(sum(op["self_device_ns"] for op in in_steps), sum(expected.values()) - expected[None], "in steps")


def kinetos(path):
    """Correlations of the device's events in a trace of torch.profiler."""
    trace = json.loads(path.read_text())["traceEvents"]
    return [event["args"]["correlation"] for event in trace if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


@case
@needs("torch")
def pytorchs_profiler_and_we_both_see_all_of_simulated_cuda():
    python, traces, n_windows = cuda_python(), scratch("traces"), 3
    output, truth = record_simulated([python, "-c", PROFILED, traces, n_windows])
    # Kineto's clock counts other units: times come back from these, wrong by one of them and the rate's error.
    compare(events(output), truth, within_ns=10)
    done = sorted(line["correlation"] for line in of_kind(truth, *KINDS))
    for window in range(n_windows):
        seen = sorted(kinetos(traces / f"{window}.json"))
        # Five times an addition, a copy to the host and one back, without anything of before or after.
        expect_equal(len(seen), 15, f"what torch.profiler has in window {window}")
        expect_equal(seen, [number for number in done if seen[0] <= number <= seen[-1]], "correlations")


if __name__ == "__main__":
    main()
