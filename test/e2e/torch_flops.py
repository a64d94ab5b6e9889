#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""FLOPs of recorded operators against PyTorch's own FlopCounterMode, on models of each kind."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

VENV = ROOT / "build/venv/bin/python"
SCRIPT = ROOT / "test/python/flops.py"
MODELS = ("mlp", "cnn", "conv1d3d", "transformer", "lstm", "products")


def compare(model):
    if not VENV.exists():
        raise Skip("build/venv with PyTorch is not here: `make demo` makes it")
    counted = run([VENV, SCRIPT, model, "count"])
    expect_equal(counted.returncode, 0, f"status of the counter ({counted.stderr.decode()[-500:]})")
    result, output = record([VENV, SCRIPT, model])
    expect_equal(result.returncode, 0, "status")
    report = read_report("ops", output, "--limit", "0")
    if not report["calls"]:
        raise Skip("operators are not recorded here")
    expect_equal(report["flops"], int(counted.stdout), f"FLOPs of {model}")
    assert report["flops_all"] > report["flops"], report
    # Each step costs the same.
    steps = read_report("steps", output, "--limit", "0")
    expect_equal(steps["rule"], "optimizer", "rule of the steps")
    expect_equal([step["flops"] for step in steps["steps"]], [report["flops"] // 2] * 2, "FLOPs of the steps")


for name in MODELS:
    add_case(f"{name}_has_the_flops_of_the_counter", compare, name)

main()
