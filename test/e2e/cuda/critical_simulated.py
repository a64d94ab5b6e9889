#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The critical path of steps on the simulated CUDA: what bounds them, by the simulation's own log, and what they would take
otherwise, by a second run that is otherwise.
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import DRIVER, cuda_python, duration_ns, of_kind, record_simulated  # noqa: E402
from schema import expect_fits  # noqa: E402

MS = 1_000_000
STEPS = 8
# Without waits of threads: the simulation writes a log, and waits for that.
MODULES = {"PYTHONPATH": str(ROOT / "tools/python"), "TORSH_PROFILER_ACTIVITIES": "cuda,torch,python"}
PRELUDE = f"""
{DRIVER}
import time
import torsh
other, event = ctypes.c_void_p(), ctypes.c_void_p()
need(cuda.cuStreamCreate(ctypes.byref(other), 1))
need(cuda.cuEventCreate(ctypes.byref(event), 0))
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
def launch(on=stream):
    need(cuda.cuLaunchKernel(function, 4096, 1, 1, 1024, 1, 1, 0, on, None, None))
"""


def recorded(work, **settings):
    """The report of such steps, each with a synchronisation at its end, and the kernels of those that are looked at."""
    script = (f"{PRELUDE}\ndef work():\n    {work}\nfor i in range({STEPS}):\n    torsh.step(i)\n    work()\n    synchronize()\n"
              f"torsh.step({STEPS})\ntime.sleep(0.001)\n")
    output, truth = record_simulated([sys.executable, "-c", script], env=MODULES, **settings)
    report = read_report("report", output, "--no-lines")
    expect_fits("report", report)
    expect_equal(report["critical_path_reason"], None, "reason")
    path, of = report["critical_path"], report["critical_path_of"]
    expect_equal(sum(row["ns"] for row in path), of["steps_ns"], "the path's pieces add up to the steps")
    steps = read_report("steps", output)["steps"][1:STEPS]
    expect_equal((of["steps"], of["steps_ns"]), (STEPS - 1, sum(step["duration_ns"] for step in steps)), "steps")
    kernels = of_kind(truth, "kernel")
    each = len(kernels) // STEPS
    return report, kernels[each:], output


def kinds(report):
    return [item["kind"] for item in report["bottlenecks"]]


def share(report, kind):
    return sum(row["share"] for row in report["critical_path"] if row["kind"] == kind)


def gain(report, without):
    return next((item["gain_ns"] for item in report["critical_path_of"]["gains"] if item["without"] == without), 0)


@case
def many_short_kernels_are_bound_by_launches():
    report, kernels, output = recorded("for i in range(300): launch()", kernel_ns=300, launch_ns=100)
    print(report["bottlenecks"], report["critical_path"][:4])
    expect_equal(kinds(report)[:1], ["launches"], "bottleneck")
    assert "kernels" not in kinds(report) and "synchronisation" not in kinds(report), kinds(report)
    # All but the last kernel of a step run while the host launches others.
    assert share(report, "kernels") * report["critical_path_of"]["steps_ns"] <= sum(map(duration_ns, kernels)) / 100
    text = torsh("report", output, "--no-lines")
    assert "slowed by the host, which launches too little in time" in text, text


@case
def long_kernels_are_bound_by_themselves():
    report, kernels, output = recorded("for i in range(20): launch()", kernel_ns=2 * MS)
    print(report["bottlenecks"], report["critical_path"][:4])
    found = report["bottlenecks"][0]
    expect_equal((found["kind"], found["next"]), ("kernels", "torsh kernels"), "bottleneck")
    assert found["evidence"].startswith("work(float*): "), found
    # They follow each other: all of their time is on the path.
    spent, all_ns = share(report, "kernels") * report["critical_path_of"]["steps_ns"], sum(map(duration_ns, kernels))
    assert abs(spent - all_ns) < 0.001 * all_ns, (spent, all_ns)
    assert "synchronisation" not in kinds(report) and "launches" not in kinds(report), kinds(report)
    text = torsh("report", output, "--no-lines")
    assert "is one chain, stream " in text and "slowed by kernels" in text, text


@case
def a_wait_after_each_kernel_costs_what_a_run_without_them_gains():
    """In the second run the host goes on at once: its sleeps and the kernels run at the same time."""
    each = "launch(); {}time.sleep(0.008)"
    report, kernels, _ = recorded(f"for i in range(10): {each.format('synchronize(); ')}", kernel_ns=8 * MS)
    print(report["bottlenecks"], report["critical_path_of"]["gains"])
    assert "synchronisation" in kinds(report), kinds(report)
    of = report["critical_path_of"]
    predicted = (of["steps_ns"] - gain(report, "synchronisation")) / of["steps"]
    _, _, output = recorded(f"for i in range(10): {each.format('')}", kernel_ns=8 * MS)
    after = read_report("steps", output)["steps"][1:STEPS]
    median = statistics.median(step["duration_ns"] for step in after)
    print(f"a step took {of['steps_ns'] / of['steps'] / MS:.1f} ms, would take {predicted / MS:.1f}, and takes {median / MS:.1f}")
    assert abs(predicted - median) < 0.25 * median, (predicted, median)


@case
def a_stream_that_waits_for_another_ones_event_has_both_on_its_path():
    work = """
    launch()
    need(cuda.cuEventRecord(event, stream))
    need(cuda.cuStreamWaitEvent(other, event, 0))
    launch(other)"""
    report, kernels, _ = recorded(work, kernel_ns=5 * MS)
    lanes = {row["lane"]: row["ns"] for row in report["critical_path"] if row["kind"] == "kernels"}
    print(report["critical_path"][:5], report["critical_path_of"]["notes"])
    expect_equal(len(lanes), 2, "streams with kernels on the path")
    for ns in lanes.values():
        assert abs(ns - sum(map(duration_ns, kernels)) / 2) < 0.02 * ns, (lanes, kernels)
    assert any("waits" in note and "taken from times" in note for note in report["critical_path_of"]["notes"]), report
    # Without the event both run at the same time: one of them is on the path.
    report, kernels, _ = recorded("launch(); launch(other)", kernel_ns=5 * MS)
    spent = share(report, "kernels") * report["critical_path_of"]["steps_ns"]
    assert abs(spent - sum(map(duration_ns, kernels)) / 2) < 0.05 * spent, (spent, report["critical_path"])


TRAIN = """
import sys, torch
layers, size = int(sys.argv[1]), 64
model = torch.nn.Sequential(*[torch.nn.Linear(size, size) for i in range(layers)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = torch.ones(16, size, device="cuda")
for step in range(8):
    loss = model(data).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
torch.cuda.synchronize()
"""


@case
@quiet
@needs("torch")
def a_training_on_a_device_is_bound_by_what_is_slow_in_it():
    # With many layers the host's part is long beside the moment in which it notices that the device is done.
    for kernel_ns, layers, bound, other in ((1000, 60, "launches", "kernels"), (5 * MS, 6, "kernels", "launches")):
        output, truth = record_simulated([cuda_python(), "-c", TRAIN, str(layers)], kernel_ns=kernel_ns,
                                         env={"TORSH_PROFILER_ACTIVITIES": "torch,cuda,python,waits", "TORSH_PROFILER_WITH_STACK": "0"})
        report = read_report("report", output, "--no-lines")
        expect_fits("report", report)
        print(kernel_ns, report["bottlenecks"], report["critical_path"][:6], report["critical_path_of"]["notes"])
        assert bound in kinds(report) and other not in kinds(report), f"what bounds kernels of {kernel_ns} ns: {kinds(report)}"
        expect_equal(sum(row["ns"] for row in report["critical_path"]) <= report["critical_path_of"]["steps_ns"], True, "the path")


main()
