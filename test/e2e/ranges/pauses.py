#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A pause leaves out all that begins in it: ranges, marks, values, operators, runs of the garbage collector, work of devices
and blocks of memory, each counted. What is open when it begins or ends is whole in the recording, or not there at all.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from simcuda import DRIVER, of_kind, record_simulated  # noqa: E402
from timeline import events, timeline  # noqa: E402

PROGRAM = PROGRAMS / "paused_ranges"
MODULES = {"PYTHONPATH": str(ROOT / "tools/python")}
N = 300
BLOCK_BYTES = 100

OPERATORS = """
import gc, sys, torch, torsh
x = torch.ones(8)
def work(function):
    for i in range(100):
        function(x)
    gc.collect()
gc.disable()
work(torch.relu)
if "pause" in sys.argv:
    assert torsh.pause()
with torch.autograd.profiler.record_function("amid"):
    work(torch.sigmoid)
    kept = [torch.ones(1000) for i in range(10)]
    scope = torch.autograd.profiler.record_function("over the end")
    scope.__enter__()
if "pause" in sys.argv:
    assert torsh.resume()
work(torch.tanh)
scope.__exit__(None, None, None)
del kept
"""

KERNELS = f"""
{DRIVER}
import torsh
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
def work(n, bytes):
    blocks = []
    for i in range(n):
        need(cuda.cuLaunchKernel(function, 8, 1, 1, 32, 1, 1, 0, stream, None, None))
        blocks.append(ctypes.c_uint64())
        need(cuda.cuMemAlloc_v2(ctypes.byref(blocks[-1]), ctypes.c_size_t(bytes)))
    need(cuda.cuMemsetD8_v2(blocks[0], 0, ctypes.c_size_t(bytes)))
    synchronize()
    return blocks
before = work(20, 1 << 16)
if "pause" in sys.argv:
    assert torsh.pause()
amid = work(30, 1 << 17)
need(cuda.cuMemFree_v2(before.pop()))
if "pause" in sys.argv:
    assert torsh.resume()
after = work(40, 1 << 18)
for block in before + amid + after:
    need(cuda.cuMemFree_v2(block))
synchronize()
"""


def recorded(*arguments):
    result, output = record([PROGRAM, *arguments])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"", b""), "status and output")
    return output


def counted(found, kind):
    return collections.Counter(event["name"] for event in found if event["event"] == kind)


def expect_ranges(output, amid):
    """Of two threads, with so many of the ranges amid."""
    found = timeline(output)
    pushed = {"whole": 2, "before": 2 * N, "after": 2 * N, "over the begin": 2, "after, within": 2, "inner": 4 * N}
    started = {"before": 2 * N, "after": 2 * N, "started before": 2}
    if amid:
        pushed |= {"amid": 2 * amid, "over the end": 2, "over the end, inner": 2, "inner": 6 * N}
        started |= {"amid": 2 * amid, "started amid": 4}
    instants = {"before": 2 * N, "after": 2 * N, **({"amid": 2 * amid} if amid else {})}
    expect_equal(counted(found, "range_push"), pushed, "ranges pushed")
    expect_equal(sum(event["event"] == "range_pop" for event in found), sum(pushed.values()), "ranges popped")
    expect_equal(counted(found, "range_start"), started, "ranges started")
    numbers = [event["range"] for event in found if event["event"] == "range_start"]
    expect_equal(sorted(event["range"] for event in found if event["event"] == "range_end"), sorted(numbers), "ranges ended")
    expect_equal(counted(found, "mark"), instants, "marks")
    expect_equal(counted(found, "value"), instants, "values")
    report = read_report("regions", output, "--limit", "0")
    expect_equal((report["unpaired_ends"], [entry["name"] for entry in report["regions"] if entry["left_open"]]), (0, []),
                 "ends without begins, and begins without ends")
    calls = {entry["name"]: entry["calls"] for entry in report["regions"]}
    expect_equal((calls.get("amid", 0), calls.get("over the end", 0), calls["over the begin"], calls["whole"]),
                 (4 * amid, 2 if amid else 0, 2, 2), "calls")


def expect_leaks(output, parts):
    """Half of the blocks of so many parts stay."""
    found = entries_through(leaks(output)["leaks"], "work")
    expect_equal((sum(entry["blocks"] for entry in found), sum(entry["bytes"] for entry in found)),
                 (parts * N // 2, parts * N // 2 * BLOCK_BYTES), "leaks")


@case
def ranges_marks_and_values_of_a_pause_are_left_out():
    output = recorded("pause")
    expect_ranges(output, 0)
    expect_leaks(output, 2)


@case
def without_a_pause_all_are_there():
    output = recorded()
    expect_ranges(output, N)
    expect_leaks(output, 3)


@case
def a_schedule_and_a_pause_leave_out_what_either_does():
    result, output = record([PROGRAMS / "paused_ranges", "pause"], env={"TORSH_PROFILER_SCHEDULE": "active:1"})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    found = timeline(output)
    expect_equal(counted(found, "range_push")["amid"], 0, "ranges of the pause")
    expect_equal(sum(event["event"] == "range_push" for event in found),
                 sum(event["event"] == "range_pop" for event in found), "pairs")


@case
def without_the_heap_a_pause_is_the_same():
    result, output = record([PROGRAM, "pause"], env={"TORSH_PROFILER_ACTIVITIES": "nvtx"})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    expect_ranges(output, 0)


def operators_of(*arguments):
    result, output = record([torch_python(), "-c", OPERATORS, *arguments], env=MODULES)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return output, events(output)


@needs("torch")
@case
def operators_tensors_and_collections_of_a_pause_are_left_out():
    (output, paused), (_, whole) = operators_of("pause"), operators_of()
    for found, amid in ((whole, 1), (paused, 0)):
        ops = counted(found, "op_begin")
        expect_equal((ops["aten::relu"], ops["aten::sigmoid"], ops["aten::tanh"]), (100, 100 * amid, 100), "operators")
        expect_equal((ops["amid"], ops["over the end"]), (amid, amid), "scopes")
        kept = [event for event in found if event["event"] == "tensor" and event["bytes"] == 4000]
        expect_equal((len(kept), sum(event["is_free"] for event in kept)), (20 * amid, 10 * amid), "tensors that are kept, and freed")
    collections_of = [sum(event["event"] == "python_gc" and event["generation"] == 2 for event in found) for found in (whole, paused)]
    expect_equal(collections_of[0] - collections_of[1], 1, "runs of the garbage collector in the pause")
    report = read_report("ops", output, "--limit", "0")
    expect_equal((report["cut_calls"], report["unmatched_ends"]), (0, 0), "calls without ends, ends without calls")


def kernels_of(*arguments, **settings):
    output, truth = record_simulated([sys.executable, "-c", KERNELS, *arguments], env=MODULES, **settings)
    expect_equal(len(of_kind(truth, "kernel")), 90, "kernels that ran")
    return output, events(output)


def expect_kernels(output, found, amid):
    count = collections.Counter(event["event"] for event in found)
    expect_equal(count["kernel"], 60 + 30 * amid, "kernels")
    expect_equal(count["memset"], 2 + amid, "memsets")
    launches = collections.Counter(event["api"] for event in found if event["event"] == "launch")
    expect_equal(launches["cuLaunchKernel"], 60 + 30 * amid, "launches")
    sizes = collections.Counter(event["bytes"] >> 16 for event in found if event["event"] == "device_alloc")
    expect_equal((sizes[1], sizes[2], sizes[4]), (20, 30 * amid, 40), "blocks of the device")
    expect_equal(count["device_free"], count["device_alloc"], "their ends")
    [end] = leaks(output, "--device", "cuda:0")["devices"]
    expect_equal((end["current_blocks"], end["unknown_frees"]), (0, 0), "blocks at the end, frees of unknown blocks")


@case
def device_work_and_memory_of_a_pause_are_left_out():
    for arguments, amid in ((["pause"], 0), ([], 1)):
        expect_kernels(*kernels_of(*arguments), amid)


main()
