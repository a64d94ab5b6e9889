#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exports of a timeline, read by the programs that users open them with: counts and times are those of the recording."""

import csv
import gzip
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from consumers import ask_hta, ask_trace_processor, run_python  # noqa: E402

SYNTHETIC = BUILD / "test/synthetic"
OPERATORS = 2000


def made():
    """A recording with a known number of everything, and these numbers."""
    path = scratch("recording") / "training.torsh"
    result = run([SYNTHETIC, path, str(OPERATORS)])
    expect_equal(result.returncode, 0, "status of synthetic")
    return path, json.loads(result.stdout)


def exported(recording, name, *arguments):
    path = scratch("exported") / name
    torsh("export", recording, "-o", path, *arguments)
    return path


SLICES = """select s.name name, count(*) n, sum(s.dur) ns from slice s join thread_track t on s.track_id = t.id where s.name != '[memory]'
            and s.name not glob 'ProfilerStep#*' group by 1"""
FLOWS = """select a.name out, b.name into_, count(*) n, sum(b.ts > a.ts) later from flow f join slice a on f.slice_out = a.id
           join slice b on f.slice_in = b.id group by 1, 2"""


def check_slices(recording, rows, module_prefix):
    by_name = {row["name"]: row for row in rows}
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        row = by_name[entry["name"]]
        expect_equal((row["n"], row["ns"]), (entry["calls"], entry["cpu_ns"]), f"calls and time of {entry['name']}")
    assert f"{module_prefix}net.0:Linear" in by_name, sorted(by_name)


@case
def perfetto_traces_are_what_the_recording_says():
    recording, numbers = made()
    slices, flows, counters, steps, wrong = ask_trace_processor(
        exported(recording, "t.pftrace", "--format", "perfetto"), SLICES, FLOWS,
        "select t.name, count(*) n, max(value) top from counter c join counter_track t on c.track_id = t.id group by 1",
        "select count(*) n from slice where name glob 'step *'", "select count(*) n from slice where dur < 0")
    check_slices(recording, slices, "")
    expect_equal(sum(row["n"] for row in slices), numbers["operators"] + numbers["modules"], "slices on threads")
    expect_equal(counters, [{"name": "tensors on the CPU", "n": numbers["tensors"], "top": 655360}], "counters")
    expect_equal(steps, [{"n": numbers["steps"]}], "steps")
    # Each layer's backward comes after the addmm that made its node.
    expect_equal(flows, [{"out": "aten::addmm", "into_": "AddmmBackward0", "n": numbers["operators"] // 10,
                          "later": numbers["operators"] // 10}], "flows")
    expect_equal(wrong, [{"n": 0}], "slices without an end")


@case
def chrome_traces_are_what_the_recording_says():
    recording, numbers = made()
    path = exported(recording, "t.json", "--format", "chrome")
    trace = json.loads(path.read_text())
    expect_equal(trace["distributedInfo"], {"rank": 0, "world_size": 1}, "distributedInfo")
    memory = [event["args"]["Bytes"] for event in trace["traceEvents"] if event["name"] == "[memory]"]
    expect_equal((len(memory), sum(memory)), (numbers["tensors"], 0), "[memory]")
    slices, flows = ask_trace_processor(path, SLICES, FLOWS)
    check_slices(recording, slices, "nn.Module: ")
    expect_equal(flows, [{"out": "aten::addmm", "into_": "AddmmBackward0", "n": numbers["operators"] // 10,
                          "later": numbers["operators"] // 10}], "flows")
    packed = exported(recording, "t.json.gz", "--format", "chrome")
    unpacked = gzip.decompress(packed.read_bytes()).decode()
    expect_equal(json.loads(unpacked)["traceEvents"], trace["traceEvents"], "events of the compressed file")


@case
def databases_hold_every_call():
    recording, numbers = made()
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite"))
    rows = {name: rest for name, *rest in database.execute(
        "select name_text, count(*), sum(self_ns), sum(flops), sum(allocated_bytes) from op_calls group by 1")}
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        expect_equal(rows[entry["name"]], [entry["calls"], entry["self_cpu_ns"], entry["self_flops"],
                                           entry["self_allocated_bytes"]], f"row of {entry['name']}")
    for table, n in (("ranges", numbers["modules"]), ("tensors", numbers["tensors"]), ("steps", numbers["steps"])):
        expect_equal(database.execute(f"select count(*) from {table}").fetchone(), (n,), table)
    # Every operator but the outermost is inside of one that is there.
    lost = database.execute("select count(*) from ops a left join ops b on a.outer = b.id and a.process = b.process "
                            "where a.outer is not null and not (b.start_ns <= a.start_ns and b.end_ns >= a.end_ns)")
    expect_equal(lost.fetchone(), (0,), "operators outside of what is around them")
    expect_equal(database.execute("pragma integrity_check").fetchone(), ("ok",), "integrity")


@case
def tables_are_quoted_as_they_should_be():
    recording, numbers = made()
    with open(exported(recording, "t.csv", "--format", "csv"), newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    expect_equal(len(rows), numbers["operators"] + numbers["modules"], "rows")
    expect_equal(sum(int(row["flops"] or 0) for row in rows), read_report("ops", recording)["flops_all"], "FLOPs")
    assert {"float32[256];float32[64,128];float32[128,256](1,128);1;1"} <= {row["inputs"] for row in rows}


@case
def windows_hold_what_begins_in_them():
    recording, numbers = made()
    for number in ("1", "3-4"):
        trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--steps", number).read_text())
        slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        first, _, last = number.partition("-")
        n_steps = int(last or first) - int(first) + 1
        expect_equal(sum(event["cat"] in ("cpu_op", "user_annotation") for event in slices), n_steps * 101 + 1,
                     f"operators in steps {number}, and the end")
    start, end = 1.5e-3, 2.5e-3
    trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--from", "1.5ms", "--to", f"{end}s").read_text())
    begins = [event["ts"] for event in trace["traceEvents"]
              if event["ph"] == "X" and event["args"].get("Rule") != "end of the recording"]
    assert begins and all(start * 1e6 <= at < end * 1e6 for at in begins), (min(begins), max(begins))
    expect_equal(run([TORSH, "export", recording, "--format", "chrome", "--steps", "99"]).returncode, 2, "status")
    for wrong in (["--steps", "x"], ["--from", "soon"], ["--to", "-1s"], ["--steps", "4-3"]):
        expect_equal(run([TORSH, "export", recording, "--format", "chrome", *wrong]).returncode, 2, f"status of {wrong}")


TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


@case
def tensorboard_reads_a_scalar_for_each_step():
    recording, numbers = made()
    folder = exported(recording, "board", "--format", "tensorboard")
    found = run_python(TENSORBOARD, folder)
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    expect_equal([step for step, _ in found["step/ms"]], [step["index"] for step in steps], "steps")
    for (_, value), step in zip(found["step/ms"], steps):
        assert abs(value - step["duration_ns"] / 1e6) < 1e-6, (value, step)
    assert all(abs(value - step["peak_bytes"] / 1e6) < 1e-6 for (_, value), step in zip(found["step/peak_MB"], steps))
    names = [path.name for path in folder.glob("*.pt.trace.json.gz")]
    expect_equal(len(names), 1, f"traces for the plugin: {names}")


PLUGIN = """
import json, sys
from torch_tb_profiler.io import cache
from torch_tb_profiler.profiler.loader import RunLoader
with cache.Cache() as files:
    run = RunLoader("run", sys.argv[1], files).load()
(profile,) = run.profiles.values()
print(json.dumps({"views": [view.display_name for view in profile.views],
                  "calls": {row["name"]: row["calls"] for row in profile.operation_table_by_name["data"]}}))
"""


@case
def the_profiler_plugin_of_tensorboard_reads_operators_and_modules():
    recording, numbers = made()
    found = run_python(PLUGIN, exported(recording, "board", "--format", "tensorboard"))
    assert {"Overview", "Operator", "Memory", "Module"} <= set(found["views"]), found
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        if not entry["name"].startswith("Optimizer"):  # which the plugin doesn't take for an operator
            expect_equal(found["calls"].get(entry["name"]), entry["calls"], f"calls of {entry['name']}")


@case
def holistic_trace_analysis_counts_the_same_operators():
    recording, numbers = made()
    path = exported(recording, "rank3.json.gz", "--format", "chrome")
    text = gzip.decompress(path.read_bytes()).decode().replace('"rank": 0', '"rank": 3')
    path.write_bytes(gzip.compress(text.encode()))
    found = ask_hta(path.parent)
    expect_equal(found["ranks"], [3], "ranks")
    for entry in read_report("ops", recording, "--limit", "0")["ops"]:
        expect_equal(found["counts"].get(entry["name"]), entry["calls"], f"calls of {entry['name']}")


main()
