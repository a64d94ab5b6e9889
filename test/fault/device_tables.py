#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The agent's tables about devices, filled on the simulated CUDA: what finds no room is counted,
the recording is marked as incomplete, and the rest is as in the simulation's own log."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import DRIVER, LIBRARIES, need_simcuda, of_kind, preloaded, read_truth  # noqa: E402
from timeline import events  # noqa: E402

WITHOUT_CUPTI = ("libsimcuda.so", "libcuda.so.1", "libnccl.so.2")

PRELUDE = DRIVER + """
import os
def function_of(name):
    need(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    return function
def launch(grid=1, times=1, on=stream):
    for _ in range(times):
        need(cuda.cuLaunchKernel(function, grid, 1, 1, 32, 1, 1, 0, on, None, None))
def new_context():
    need(cuda.cuCtxPopCurrent_v2(None))
    need(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    need(cuda.cuModuleLoadData(ctypes.byref(module), b"code"))
    function_of(b"_Z4workPf")
function_of(b"_Z4workPf")
"""


def run_on_devices(script, libraries=None, env=None, **settings):
    """The recording of a script with these simulated libraries (None: all), and the simulation's
    log of what it did."""
    need_simcuda()
    truth, output = scratch("truth") / "truth", scratch()
    variables = agent_environment(output, **{f"SIMCUDA_{name.upper()}": value for name, value in settings.items()})
    folder = LIBRARIES
    if libraries:
        folder = scratch("libraries")
        for name in libraries:
            (folder / name).symlink_to(LIBRARIES / name)
    paths = ":".join(str(folder / name) for name in libraries) if libraries else preloaded()
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{paths}"
    variables.update({"LD_LIBRARY_PATH": str(folder), "SIMCUDA_LOG": str(truth), **(env or {})})
    result = run([sys.executable, "-c", PRELUDE + script], variables)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
    return output, read_truth(truth) if truth.exists() else []


def expect_lost(output, cause):
    """Nothing else was lost, and the first line reports it. Returns the number."""
    report, text = leaks(output), torsh("leaks", output)
    causes = {loss["cause"]: loss["count"] for loss in report["events"]["losses"]}
    expect_equal(set(causes), {cause}, "what was lost")
    assert text.startswith("Incomplete: ") and not report["recording"]["complete"], text[:300]
    return causes[cause]


def expect_whole(output):
    report = leaks(output)
    expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")


PAIRS = 65536


@case
def launches_under_way_without_cupti():
    n = PAIRS + 500
    # All are behind one that doesn't end.
    output, _ = run_on_devices(f"""
function_of(b"_Z5blockv")
launch()
function_of(b"_Z4workPf")
launch(times={n - 1})
os._exit(0)
""", WITHOUT_CUPTI, kernels="_Z5blockv=3600000000000", queue=10 * PAIRS)
    lost = expect_lost(output, "device_records_lost")
    expect_equal(lost, n - PAIRS, "launches without room")
    untimed = [event for event in events(output) if event["event"] == "submission"]
    expect_equal(len(untimed), lost, "launches that are there without times")
    assert all(event["reason"] for event in untimed), "a launch without times has no reason"


@case
def contexts_without_cupti():
    n = 200
    output, truth = run_on_devices(f"""
for i in range({n}):
    new_context()
    launch(on=None)
    synchronize()
""", WITHOUT_CUPTI)
    expect_whole(output)
    found = [event for event in events(output) if event["event"] == "kernel"]
    expect_equal((len(found), len(of_kind(truth, "kernel"))), (n, n), "kernels with times")
    expect_equal(len({event["context"] for event in found}), n, "contexts")


KINDS = 6144


@case
def kinds_of_launches_that_are_measured():
    n = KINDS + 30
    output, _ = run_on_devices(f"""
for grid in range(1, {n} + 1):
    launch(grid)
synchronize()
""", env={"TORSH_PROFILER_COUNTERS": "operators"})
    expect_equal(expect_lost(output, "launches_unmeasured"), n - KINDS, "launches of further kinds")


@case
def contexts_that_are_measured():
    n = 20
    output, _ = run_on_devices(f"""
for i in range({n - 1}):
    new_context()
    launch(i + 1, on=None)
    synchronize()
""", env={"TORSH_PROFILER_COUNTERS": "operators"})
    assert expect_lost(output, "launches_unmeasured") >= 1


POOLS_FORMERLY = 256


@case
def pools_of_memory():
    n = POOLS_FORMERLY + 50
    # Of the second device, for a stream of the first one.
    output, _ = run_on_devices(f"""
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
                ("rest", ctypes.c_char * 72)]
for i in range({n}):
    pool, address = ctypes.c_void_p(), ctypes.c_uint64()
    need(cuda.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(Properties(1, 0, 1, 1))))
    need(cuda.cuMemAllocFromPoolAsync(ctypes.byref(address), ctypes.c_size_t(4096), pool, stream))
synchronize()
""", devices=2)
    found = [event["device"] for event in events(output) if event["event"] == "device_alloc"]
    expect_equal(found, [1] * n, "devices of what was allocated")


main()
