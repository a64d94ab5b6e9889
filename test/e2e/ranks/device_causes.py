#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh ranks, of trainings over NCCL on simulated CUDA libraries: a rank whose kernels are slow is found, and equal ones have no
straggler. The truth is the simulation's log of each rank, which has one clock.
"""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from simcuda import cuda_python, of_kind, read_truth, recording_environment  # noqa: E402

PROGRAM = ROOT / "test/python/ranks/device_job.py"
STEPS = 20
SLOW = 1
NAME = "Simulated Accelerator 7"


def trained(slow):
    """The report of such a job, its text, and by rank when the kernels of its collectives began."""
    folder = scratch("job")
    env = recording_environment(folder / "out", folder / "none", {"TORSH_PROFILER_WITH_STACK": "0"}, name=NAME)
    result = run([cuda_python(), PROGRAM, folder, str(STEPS), str(slow)], env)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    report = json.loads(torsh("ranks", folder / "out", "--json"))
    expect_fits("ranks", report)
    began = [[line["start"] for line in of_kind(read_truth(folder / f"{rank}.jsonl"), "kernel") if "AllReduce" in line["name"]]
             for rank in range(2)]
    expect_equal([len(one) for one in began], [STEPS] * 2, "kernels of collectives")
    expect_equal([row["device"] for row in report["ranks"]], [NAME] * 2, "the devices' name")
    for rank in range(2):
        torsh("fold", folder / "out", "--rank", str(rank), "-o", folder / f"{rank}.fold")
    torsh("merge", folder / "1.fold", folder / "0.fold", "-o", folder / "whole.fold")
    expect_equal(json.loads(torsh("ranks", folder / "whole.fold", "--json"))["ranks"], report["ranks"], "the ranks of merged folds")
    return report, torsh("ranks", folder / "out"), began


def lateness(began):
    """By rank: in how many steps its kernel began last, and by how much; without the first step."""
    times, cost = [0, 0], [0, 0]
    for pair in list(zip(*began))[1:]:
        last = max((0, 1), key=pair.__getitem__)
        times[last] += 1
        cost[last] += pair[last] - pair[1 - last]
    return times, cost


@case
@needs("torch")
def a_rank_whose_kernels_are_slow_is_found():
    report, text, began = trained(SLOW)
    times, cost = lateness(began)
    straggler, = report["stragglers"]
    print(f"{straggler}; by the simulation last {times} times, {cost} ns")
    expect_equal((straggler["rank"], straggler["times_last"]), (SLOW, times[SLOW]), "who was last, and how often")
    assert abs(straggler["cost_ns"] - cost[SLOW]) <= 0.05 * cost[SLOW], (straggler, cost)
    cause = straggler["causes"][0]
    expect_equal(cause["kind"], "device", f"the cause: {straggler['causes']}")
    assert cause["share"] > 0.5, cause
    assert "its device begins collectives later" in text and cause["evidence"] in text, text
    allreduce, = (row for row in report["collectives"] if row["name"] == "allreduce")
    expect_equal((allreduce["calls"], allreduce["bytes"]), (2 * STEPS, 2 * STEPS * 64 * 64 * 4), "calls and bytes")


@case
@needs("torch")
def equally_fast_devices_have_no_such_cause():
    report, _, began = trained(-1)
    times, cost = lateness(began)
    whole = statistics.median(rank[-1] - rank[1] for rank in began)
    print(f"last {times} times, {[round(ns / whole, 3) for ns in cost]} of the time; {report['stragglers']}")
    # On a machine that others use, the host of a rank may be late: then its kernels were launched late, and no queue was longer.
    for straggler in report["stragglers"]:
        assert cost[straggler["rank"]] > 0.04 * whole, (straggler, cost)
        assert straggler["causes"][0]["kind"] != "device", straggler


main()
