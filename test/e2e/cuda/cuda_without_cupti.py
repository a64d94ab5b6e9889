#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the agent records of devices where CUPTI is absent, taken or refused, on the simulated CUDA: each kernel, copy and
memset against the simulation's own log, timed by pairs of events around the calls; and why it was done so.
"""

import collections
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import LIBRARIES, cuda_python, duration_ns, need_simcuda, of_kind, preload_names, read_truth  # noqa: E402
import schema  # noqa: E402

DRIVER = PROGRAMS / "cuda_driver"
ENTRIES = PROGRAMS / "cuda_entries"
WAYS = ("symbol", "default", "dlsym", "proc", "own", "ptsz")
WITHOUT_CUPTI = ("libsimcuda.so", "libcuda.so.1")
WITH_CUPTI = (*WITHOUT_CUPTI, "libcupti.so.13")
KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
BUSY_NS = 2_000_000  # a kernel that is still running when the next one is launched

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


# Looks whether there is a driver, as many libraries do, and closes it again; then it is there for good.
LOOKING = """
#include <dlfcn.h>
#include <stdio.h>
typedef int launch(void *f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
extern launch cuLaunchKernel __attribute__((weak));
int main(void)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		int is_there = library && dlsym(library, "cuLaunchKernel") && dlsym(library, "cuGetProcAddress_v2");

		if (!is_there || dlclose(library))
			return 1;
		/* What comes next would lie where it was. */
		for (int k = 0; k < 8; k++)
			dlopen("libm.so.6", RTLD_NOW);
	}
	launch *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
	printf("%d\\n", found(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
	if (cuLaunchKernel)
		printf("%d\\n", cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
	return 0;
}
"""


def record(command, libraries=WITHOUT_CUPTI, env=None, expect=0, **settings):
    """The recording of a command with these simulated libraries, and the simulation's log of what
    it did."""
    need_simcuda()
    folder = scratch("libraries")
    for name in libraries:
        (folder / name).symlink_to(LIBRARIES / name)
    truth, output = scratch("truth") / "truth", scratch()
    variables = agent_environment(output, **{f"SIMCUDA_{name.upper()}": value for name, value in settings.items()})
    variables["LD_PRELOAD"] = ":".join([variables["LD_PRELOAD"], *(str(folder / name) for name in libraries)])
    variables.update({"LD_LIBRARY_PATH": str(folder), "SIMCUDA_LOG": str(truth), **(env or {})})
    result = run(command, variables)
    expect_equal(result.returncode, expect, f"status\n{result.stderr.decode()[-3000:]}\n")
    return output, read_truth(truth) if truth.exists() else []


def printed(event):
    """What of an event or of a line of the truth has to be the same."""
    kind = event.get("event") or KINDS[event["kind"]]
    if kind == "kernel":
        grid = event.get("grid") or [event[f"grid_{axis}"] for axis in "xyz"]
        block = event.get("block") or [event[f"block_{axis}"] for axis in "xyz"]
        shared = event["shared"] if "shared" in event else event["dynamic_shared_bytes"]
        return kind, event["name"], tuple(grid), tuple(block), shared, event["registers"]
    if kind == "copy":
        return kind, COPY_KINDS[event["copy"]] if "copy" in event else event["kind"], event["bytes"]
    return kind, event["bytes"], event["value"]


def by_stream(lines, begin):
    """What each stream did, in its order; streams in the order of their first work."""
    streams = collections.defaultdict(list)
    for line in sorted(lines, key=lambda line: line[begin]):
        streams[line["context"], line["stream"]].append(line)
    return list(streams.values())


def match(found, truth):
    """Pairs of what was recorded and what was done: everything, once, in the order of its stream."""
    expect_equal(of_kind(truth, "violation"), [], "violations")
    ours = by_stream([event for event in found if event["event"] in KINDS.values()], "begin_ns")
    # A node of a graph is part of its launch.
    done = by_stream([line for line in of_kind(truth, *KINDS) if not line["node"]], "start")
    key = repr
    ours.sort(key=lambda stream: key([printed(event) for event in stream]))
    done.sort(key=lambda stream: key([printed(line) for line in stream]))
    expect_equal([[printed(event) for event in stream] for stream in ours],
                 [[printed(line) for line in stream] for stream in done], "what streams did")
    return [list(zip(*streams)) for streams in zip(ours, done)]


def calls_of(truth):
    """How often each function was called."""
    return {line["name"]: line["calls"] for line in of_kind(truth, "calls")}


def only_process(output, mode, reason):
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    (process,) = report["processes"]
    expect_equal(process["mode"], mode, "mode")
    # A machine without any libcupti has another reason than one with a libcupti that refuses.
    assert reason.lower() in (process["reason"] or "").lower(), process
    return report, process


@case
def each_way_to_the_driver_is_seen():
    for way in WAYS:
        output, truth = record([ENTRIES, way, 10])
        found = events(output)
        match(found, truth)
        # Three launches are captured, and run when their graph does, twice.
        launches = [event for event in found if event["event"] == "launch"]
        expect_equal(len(launches), sum(not line["node"] for line in of_kind(truth, *KINDS)) + 3 + 2, f"launches by {way}")
        only_process(output, "EVENTS", "CUPTI")


@case
def times_of_a_busy_stream_are_exact():
    output, truth = record([ENTRIES, "proc", 20], kernel_ns=BUSY_NS)
    _, process = only_process(output, "EVENTS", "CUPTI")
    n_exact, shifts = 0, []
    for stream in match(events(output), truth):
        for i, (event, line) in enumerate(stream):
            assert event["duration_ns"] + process["clock_width_ns"] >= duration_ns(line), (event, line)
            if line["kind"] != "kernel":
                continue
            shifts.append(event["begin_ns"] + event["duration_ns"] - line["end"])
            if i and stream[i - 1][1]["end"] == line["start"]:
                # The driver reports times as floats of milliseconds.
                assert abs(event["duration_ns"] - duration_ns(line)) <= 1, (event, line)
                n_exact += 1
    assert n_exact >= 20, n_exact
    # All of them lie on one clock.
    assert max(shifts) - min(shifts) <= process["clock_width_ns"] + process["clock_step_ns"] + 1000, shifts


@case
def graphs_have_the_time_of_all_their_nodes():
    output, truth = record([ENTRIES, "proc", 1], kernel_ns=BUSY_NS)
    graphs = [event for event in events(output) if event["event"] == "submission"]
    expect_equal([(event["what"], event["is_timed"]) for event in graphs], [(3, 1)] * 2, "graphs")
    nodes = [line for line in of_kind(truth, "kernel") if line["node"]]
    for event, number in zip(graphs, (0, 1)):
        ran = nodes[number * len(nodes) // 2:(number + 1) * len(nodes) // 2]
        assert event["duration_ns"] + 1 >= ran[-1]["end"] - ran[0]["start"], (event, ran)
    report, _ = only_process(output, "EVENTS", "CUPTI")
    expect_equal([(row["calls"], row["total_ns"]) for row in report["graphs"]],
                 [(2, sum(event["duration_ns"] for event in graphs))], "graphs in the report")
    took_ns = [event["duration_ns"] for event in graphs]
    trace = json.loads(torsh("export", output, "--format", "chrome"))["traceEvents"]
    expect_equal([round(row["dur"] * 1000) for row in trace if row.get("cat") == "cuda_graph"], took_ns, "rows of graphs")
    found = json.loads(torsh("export", output, "--format", "json"))
    schema.expect_fits("events", found)
    expect_equal([row["end_ns"] - row["start_ns"] for row in found["events"] if row["type"] == "graph"], took_ns, "events")
    path = scratch("exported") / "t.sqlite"
    torsh("export", output, "--format", "sqlite", "-o", path)
    rows = sqlite3.connect(path).execute("select end_ns - start_ns from graphs order by start_ns").fetchall()
    expect_equal([ns for ns, in rows], took_ns, "rows of the table")


@case
def many_threads_are_seen_without_cupti():
    output, truth = record([DRIVER, 16, 500], kernel_ns=300)
    found = events(output)
    expect_equal(len(of_kind(truth, "kernel")), 16 * 500, "kernels")
    # Copies and fills share one stream, where marks of several threads lie between each other.
    match([event for event in found if event["event"] == "kernel"], of_kind(truth, "kernel", "violation"))
    expect_equal(collections.Counter(map(printed, (event for event in found if event["event"] in KINDS.values()))),
                 collections.Counter(map(printed, of_kind(truth, *KINDS))), "what was done")
    # Each of them belongs to a call.
    launches = {event["correlation"] for event in found if event["event"] == "launch"}
    done = [event["correlation"] for event in found if event["event"] in KINDS.values()]
    expect_equal(sorted(done), sorted(launches), "correlations")


@case
def the_entry_points_are_left_alone_where_cupti_works():
    output, truth = record([ENTRIES, "proc", 10], WITH_CUPTI)
    report, _ = only_process(output, "CUPTI", "")
    expect_equal(report["total_ns"], sum(duration_ns(line) for line in of_kind(truth, *KINDS)), "time of devices")
    calls = calls_of(truth)
    for name in ("cuEventRecord", "cuEventCreate", "cuStreamIsCapturing"):
        assert not calls.get(name), calls


@case
def another_subscriber_keeps_cupti_and_its_records():
    output, truth = record([ENTRIES, "proc", 10, "Other Tool"], WITH_CUPTI)
    match(events(output), truth)
    only_process(output, "EVENTS", "another tool has CUPTI: Other Tool")
    calls = calls_of(truth)
    for name in ("cuptiActivityRegisterCallbacks", "cuptiActivityEnable"):
        assert not calls.get(name), calls


@case
def cupti_that_fails_is_done_without():
    for call, code, word in (("cuptiSubscribe_v2", 15, "NOT_INITIALIZED"), ("cuptiSubscribe_v2", 999, "UNKNOWN"),
                             ("cuptiActivityRegisterCallbacks", 1, "INVALID_PARAMETER"),
                             ("cuptiActivityEnable", 35, "INSUFFICIENT_PRIVILEGES")):
        output, truth = record([ENTRIES, "dlsym", 5], WITH_CUPTI, faults=f"{call}={code}@1")
        match(events(output), truth)
        only_process(output, "EVENTS", f"CUPTI can't be used: CUPTI_ERROR_{word}")


@case
def calls_are_counted_where_events_fail_too():
    for call in ("cuEventCreate", "cuEventRecord"):
        output, truth = record([ENTRIES, "dlsym", 10], faults=f"{call}=2")
        report, _ = only_process(output, "HOST_ONLY", "the driver's events can't be used: CUDA_ERROR_OUT_OF_MEMORY")
        done = collections.Counter(line["name"] for line in of_kind(truth, "kernel") if not line["node"])
        expect_equal({kernel["symbol"]: kernel["calls"] for kernel in report["kernels"]}, dict(done), f"kernels without {call}")
        expect_equal({kernel["total_ns"] for kernel in report["kernels"]}, {None}, "times")
        copied = collections.Counter()
        for line in of_kind(truth, "memcpy", "memset"):
            copied[line.get("copy", "memset")] += line["bytes"]
        expect_equal({copy["kind"]: copy["bytes"] for copy in report["copies"]}, dict(copied), "bytes of copies")


def expect_passive(env, reason, **more):
    output, truth = record([ENTRIES, "proc", 10], WITH_CUPTI, env=env, **more)
    report, _ = only_process(output, "HOST_ONLY", reason)
    expect_equal(sum(kernel["calls"] for kernel in report["kernels"]),
                 sum(not line["node"] for line in of_kind(truth, "kernel")), "kernels")
    calls = calls_of(truth)
    for name in ("cuptiSubscribe_v2", "cuptiActivityEnable", "cuEventRecord"):
        assert not calls.get(name), (name, calls)


@case
def where_another_tool_measures_only_calls_are_recorded():
    expect_passive({"NSYS_PROFILING_SESSION_ID": "1"}, "Nsight Systems measures this process")
    tool = scratch("tool")
    (tool / "tool.c").write_text("int InitializeInjection(void) { return 1; }\n"
                                 "int InitializeInjectionNvtx2(void *get) { return get != 0; }\n")
    expect_equal(run(["cc", "-shared", "-fPIC", "-o", tool / "tool.so", tool / "tool.c"]).returncode, 0, "compiler")
    expect_passive({"CUDA_INJECTION64_PATH": str(tool / "tool.so")}, "another tool's path is in CUDA_INJECTION64_PATH")
    expect_passive({"NVTX_INJECTION64_PATH": str(tool / "tool.so")}, "another tool's path is in NVTX_INJECTION64_PATH")


@case
def nsight_that_has_cupti_is_not_timed_over():
    output, _ = record([ENTRIES, "proc", 10, "NVIDIA Nsight Systems"], WITH_CUPTI)
    only_process(output, "HOST_ONLY", "another tool has CUPTI: NVIDIA Nsight Systems")


@case
def work_is_there_after_underscore_exit_without_cupti():
    output, _ = record([DRIVER, 2, 30, "_exit"], expect=3)
    expect_equal(collections.Counter(event["event"] for event in events(output) if event["event"] in KINDS.values()),
                 {"kernel": 60, "copy": 6, "memset": 2}, "what was recorded")


@case
def a_forked_child_is_left_alone_without_cupti():
    output, truth = record([DRIVER, 1, 10, "fork"])
    match(events(output), truth)


@case
def a_driver_that_is_closed_and_opened_again_is_called_where_it_lies():
    need_simcuda()
    folder, output = scratch("looking"), scratch()
    (folder / "looking.c").write_text(LOOKING)
    expect_equal(run(["cc", "-o", folder / "looking", folder / "looking.c", "-ldl"]).returncode, 0, "compiler")
    result = run([folder / "looking"], {**agent_environment(output), "LD_LIBRARY_PATH": str(LIBRARIES)})
    # Nothing was started: there is no function of this name.
    expect_equal((result.returncode, set(result.stdout.split())), (0, {b"400"}), "status and errors")


@case
def without_the_activity_no_entry_point_is_interposed():
    output, truth = record([ENTRIES, "own", 10], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    assert of_kind(truth, "kernel"), "the program did not run"
    assert not [event for event in events(output) if event["event"] in ("launch", "kernel", "submission")]


@case
@needs("torch")
def pytorch_is_timed_without_cupti():
    python = cuda_python()
    output, truth = record([python, "-c", TRAIN], preload_names(), faults="cuptiSubscribe*=999@1")
    match(events(output), truth)
    report, _ = only_process(output, "EVENTS", "CUPTI can't be used")
    expect_equal(report["unattributed"], [], "without an operator")
    ops = {op["name"]: op for op in read_report("ops", output, "--limit", "0")["ops"]}
    assert ops["aten::addmm"]["self_device_ns"] > 0, ops["aten::addmm"]


@case
@needs("torch")
def pytorchs_calls_are_counted_by_operator_without_times():
    python = cuda_python()
    output, truth = record([python, "-c", TRAIN], preload_names(), env={"NSYS_PROFILING_SESSION_ID": "1"})
    report, _ = only_process(output, "HOST_ONLY", "Nsight")
    done = collections.Counter(line["name"] for line in of_kind(truth, "kernel"))
    expect_equal({kernel["symbol"]: kernel["calls"] for kernel in report["kernels"]}, dict(done), "kernels")
    for kernel in report["kernels"]:
        expect_equal(sum(op["calls"] for op in kernel["ops"]), kernel["calls"], kernel["symbol"])


if __name__ == "__main__":
    main()
