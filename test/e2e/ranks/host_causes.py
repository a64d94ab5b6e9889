#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh ranks, of trainings in which the host withholds CPU time from one rank: others run on its CPU, or the quota of its control
group is used up. The truth is what the rank itself reads of the kernel at its end.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/ranks/ranks_job.py"
STEPS = 40
LATE = 1


def trained(folder, *late, world=2):
    """The report of such a job, and where its recording is."""
    env = {"TORSH_PROFILER_WITH_STACK": "0", "TORSH_PROFILER_ACTIVITIES": "torch,python"}
    result, output = record([torch_python(), "-W", "ignore", PROGRAM, folder, str(world), str(STEPS), *late],
                            folder / "out", env=env, timeout=600)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    report = json.loads(torsh("ranks", output, "--json"))
    expect_fits("ranks", report)
    expect_equal([row["rank"] for row in report["ranks"]], list(range(world)), "ranks")
    return report, output


def cost_ns(folder):
    """By how much the late rank's backward passes began later than the other's, in steps but the first."""
    mine, other = (json.loads((folder / f"{rank}.json").read_text()) for rank in (LATE, 1 - LATE))
    return sum(max(0, a - b) for a, b in list(zip(mine, other))[1:])


def expect_cause(report, output, kind, text):
    straggler, = report["stragglers"]
    expect_equal(straggler["rank"], LATE, "the straggler")
    assert straggler["times_last"] > STEPS / 2, straggler
    cause = straggler["causes"][0]
    expect_equal(cause["kind"], kind, f"the cause: {straggler['causes']}")
    assert cause["share"] > 0.5, cause
    printed = torsh("ranks", output)
    assert text in printed and cause["evidence"] in printed, printed
    return straggler


@case
@needs("torch")
def a_rank_whose_cpu_others_use_is_found():
    folder = scratch("crowded")
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("there is one CPU: no rank can have another's")
    report, output = trained(folder, "crowded", str(LATE))
    other, own = (int((folder / f"{rank}.waited").read_text()) for rank in range(2))
    # The kernel's own count has to explain what is planted: else other programs took as much from the other rank.
    if own < 1.3 * other or own - other < 0.6 * cost_ns(folder):
        raise Skip(f"other programs left rank 0 without a CPU for {other / 1e9:.1f} s, and rank 1 for {own / 1e9:.1f} s")
    straggler = expect_cause(report, output, "cpu_wait", "it waits for a CPU")
    rows = [row["cpu_wait_ns"] for row in report["ranks"]]
    print(f"waited {[other, own]}, reported {rows}: {straggler['causes']}")
    # The program reads it at the end of its training, the writer at its exit; a thread that ended before is in neither.
    for row, waited in zip(rows, (other, own)):
        assert row >= 0.9 * waited, (rows, other, own)


def make_group():
    """A control group to which a quota of CPU time can be given, of either version."""
    need_root()
    for base, quota in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"), ("/sys/fs/cgroup", "cpu.max")):
        base = pathlib.Path(base)
        try:
            if quota == "cpu.max":
                (base / "cgroup.subtree_control").write_text("+cpu")
            folder = base / f"torsh-test-{os.getpid()}"
            folder.mkdir()
        except OSError:
            continue
        if (folder / quota).exists():
            return folder
        folder.rmdir()
    raise Skip("no control group with a quota of CPU time can be made here")


def throttling_of(text):
    """Its ns, its periods and all periods."""
    stat = dict(line.split() for line in text.splitlines())
    ns = int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])
    return ns, int(stat["nr_throttled"]), int(stat["nr_periods"])


@case
@needs("torch")
def a_rank_whose_quota_is_used_up_is_found():
    folder, group = scratch("throttled"), make_group()
    try:
        report, output = trained(folder, "throttled", str(LATE), str(group))
        at_end = throttling_of((group / "cpu.stat").read_text())
    finally:
        group.rmdir()
    before_end = throttling_of((folder / f"{LATE}.throttled").read_text())
    free, late = ([row[f"cpu_{name}"] for name in ("throttled_ns", "throttled_periods", "periods")] for row in report["ranks"])
    straggler = expect_cause(report, output, "cpu_throttled", "the quota of its control group is used up")
    print(f"{late}, in the kernel {before_end} to {at_end}; the other rank {free}; late by {cost_ns(folder)}: {straggler['causes']}")
    assert free[0] in (0, None), free
    for reported, first, last in zip(late, before_end, at_end):
        assert first <= reported <= last, (late, before_end, at_end)
    assert "between two collectives" in straggler["causes"][0]["evidence"], straggler
    assert late[1] > 0 and f"in {late[1]} of {late[2]} periods" in straggler["causes"][0]["evidence"], straggler


@case
@needs("torch")
def a_quota_that_is_used_up_outside_of_steps_is_no_cause():
    """The rank is throttled for longer than it is late in all its steps, but before and after them. In its steps it sleeps."""
    folder, group = scratch("outside"), make_group()
    try:
        report, output = trained(folder, "outside", str(LATE), str(group))
    finally:
        group.rmdir()
    in_kernel, _, _ = throttling_of((folder / f"{LATE}.throttled").read_text())
    reported = report["ranks"][LATE]["cpu_throttled_ns"]
    print(f"throttled for {in_kernel}, reported {reported}, late by {cost_ns(folder)}: {report['stragglers']}")
    # Else the whole run would be no worse a measure.
    assert reported >= 0.9 * in_kernel and reported > 0.6 * cost_ns(folder), (reported, in_kernel, cost_ns(folder))
    straggler = expect_cause(report, output, "python", "Python, sleep or I/O outside of operators")
    assert not {"cpu_throttled", "cpu_wait"} & {cause["kind"] for cause in straggler["causes"]}, straggler


main()
