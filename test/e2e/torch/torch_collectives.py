#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Collectives of two real processes over gloo: sizes, types and groups as the program made them,
and as torch.profiler recorded the same calls."""

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
from timeline import timeline  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/lib/torch_collectives.py"
WORLD = 2
BACKWARD = 1  # of op_begin.scope
NO_SEQUENCE = (1 << 64) - 1
# As torch.profiler calls types, and as we do.
TYPES = {"Float": "float32", "Double": "float64", "Long": "int64", "Int": "int32", None: None}


def communicate():
    """The folder with what the ranks wrote, and the recording."""
    written = scratch("written")
    # Without stacks, which are not needed here: to name all of their lines takes longest.
    result, output = record([torch_python(), PROGRAM, written], env={"TORSH_PROFILER_WITH_STACK": 0})
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return written, output


def collectives(trace, pid):
    """In order, with PyTorch's attributes of each and with the arguments."""
    found = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op" and event["name"].startswith("c10d::")
             and event["pid"] == pid]
    return sorted(found, key=lambda event: event["ts"])


def what_is_said(arguments):
    return [arguments["Collective name"], arguments["In msg nelems"], arguments["Out msg nelems"], arguments.get("dtype"),
            arguments["Process Group Name"]]


def tables_of(output):
    """
    By export: of each operator pid, name, overload, sequence and the forward thread of those of backward; and of each
    collective pid, name, type, elements in and out and the group's name, in their order.
    """
    database = sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite"))
    yield "sqlite", database.execute(
        "select pid, n.text, o.text, sequence, iif(scope = 1, forward_thread, null) from ops join processes p on p.id = ops.process "
        "join labels n on n.process = ops.process and n.id = name "
        "left join labels o on o.process = ops.process and o.id = overload").fetchall(), database.execute(
        "select pid, c.name, dtype, in_elements, out_elements, g.name from collectives c join processes p on p.id = c.process "
        "join ops on ops.process = c.process and ops.id = c.op "
        "join process_groups g on g.process = c.process and g.number = process_group order by ops.start_ns").fetchall()
    found = json.loads(exported(output, "t.json", "--format", "json").read_text())
    expect_fits("events", found)
    calls = sorted((event for event in found["events"] if event["type"] == "operator"), key=lambda event: event["start_ns"])
    moved = [(call["pid"], call["collective"]) for call in calls if call["collective"]]
    assert all((one["group_size"], one["group_ranks"]) == (WORLD, "0,1") for _, one in moved), moved
    yield "json", [(call["pid"], call["name"], call["overload"], call["sequence"],
                    call["forward_thread"] if call["scope"] == BACKWARD else None) for call in calls], \
        [(pid, one["name"], one["dtype"], one["in_elements"], one["out_elements"], one["group"]) for pid, one in moved]
    with open(exported(output, "t.csv", "--format", "csv"), newline="") as file:
        rows = [row for row in csv.DictReader(file, strict=True) if row["category"] in ("operator", "backward") or row["sequence"]]
    rows = sorted(rows, key=lambda row: float(row["start_us"]))
    number = lambda text: int(text) if text else None  # noqa: E731
    yield "csv", [(int(row["process_id"]), row["name"], row["overload"] or None, number(row["sequence"]),
                   number(row["forward_thread"]) if row["category"] == "backward" else None) for row in rows], \
        [(int(row["process_id"]), row["collective"], row["collective_type"] or None, int(row["in_elements"]),
          int(row["out_elements"]), row["process_group"]) for row in rows if row["collective"]]


def operators_of(output):
    """The same of operators, as they were recorded."""
    processes = json.loads(torsh("export", output, "--format", "json"))["processes"]
    pids = {process["process"]: process["pid"] for process in processes}
    for event in timeline(output, ["op_begin"]):
        has_sequence = event["sequence"] != NO_SEQUENCE
        yield (pids[event["process"]], event["name"], event["overload"], event["sequence"] if has_sequence else None,
               event["forward_thread"] if has_sequence and event["scope"] == BACKWARD else None)


def check_tables(output, done):
    """done: of each pid, what the program did in the window."""
    recorded = collections.Counter(operators_of(output))
    assert any(row[2] for row in recorded) and any(row[4] for row in recorded), "no overload, or no forward thread"
    for name, operators, moved in tables_of(output):
        found = collections.Counter(operators)
        if name == "csv":  # without scopes of the program, which it calls ranges
            found, recorded = +found, collections.Counter({row: n for row, n in recorded.items() if row in found})
        expect_equal((found - recorded, recorded - found), (collections.Counter(), collections.Counter()), f"operators in {name}")
        for pid, window in done.items():
            expect_equal([row[1:] for row in moved if row[0] == pid][-len(window):],
                         [(what, TYPES[dtype], n_in, n_out, group[0]) for what, n_in, n_out, dtype, group in window],
                         f"collectives in {name}")


@case
def sizes_and_groups_are_those_of_the_program():
    written, output = communicate()
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    ops = json.loads(torsh("ops", output, "--json", "--group", "shape", "--limit", "0"))
    done = {}
    for rank in range(WORLD):
        printed = json.loads((written / f"done-{rank}.json").read_text())
        done[printed["pid"]] = printed["done"]
        ours = collectives(trace, printed["pid"])
        theirs = collectives(json.loads((written / f"trace-{rank}.json").read_text()), printed["pid"])
        inside = [event for event in ours if "Collective name" in event["args"]][-len(printed["done"]):]
        expect_equal([what_is_said(event["args"]) for event in inside], [[*what, group[0]] for *what, group in printed["done"]],
                     "collectives")
        for event in inside:
            expect_equal((event["args"]["Group size"], event["args"]["Process Group Ranks"]), (WORLD, "[0, 1]"), "ranks")
        expect_equal([(event["name"], event["args"]["Input Dims"]) for event in inside],
                     [(event["name"], event["args"]["Input Dims"]) for event in theirs], "what torch.profiler saw")
        groups = {group["name"]: group for group in ops["process_groups"] if group["pid"] == printed["pid"]}
        expect_equal({(name, groups[name]["description"]) for name in groups}, {tuple(what[-1]) for what in printed["done"]},
                     "names and descriptions of groups")
        expect_equal({(group["backend"], group["size"], group["ranks"]) for group in groups.values()}, {("gloo", WORLD, "0,1")},
                     "groups")
    inputs = {op["inputs"] for op in ops["ops"] if op["name"] == "c10d::allgather_"}
    assert any(text.startswith("{{float32[2,2],float32[2,2]}};{float32[2,2]};group#2;") for text in inputs), inputs
    assert "group#1" in torsh("ops", output), "the table doesn't name its groups"
    check_tables(output, done)


main()
