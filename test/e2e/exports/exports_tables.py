#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exports for custom programs: databases, JSON and CSV, with the sums of the reports."""

import collections
import csv
import itertools
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported, made  # noqa: E402
from schema import expect_fits  # noqa: E402


@case
def databases_hold_every_call():
    recording, numbers = made(ranks=1)
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite"))
    rows = {name: rest for name, *rest in database.execute(
        "select name_text, count(*), sum(end_ns - start_ns), sum(self_ns), sum(flops), sum(flops_all), sum(allocated_bytes), "
        "sum(freed_bytes) from op_calls group by 1")}
    fields = ("calls", "cpu_ns", "self_cpu_ns", "self_flops", "self_flops_all", "self_allocated_bytes", "self_freed_bytes")
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        expect_equal(rows.pop(entry["name"]), [entry[field] for field in fields], f"row of {entry['name']}")
    assert not rows, rows
    n_values = numbers["steps"]
    for table, n in (("ranges", numbers["modules"]), ("tensors", numbers["tensors"]), ("steps", numbers["steps"]),
                     ("marks", n_values), ("user_values", n_values * 11), ("processes", 1), ("threads", 2)):
        expect_equal(database.execute(f"select count(*) from {table}").fetchone(), (n,), table)
    expect_equal(database.execute("select kind, count(*), sum(value) from user_values group by 1").fetchall(),
                 [("sample", n_values * 10, n_values * 45.0), ("scalar", n_values, sum(range(n_values)) * 1.0)], "values")
    # Every operator but the outermost is inside of one that is there.
    lost = database.execute("select count(*) from ops a left join ops b on a.outer = b.id and a.process = b.process "
                            "where a.outer is not null and not (b.start_ns <= a.start_ns and b.end_ns >= a.end_ns)")
    expect_equal(lost.fetchone(), (0,), "operators outside of what is around them")
    expect_equal(database.execute("pragma integrity_check").fetchone(), ("ok",), "integrity")


@case
def databases_have_the_steps_of_the_report():
    recording, numbers = made(ranks=2)
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite"))
    rows = database.execute("select pid, number, steps.start_ns, steps.end_ns - steps.start_ns, rule from steps "
                            "join processes on processes.id = process order by 1, 2").fetchall()
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    expect_equal(rows, sorted((step["pid"], step["index"], step["start_ns"], step["duration_ns"], step["rule"])
                              for step in steps), "steps")
    expect_equal(database.execute("select rank from processes order by id").fetchall(), [("0",), ("1",)], "ranks")


FRAMES = """with recursive s(id, n) as (values (?, 0) union all select parent, n + 1 from stacks join s using (id)
            where process = 1 and parent not null)
            select f.function, f.file, f.line from s join stacks using (id)
            join frames f on f.process = stacks.process and f.id = frame where stacks.process = 1 order by n, inlined"""


@case
def databases_report_who_held_memory_at_the_peak():
    recording, numbers = made(ranks=1)
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite", "--all"))
    report = peak(recording)
    expect_equal(database.execute("select bytes, blocks, at_ns from peaks").fetchall(),
                 [(report["peak_bytes"], report["peak_blocks"], report["at_ns"])], "the peak")
    found = {(bytes_, blocks): [tuple(frame) for frame in database.execute(FRAMES, (stack,))]
             for stack, bytes_, blocks in database.execute("select stack, bytes, blocks from peak_allocations")}
    expect_equal(found, {(entry["bytes"], entry["blocks"]):
                         [(frame["function"], frame["file"], frame["line"]) for frame in entry["stack"]]
                         for entry in report["holders"]}, "who held it")
    device, = read_report("tensors", recording, "--limit", "0")["devices"]
    rows = database.execute("select device, operator, module, phase, blocks, bytes from peak_tensors order by bytes desc")
    expect_equal(rows.fetchall(), [(device["device"], holder["operator"], holder["module"], holder["phase"],
                                    holder["blocks"], holder["bytes"]) for holder in device["holders"]], "tensors")


@case
def databases_report_what_is_in_them():
    recording, _ = made()
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite"))
    schema = dict(database.execute("select name, sql from sqlite_schema where type in ('table', 'view') and sql is not null"))
    for table in ("processes", "threads", "labels", "stacks", "frames", "steps", "ops", "ranges", "tensors", "out_of_memory",
                  "marks", "user_values", "peaks", "peak_allocations", "peak_tensors", "meta", "op_calls"):
        assert table in schema, table
    for table in ("ops", "ranges", "tensors", "peak_allocations", "stacks"):
        assert "--" in schema[table], f"{table} has no comment"
    for query in ("select * from ops where process = 1 and name = 3", "select * from tensors where process = 1 and op = 5",
                  "select * from ops where process = 1 and thread = 0 and start_ns > 5"):
        plan = database.execute(f"explain query plan {query}").fetchall()
        assert "USING INDEX" in plan[0][3], (query, plan)


@case
def events_as_json_are_what_the_schema_has():
    recording, numbers = made(ranks=2)
    path = exported(recording, "t.json", "--format", "json")
    text = path.read_text()
    found = json.loads(text)
    expect_fits("events", found)
    kinds = collections.Counter(event["type"] for event in found["events"])
    expect_equal(kinds, {"operator": 2 * numbers["operators"], "module": 2 * numbers["modules"], "tensor": 2 * numbers["tensors"],
                         "mark": 2 * numbers["steps"], "value": 22 * numbers["steps"]}, "events")
    # An event a line, for readers that take one line after the other.
    lines = text[text.index('"events":['):].splitlines()[1:]
    lines = [line.rstrip(",") for line in itertools.takewhile(lambda line: not line.startswith("]"), lines)]
    expect_equal([json.loads(line) for line in lines], found["events"], "lines")
    sums = collections.defaultdict(lambda: [0] * 4)
    for event in found["events"]:
        if event["type"] == "operator":
            for i, number in enumerate((1, event["end_ns"] - event["start_ns"], event["self_ns"], event["flops"] or 0)):
                sums[event["name"]][i] += number
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        expect_equal(sums[entry["name"]], [entry[field] for field in ("calls", "cpu_ns", "self_cpu_ns", "self_flops")],
                     f"sums of {entry['name']}")
    expect_equal({event["stack"] for event in found["events"] if event.get("name") == "aten::addmm"},
                 {"/src/train.py(3): Net.forward;/src/train.py(7): train"}, "stacks")
    expect_equal(len(found["steps"]), 2 * numbers["steps"], "steps")


@case
def tables_are_quoted_as_they_should_be():
    recording, numbers = made()
    with open(exported(recording, "t.csv", "--format", "csv"), newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    expect_equal(len(rows), numbers["operators"] + numbers["modules"], "rows")
    expect_equal(sum(int(row["flops"] or 0) for row in rows), read_report("ops", recording)["flops_all"], "FLOPs")
    assert {"float32[256];float32[64,128];float32[128,256](1,128);1;1"} <= {row["inputs"] for row in rows}


main()
