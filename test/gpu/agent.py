#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The agent on a device, simulated or real: its recording against the program's own requests, and
against torch.profiler in the same process."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from device import device_python, record_on_device, run_bare  # noqa: E402
from timeline import events  # noqa: E402

PROGRAM = PROGRAMS / "cuda_driver"
# What a thread requests, beside its kernels: HtoD, DtoD, DtoH of 4096 bytes, and half of that
# filled.
COPIES_PER_THREAD, BYTES = {1: 1, 2: 1, 8: 1}, 4096
DEVICE_CATEGORIES = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
# Kineto rounds to nanoseconds of its own clock, and we to ours.
ROUNDING_NS = 1000

PROFILED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for step in range(3):
        x = torch.randn(16, 64).to(device)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()
profiler.export_chrome_trace(sys.argv[1])
torch.cuda.synchronize()
"""


# All work of the process' devices is within it.
SUMMED = """
import json, torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(16, 64).cuda()).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()
sums = {}
for average in profiler.key_averages():
    # Before PyTorch 2.4 these were the times of CUDA.
    own, total = (getattr(average, f"{of}device_time_total", None) or getattr(average, f"{of}cuda_time_total", 0)
                  for of in ("self_", ""))
    if average.key.startswith("aten::") and total:
        sums[average.key] = [1000 * own, 1000 * total]
print(json.dumps(sums))
"""


def of_devices(found):
    return [event for event in found if event["event"] in DEVICE_CATEGORIES.values()]


def check_program(output, n_threads, n_kernels):
    found = of_devices(events(output))
    kernels = [event for event in found if event["event"] == "kernel"]
    expect_equal([event["name"] for event in kernels], ["_Z4workPf"] * n_threads * n_kernels, "kernels")
    for event in kernels:
        expect_equal([event[f"grid_{axis}"] for axis in "xyz"] + [event[f"block_{axis}"] for axis in "xyz"],
                     [4, 2, 1, 64, 1, 1], "grid and block")
        expect_equal(event["dynamic_shared_bytes"], 256, "shared memory")
        assert event["duration_ns"] > 0, event
    copies = [event for event in found if event["event"] == "copy"]
    expect_equal(collections.Counter(event["kind"] for event in copies),
                 {kind: n * n_threads for kind, n in COPIES_PER_THREAD.items()}, "directions")
    expect_equal({event["bytes"] for event in copies}, {BYTES}, "bytes of copies")
    expect_equal([event["bytes"] for event in found if event["event"] == "memset"], [BYTES // 2] * n_threads, "bytes filled")
    report = read_report("kernels", output)
    (process,) = [process for process in report["processes"] if process["mode"]]
    expect_equal([process[name] for name in ("mode", "dropped", "without_room", "invalid")], ["CUPTI", 0, 0, 0], "how it was seen")


@case
def what_a_program_requests_is_recorded():
    _, output = record_on_device([PROGRAM, 1, 20])
    check_program(output, 1, 20)


@case
def what_many_threads_request_is_recorded():
    _, output = record_on_device([PROGRAM, 16, 200])
    check_program(output, 16, 200)


@case
def a_program_ends_as_it_does_alone():
    for how in ("return", "_exit", "fork"):
        alone = run_bare([PROGRAM, 2, 30, how])
        result, output = record_on_device([PROGRAM, 2, 30, how], expect=alone.returncode)
        expect_equal(result.stdout, alone.stdout, f"output, {how}")
        check_program(output, 2, 30)


@case
def kernels_begin_after_their_launch():
    _, output = record_on_device([PROGRAM, 1, 50])
    found = events(output)
    launches = {event["correlation"]: event for event in found if event["event"] == "launch"}
    error_ns = read_report("kernels", output)["processes"][0]["clock_width_ns"] + 10_000
    for event in of_devices(found):
        assert event["begin_ns"] + error_ns >= launches[event["correlation"]]["begin_ns"], (event, launches)


def seen_by_torch_profiler(path):
    """{correlation and name: microseconds} of what devices did."""
    trace = json.loads(path.read_text())["traceEvents"]
    return {(event["args"]["correlation"], DEVICE_CATEGORIES[event["cat"]]): event
            for event in trace if event.get("cat") in DEVICE_CATEGORIES}


@case
@needs("torch")
def torch_profiler_and_we_see_the_same():
    trace = scratch("trace") / "trace.json"
    _, output = record_on_device([device_python(), "-c", PROFILED, trace])
    theirs, found = seen_by_torch_profiler(trace), of_devices(events(output))
    ours = {(event["correlation"], event["event"]): event for event in found}
    expect_equal(len(ours), len(found), "different correlations")
    assert len(theirs) > 30, theirs
    first, last = min(theirs)[0], max(theirs)[0]
    expect_equal(sorted(key for key in ours if first <= key[0] <= last), sorted(theirs), "what devices did")
    for key, event in theirs.items():
        assert abs(ours[key]["duration_ns"] - 1000 * event["dur"]) <= ROUNDING_NS, (ours[key], event)
        if key[1] == "copy":
            expect_equal(ours[key]["bytes"], event["args"]["bytes"], "bytes")
    report = read_report("kernels", output, "--limit", "0")
    expect_equal(report["unattributed"], [], "without an operator")


@case
@needs("torch")
def torch_profiler_and_we_give_operators_the_same_device_time():
    result, output = record_on_device([device_python(), "-c", SUMMED])
    theirs = json.loads(result.stdout.splitlines()[-1])
    ops = read_report("ops", output, "--limit", "0")["ops"]
    ours = {op["name"]: (op["self_device_ns"], op["device_ns"]) for op in ops
            if op["device_ns"] and op["name"].startswith("aten::")}
    expect_equal(sorted(ours), sorted(theirs), "operators with device time")
    assert len(ours) > 10, ours
    for name, (self_ns, all_ns) in theirs.items():
        own_ns, with_inner_ns = ours[name]
        assert abs(own_ns - self_ns) <= 10 * ROUNDING_NS, (name, own_ns, self_ns)
        # A sum that calls sum is one call to torch.profiler's table.
        assert name == "aten::sum" or abs(with_inner_ns - all_ns) <= 10 * ROUNDING_NS, (name, with_inner_ns, all_ns)


if __name__ == "__main__":
    main()
