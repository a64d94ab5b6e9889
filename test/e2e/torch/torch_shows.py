#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the README promises of a training script that nobody edited, seen with the programs that people use."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import ask_hta  # noqa: E402
from torch_python import torch_python  # noqa: E402

WORKLOADS = ROOT / "test/bench/workloads"
STEPS = 5
# Runs a script as it is, with torch.profiler around it, and writes the profiler's own trace.
WITNESS = """
import runpy, sys, torch
path, sys.argv = sys.argv[1], sys.argv[2:]
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    runpy.run_path(sys.argv[0], run_name="__main__")
profiler.export_chrome_trace(path)
"""


def hta_sees_the_operators_of_the_profiler(script):
    folder, theirs = scratch("ours"), scratch("theirs")
    ours = folder / "trace.json.gz"
    result = run([torch_python(), WORKLOADS / script, STEPS], agent_environment(ours))
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    result = run([torch_python(), "-c", WITNESS, theirs / "trace.json.gz", WORKLOADS / script, STEPS])
    expect_equal(result.returncode, 0, f"status with torch.profiler ({result.stderr.decode()[-500:]})")
    found, expected = (ask_hta(place, "cpu_op")[0] for place in (folder, theirs))
    assert expected["aten::addmm"] >= STEPS, expected
    expect_equal(found, expected, f"operators of {script} as HTA counts them")


add_case("hta_counts_the_operators_of_train", hta_sees_the_operators_of_the_profiler, "train.py")
add_long_case("hta_counts_the_operators_of_cnn", hta_sees_the_operators_of_the_profiler, "cnn.py")

main()
