#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
PyTorch under the agent: the demo, and the same result with and without it. Needs a PyTorch that is already there;
TORSH_TEST_TORCH=1 has one put into build/venv (about 3 GB).
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import torch_python  # noqa: E402

TRAIN = ROOT / "test/bench/workloads/train.py"


@case
def training_comes_to_the_same_result():
    python = torch_python()
    bare = run([python, TRAIN, "100"])
    result, output = record([python, TRAIN, "100"])
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    report = leaks(output, "--no-lines")
    check_counts(report["events"])
    assert report["events"]["produced"] > 100_000, report["events"]


@case
def stacks_of_training_agree_with_the_arbiter():
    python = torch_python()
    result, output = record([python, TRAIN, "50"], env={"TORSH_PROFILER_CHECK_STACKS": "10"})
    expect_equal(result.returncode, 0, "status")
    counters = leaks(output, "--no-lines", "--limit", "1")["counters"]
    assert counters["captures_checked"] > 10_000, counters
    expect_equal(counters["captures_differing"], 0, "stacks that differ")


@case
def the_demo_finds_its_leak():
    torch_python()
    result = run([ROOT / "test/demo/run"], dict(os.environ), timeout=600)
    expect_equal(result.returncode, 0, f"status of the demo\n{result.stdout.decode()}\n{result.stderr.decode()}")
    assert b"The planted leak was found" in result.stdout


main()
