#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Four gloo ranks with DistributedDataParallel, which waits for its all-reduces in C++: each wait lies between the times that the
program took itself, and lasts until the last rank has computed its gradients.
"""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/ranks/ddp_ranks.py"
WORLD = 4
ENV = {"OMP_NUM_THREADS": 1, "TORSH_PROFILER_REACHABILITY": 0, "TORSH_PROFILER_WITH_STACK": 0, "TORSH_PROFILER_WITH_MODULES": 0}


def command(written):
    return [torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={WORLD}", PROGRAM, written]


def said(written):
    return [json.loads((written / f"done-{rank}.json").read_text()) for rank in range(WORLD)]


def waits_for(output, calls, pid):
    """Of one process: begin and end of each wait for these collectives, by CLOCK_MONOTONIC, by sequence."""
    start, = (row["session"]["start_monotonic_ns"] for path in recordings(output) for row in
              map(json.loads, torsh("dump", path).splitlines()) if "session" in row)
    found = collections.defaultdict(list)
    for event in json.loads(torsh("export", output, "--format", "chrome"))["traceEvents"]:
        if event.get("cat") == "collective_wait" and event["pid"] == pid and event["args"]["Seq"] in calls:
            begin = round(event["ts"] * 1000) + start
            found[event["args"]["Seq"]].append((begin, begin + round(event["dur"] * 1000)))
    return found


@case
@needs("torch")
def waits_of_the_reducer_are_between_the_programs_own_times():
    written = scratch("written")
    result, output = record(command(written), env=ENV, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    ranks = said(written)
    late = ranks[-1]["steps"]
    events = json.loads(torsh("export", output, "--format", "json"))
    pids = {process["process"]: process["pid"] for process in events["processes"]}
    for rank in ranks:
        calls = sorted(call["sequence"] for call in events["collectives"]
                       if pids[call["process"]] == rank["pid"] and call["name"] == "allreduce")
        expect_equal(len(calls), len(late), "all-reduces: one bucket in each step")
        waits = waits_for(output, calls, rank["pid"])
        recorded = {call["sequence"]: call["wait_ns"] for call in events["collectives"] if pids[call["process"]] == rank["pid"]}
        for sequence, (computed, over, _), (last_computed, _, _) in zip(calls, rank["steps"], late):
            assert all(computed <= begin and end <= over for begin, end in waits[sequence]), (waits[sequence], computed, over)
            expect_equal(recorded[sequence] or 0, sum(end - begin for begin, end in waits[sequence]), f"wait for {sequence}")
            if rank is not ranks[-1]:
                assert waits[sequence] and waits[sequence][-1][1] >= last_computed, (waits[sequence], last_computed)
        print(rank["pid"], [round((recorded[sequence] or 0) / 1e6, 1) for sequence in calls],
              [round((over - computed) / 1e6, 1) for computed, over, _ in rank["steps"]])


@case
@long
@needs("torch")
def gradients_are_those_of_a_run_without_the_agent():
    bare, recorded = scratch("bare"), scratch("recorded")
    result = run(command(bare), {**clean_environment(), "OMP_NUM_THREADS": "1"}, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    result, _ = record(command(recorded), env=ENV, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    sums = [[[step[2] for step in rank["steps"]] for rank in said(written)] for written in (bare, recorded)]
    expect_equal(sums[1], sums[0], "sums of gradients")
    assert all(sums[0][0]), sums


main()
