#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A training loop that leaks a tensor a step is found with its line; loops that are clean give no alarm."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import inductor_cache, torch_python  # noqa: E402

SCRIPT = ROOT / "test/python/torch_loops.py"
LEAK_LINE = next(n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith("# line: leak"))
TIMEOUT_S = 240
STEPS = 120
COUNTED = STEPS - 1 - 30  # the first quarter of the intervals between steps is left out
TENSOR_BYTES, OBJECTS_BYTES = 8 * 32 * 4, 512
CLEAN = ("WarmsACache", "HasMomentum", "SchedulesItsRate", "ClearsItsMetrics", "AccumulatesGradients", "SavesCheckpoints",
         "BoundsItsCache", "EvaluatesInBetween", "AveragesItsWeights")


def growth(*loops, steps=STEPS):
    """The report of each loop's process."""
    written = scratch("written") / "pids.json"
    result, output = record([torch_python(), SCRIPT, written, steps, *loops], env=inductor_cache(), timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    for loop, pid in json.loads(written.read_text()).items():
        yield loop, read_report("leaks", output, "--growth", "--limit", "0", "--stacks", "python", "--pid", str(pid))


def check_clean(*loops, steps=STEPS):
    for loop, report in growth(*loops, steps=steps):
        assert report["steps"] >= steps, f"{loop}: {report['steps']} steps"
        expect_equal([(entry["kind"], entry["bytes_per_step"], entry["stack"][:2]) for entry in report["growth"]], [],
                     f"what grows where it {loop}")


@case
def a_leaked_tensor_a_step_is_found_at_its_line():
    ((_, report),) = growth("LeaksATensor")
    expect_equal((report["steps"], report["processes"][0]["rule"]), (STEPS, "calls of an optimizer"), "steps")
    found = {frame["line"]: entry for entry in report["growth"] for frame in entry["stack"][:1] if frame["file"] == str(SCRIPT)}
    entry = found[LEAK_LINE]
    expect_equal((entry["kind"], entry["steps"]), ("tensor", COUNTED), "kind, and steps that are counted")
    # Beside its elements also PyTorch's and Python's objects for it: some small blocks.
    assert TENSOR_BYTES <= entry["bytes_per_step"] <= TENSOR_BYTES + OBJECTS_BYTES, entry["bytes_per_step"]
    assert entry["blocks_per_step"] == int(entry["blocks_per_step"]), entry["blocks_per_step"]


@case
def no_alarm_in_clean_loops():
    check_clean(*CLEAN)


@case
@long
def no_alarm_where_workers_load():
    # PyTorch keeps references to what came by shared memory, and looks whether they are dead when there are 128.
    check_clean("LoadsByWorkers", steps=5 * 128)


@case
@long
def no_alarm_in_a_compiled_loop():
    check_clean("IsCompiled")


main()
