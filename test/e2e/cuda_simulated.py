#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the agent records of devices, on the simulated CUDA: each kernel, copy and memset against the simulation's own log,
and on the operator that launched it.
"""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402
from simcuda import cuda_python, duration_ns, need_simcuda, of_kind, record_simulated  # noqa: E402
import schema  # noqa: E402

PROGRAM = PROGRAMS / "cuda_driver"
KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
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

PROFILED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(1 << 10, device="cuda")
for window in range(int(sys.argv[2])):
    y = x * 2
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for i in range(5):
            y = (x + i).cpu().cuda()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(f"{sys.argv[1]}/{window}.json")
    y = x * 3
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
    return {name: process[name] for name in ("dropped", "without_room", "invalid")}


def check_report(output, truth):
    """torsh kernels says the sums of the truth."""
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    expect_equal([process["mode"] for process in report["processes"]], ["CUPTI"], "mode")
    expect_equal(losses(report), {"dropped": 0, "without_room": 0, "invalid": 0}, "losses")
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
    # The simulation writes its log at its own end, which does not come here: the program knows what it did.
    expect_equal(collections.Counter(event["event"] for event in found if event["event"] in KINDS.values()),
                 {"kernel": 60, "copy": 6, "memset": 2}, "what was recorded")
    assert not of_kind(truth, "violation"), truth


@case
def simulated_cupti_is_left_alone_by_a_forked_child():
    output, truth = record_simulated([PROGRAM, 1, 10, "fork"])
    compare(events(output), truth)


@case
def another_tool_that_was_injected_stays_with_simulated_cuda():
    need_simcuda()
    tool = scratch("tool")
    (tool / "tool.c").write_text("int InitializeInjection(void) { return 1; }\n")
    expect_equal(run(["cc", "-shared", "-fPIC", "-o", tool / "tool.so", tool / "tool.c"]).returncode, 0, "compiler")
    output, _ = record_simulated([PROGRAM], env={"CUDA_INJECTION64_PATH": str(tool / "tool.so")})
    report = read_report("kernels", output)
    expect_equal(report["kernels"], [], "kernels")
    (process,) = report["processes"]
    expect_equal((process["mode"], process["reason"]),
                 ("HOST_ONLY", "another tool's path stands in CUDA_INJECTION64_PATH"), "mode")
    assert any("neither kernels nor copies" in note for note in report["notes"]), report["notes"]


@case
def simulated_cupti_that_refuses_is_said_to():
    output, truth = record_simulated([PROGRAM], faults="cuptiActivityEnable=35@1")
    assert of_kind(truth, "kernel"), "the program did not run"
    (process,) = read_report("kernels", output)["processes"]
    expect_equal((process["mode"], process["reason"]),
                 ("HOST_ONLY", "CUPTI can't be used: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"), "mode")


@case
def simulated_kernels_are_there_where_the_subscriber_is_taken():
    output, truth = record_simulated([PROGRAM, 1, 10], faults="cuptiSubscribe_v2=39@1")
    compare(events(output), truth)
    report = check_report(output, truth)
    expect_equal({row["reason"] for row in report["unattributed"]}, {"the call that launched it was not seen"}, "reasons")
    assert any("kernels have no operators" in note for note in report["notes"]), report["notes"]


@case
def without_the_activity_simulated_cuda_is_left_alone():
    output, truth = record_simulated([PROGRAM], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal(of_kind(truth, "injection"), [], "injected tools")
    expect_equal(spans(events(output)), {}, "what was recorded")


def innermost_operators(found):
    """By correlation the operator within whose time, on whose thread, the launching call returned."""
    all_of_them, by_launch = operators(found), {}
    for launch in (event for event in found if event["event"] == "launch"):
        around = [operator for operator in all_of_them if operator.thread == launch["thread"]
                  and operator.at_ns <= launch["at_ns"] <= (operator.end_ns or operator.at_ns)]
        by_launch[launch["correlation"]] = max(around, key=lambda operator: operator.at_ns).name if around else None
    return by_launch


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
    script = ROOT / "test/simcuda/programs/train.py"
    output, truth = record_simulated([cuda_python(), script, scratch("traces")])
    assert any(line["node"] for line in of_kind(truth, "kernel")), "no graph"
    compare(events(output), truth, within_ns=10)


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
