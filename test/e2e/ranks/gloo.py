#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Collectives and messages of four gloo ranks that torchrun started: joined by their keys, without a
clock, and compared with what the ranks wrote themselves."""

import collections
import csv
import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/ranks/gloo_ranks.py"
WORLD = 4
STRAGGLES_NS = 200_000_000
ENV = {"OMP_NUM_THREADS": 1, "TORSH_PROFILER_REACHABILITY": 0, "TORSH_PROFILER_WITH_STACK": 0, "TORSH_PROFILER_WITH_MODULES": 0}


def run(env=ENV, *options):
    """What each rank did in its own words, by pid, and the recording."""
    written = scratch("written")
    result, output = record([torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={WORLD}", PROGRAM, written],
                            env=env)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    ranks = [json.loads((written / f"done-{rank}.json").read_text()) for rank in range(WORLD)]
    return [rank["pid"] for rank in ranks], [rank["done"] for rank in ranks], output


def key_of(call):
    """The same on all ranks that take part."""
    if call["kind"] == "collective":
        return call["group"], call["instance"], call["sequence"]
    ends = (call["group_rank"], call["peer"]) if call["kind"] == "send" else (call["peer"], call["group_rank"])
    return call["group"], call["instance"], *ends, call["tag"], call["sequence"]


def calls_by_rank(events, pids):
    numbers = {process["process"]: process["pid"] for process in events["processes"]}
    by_pid = collections.defaultdict(list)
    for call in events["collectives"]:
        by_pid[numbers[call["process"]]].append(call)
    return [by_pid[pid] for pid in pids]


def own_words(call):
    return [call[name] for name in ("group", "kind", "name", "in_bytes", "out_bytes", "peer")]


def check_keys(ranks):
    """Every collective has all ranks of its group, every message its two ends; all moved the same."""
    joined = collections.defaultdict(list)
    for calls in ranks:
        keys = [(call["kind"], key_of(call)) for call in calls]
        expect_equal(len(set(keys)), len(keys), "different keys of a rank")
        for call in calls:
            joined[key_of(call)].append(call)
    for key, calls in joined.items():
        is_message = calls[0]["kind"] != "collective"
        expect_equal(len(calls), 2 if is_message else calls[0]["group_size"], f"ranks in {key}")
        if is_message:
            expect_equal(sorted(call["kind"] for call in calls), ["receive", "send"], f"ends of {key}")
            expect_equal(calls[0]["in_bytes"] + calls[0]["out_bytes"], calls[1]["in_bytes"] + calls[1]["out_bytes"], f"bytes of {key}")
        else:
            expect_equal(len({(call["name"], call["dtype"], call["in_bytes"], call["out_bytes"]) for call in calls}), 1, f"{key}: {calls}")
    return joined


def check_times(joined, done):
    """Nobody leaves a collective before the last has entered: on one host there is one clock."""
    for key, calls in joined.items():
        for call in calls:
            assert call["end_ns"] is not None and not call["failed"], call
            assert call["call_ns"] <= (call["begin_ns"] or call["call_ns"]) <= call["end_ns"], call
        if calls[0]["kind"] == "collective" and calls[0]["name"] != "allgather":
            last = max(call["call_ns"] for call in calls)
            assert all(call["end_ns"] >= last for call in calls), (key, calls)


def check_waits(ranks, done):
    """The time of the program around its own wait() contains ours, which is nearly all of it."""
    for calls, own in zip(ranks, done):
        timed = [(call["wait_ns"], one["wait_ns"]) for call, one in zip(calls, own) if one["wait_ns"] is not None]
        assert timed and all(ours is not None and ours <= theirs for ours, theirs in timed), timed
    straggled = [[call["wait_ns"] for call, one in zip(calls, own) if one["wait_ns"] is not None][1] for calls, own in zip(ranks, done)]
    assert all(ns >= STRAGGLES_NS * 0.9 for ns in straggled[:3]), straggled
    assert straggled[3] < min(straggled[:3]), straggled


def check_exports(output, ranks, pids):
    database = sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite"))
    rows = database.execute("select pid, kind, group_name, name, in_bytes, out_bytes, sequence, wait_ns from collective_calls c "
                            "join processes p on p.id = c.process order by pid, number").fetchall()
    found = sorted(zip(pids, ranks))
    expect_equal(rows, [(pid, *(call[name] for name in ("kind", "group", "name", "in_bytes", "out_bytes", "sequence", "wait_ns")))
                        for pid, calls in found for call in calls], "rows of sqlite")
    # Threads of gloo's own wait for some works, too.
    waited = [(pid, call) for pid, calls in zip(pids, ranks) for call in calls for _ in range(call["waits"])]
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    waits = [event for event in trace["traceEvents"] if event.get("cat") == "collective_wait"]
    expect_equal(len(waits), len(waited), "waits in chrome")
    expect_equal(sorted((event["pid"], event["args"]["Process Group Name"], event["args"]["Seq"], event["args"]["In bytes"])
                        for event in waits), sorted((pid, call["group"], call["sequence"], call["in_bytes"]) for pid, call in waited), "waits")
    with open(exported(output, "t.csv", "--format", "csv"), newline="") as file:
        lines = [row for row in csv.DictReader(file, strict=True) if row["category"] == "collective_wait"]
    expect_equal(sorted((row["process_id"], row["collective_sequence"], row["bytes"], row["collective"]) for row in lines),
                 sorted((str(event["pid"]), str(event["args"]["Seq"]), str(event["args"]["In bytes"]), event["args"]["Collective name"])
                        for event in waits), "waits in csv")


@case
def calls_of_all_ranks_are_joined_without_a_clock():
    pids, done, output = run()
    events = json.loads(torsh("export", output, "--format", "json"))
    expect_fits("events", events)
    ranks = calls_by_rank(events, pids)
    for rank, (calls, own) in enumerate(zip(ranks, done)):
        expect_equal([own_words(call) for call in calls], [own_words(one) for one in own], f"calls of rank {rank}")
    joined = check_keys(ranks)
    expect_equal(len(joined), 3 * 4 + 2 * 2 * 4 + 3 * 4 + 1, "different calls")
    check_times(joined, done)
    check_waits(ranks, done)
    check_exports(output, ranks, pids)


@case
def a_program_without_the_agent_has_the_same_results():
    """And with it torch.distributed raises what it did: a work that fails, and a wait with a timeout."""
    program = scratch("program") / "fails.py"
    program.write_text(FAILS)
    printed = {}
    for name, env in (("bare", None), ("recorded", ENV)):
        folder = scratch(name)
        command = [torch_python(), program, folder]
        result = subprocess.run(list(map(str, command)), capture_output=True, timeout=TIMEOUT_S) if env is None else record(command, env=env)[0]
        printed[name] = result.returncode, result.stdout
    expect_equal(printed["recorded"], printed["bare"], "status and output")
    assert b"raised RuntimeError" in printed["bare"][1], printed["bare"]


FAILS = """
import datetime, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/meeting", rank=0, world_size=1)
x = torch.ones(4)
work = dist.all_reduce(x, async_op=True)
print(work.wait(), x.tolist(), type(work).__name__, work.is_completed(), work.is_success())
store = dist.FileStore(f"{sys.argv[1]}/other", 2)
try:
    dist.all_to_all_single(torch.zeros(3), torch.ones(5))
except Exception as error:
    print("raised", type(error).__name__)
try:
    dist.recv(torch.zeros(1), 0)
except Exception as error:
    print("raised", type(error).__name__)
dist.destroy_process_group()
"""


main()
