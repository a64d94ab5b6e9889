#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Four gloo ranks of a training with FSDP, and of a pipeline with torch.distributed.pipelining: their collectives and messages are
those that PyTorch's own profiler counts, have all ranks or both ends, and torsh ranks joins them.
"""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/ranks/sharded_ranks.py"
WORLD = 4
ENV = {"OMP_NUM_THREADS": 1, "TORSH_PROFILER_REACHABILITY": 0, "TORSH_PROFILER_WITH_STACK": 0, "TORSH_PROFILER_WITH_MODULES": 0}
NEEDS = {"fsdp": "from torch.distributed.fsdp import fully_shard", "pipeline": "import torch.distributed.pipelining"}
# A barrier follows when the profiler has ended.
AFTER = collections.Counter({"barrier": 1})


def run_ranks(what):
    if run([torch_python(), "-c", NEEDS[what]]).returncode:
        raise Skip(f"this PyTorch has no {what}")
    written = scratch("written")
    result, output = record([torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={WORLD}", PROGRAM, what,
                             written], env=ENV, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    return [json.loads((written / f"done-{rank}.json").read_text()) for rank in range(WORLD)], output


def plain(name):
    """c10d::_allgather_base_ and allreduce_ are called without the last _ elsewhere."""
    return name.removeprefix("c10d::").removesuffix("_")


def joined(calls):
    """The calls of each collective, by what is the same on all ranks."""
    by_key = collections.defaultdict(list)
    for call in calls:
        if call["kind"] == "collective":
            by_key[call["group"], call["instance"], call["sequence"]].append(call)
    return by_key


def check(what):
    ranks, output = run_ranks(what)
    events = json.loads(torsh("export", output, "--format", "json"))
    expect_fits("events", events)
    pids = {process["process"]: process["pid"] for process in events["processes"]}
    for rank in ranks:
        counts = collections.Counter({plain(name): n for name, n in rank["counts"].items()}) + AFTER
        found = collections.Counter(call["name"] for call in events["collectives"] if pids[call["process"]] == rank["pid"])
        expect_equal(found, counts, f"calls of process {rank['pid']}")
    for key, calls in joined(events["collectives"]).items():
        expect_equal(len(calls), WORLD, f"ranks in {key}")
        expect_equal(len({(call["name"], call["in_bytes"], call["out_bytes"]) for call in calls}), 1, f"what {key} is: {calls}")
    ends = collections.Counter(call["kind"] for call in events["collectives"])
    expect_equal(ends["send"], ends["receive"], "ends of messages")
    assert bool(ends["send"]) == (what == "pipeline"), ends
    report = read_report("ranks", output)
    expect_fits("ranks", report)
    expect_equal(report["world_size"], WORLD, "ranks")
    expect_equal(sum(row["calls"] for row in report["collectives"]), len(events["collectives"]), "calls in torsh ranks")


add_case("calls_of_a_fsdp_are_those_of_the_profiler", check, "fsdp")
add_long_case("calls_of_a_pipeline_are_those_of_the_profiler", check, "pipeline")


main()
