#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exports of a timeline, read by the programs that users open them with: counts and times are those of the recording."""

import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import ask_hta, ask_trace_processor  # noqa: E402
from exported import OPERATORS_OF_STEP, exported, made, refused  # noqa: E402
from waves import expect_own_tids, recorded_waves  # noqa: E402

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
def perfetto_traces_are_what_the_recording_has():
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


RANGES = """select s.name name, thread.tid tid from slice s join thread_track t on s.track_id = t.id join thread using (utid)
            where s.name glob 'tid *'"""


@case
def threads_that_start_late_have_their_own_tracks():
    recording, _ = recorded_waves()
    for name, format_ in (("t.pftrace", "perfetto"), ("t.json", "chrome")):
        ranges, = ask_trace_processor(exported(recording, name, "--format", format_), RANGES)
        expect_own_tids([(row["name"], row["tid"]) for row in ranges], format_)


@case
def chrome_traces_are_what_the_recording_has():
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
def windows_hold_what_begins_in_them():
    recording, numbers = made()
    for number in ("1", "3-4"):
        trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--steps", number).read_text())
        slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        first, _, last = number.partition("-")
        n_steps = int(last or first) - int(first) + 1
        expect_equal(sum(event["cat"] in ("cpu_op", "user_annotation") for event in slices), n_steps * OPERATORS_OF_STEP + 1,
                     f"operators in steps {number}, and the end")
    start, end = 1.5e-3, 2.5e-3
    trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--from", "1.5ms", "--to", f"{end}s").read_text())
    begins = [event["ts"] for event in trace["traceEvents"]
              if event["ph"] == "X" and event["args"].get("Rule") != "end of the recording"]
    assert begins and all(start * 1e6 <= at < end * 1e6 for at in begins), (min(begins), max(begins))
    expect_equal(run([TORSH, "export", recording, "--format", "chrome", "--steps", "99"]).returncode, 2, "status")
    for wrong in (["--steps", "x"], ["--from", "soon"], ["--to", "-1s"], ["--steps", "4-3"]):
        expect_equal(run([TORSH, "export", recording, "--format", "chrome", *wrong]).returncode, 2, f"status of {wrong}")


@case
def each_rank_has_a_trace_of_its_own_at_the_end_of_a_run():
    output = scratch()
    program = shell_words(PROGRAMS / "regions")
    script = f"RANK=0 {program} & RANK=1 {program}; wait"
    result = run(["sh", "-c", script], agent_environment(output / "trace.json"))
    expect_equal(result.returncode, 0, "status")
    for rank in range(2):
        path = output / f"trace.rank-{rank}.json"
        wait_until(path.exists, path.name)
        expect_equal(json.loads(path.read_text())["distributedInfo"]["rank"], rank, "rank")


@case
def holistic_trace_analysis_counts_the_operators_of_each_rank():
    recording, numbers = made(ranks=2)
    folder = scratch("ranks")
    torsh("export", recording, "--format", "chrome", "-o", folder)
    expect_equal(sorted(path.name for path in folder.iterdir()), ["rank-0.json", "rank-1.json"], "files")
    found = ask_hta(folder)
    expect_equal(sorted(found), [0, 1], "ranks")
    for rank, counts in found.items():
        for entry in read_report("ops", recording, "--limit", "0", "--rank", str(rank))["ops"]:
            expect_equal(counts.get(entry["name"]), entry["calls"], f"calls of {entry['name']} on rank {rank}")


@case
def each_rank_gets_a_file_of_its_own():
    recording, numbers = made(ranks=3)
    for path, names in (("trace-%r.json", "trace-{}.json"), ("new/", "new/rank-{}.json")):
        folder = scratch("ranks")
        torsh("export", recording, "--format", "chrome", "-o", f"{folder}/{path}")
        for rank in range(3):
            trace = json.loads((folder / names.format(rank)).read_text())
            expect_equal(trace["distributedInfo"]["rank"], rank, "rank")
            expect_equal({event["pid"] for event in trace["traceEvents"] if event["ph"] == "X"}, {1000 * (rank + 1)}, "pids")
    folder = scratch("ranks")
    torsh("export", recording, "--format", "chrome", "-o", folder / "trace.json.gz", "--by-rank")
    expect_equal(sorted(path.name for path in folder.iterdir()), [f"trace.rank-{rank}.json.gz" for rank in range(3)], "files")
    one = exported(recording, "one.json", "--format", "chrome", "--rank", "1")
    expect_equal(json.loads(one.read_text())["distributedInfo"], {"rank": 1}, "the requested rank")
    alone, _ = made()
    path = exported(alone, "alone.json", "--format", "chrome", "--by-rank")
    expect_equal(json.loads(path.read_text())["distributedInfo"]["rank"], 0, "rank of a program without a launcher")


STACKS = """select s.name name, extract_arg(s.arg_set_id, 'debug.stack') stack, count(*) n from slice s
            where extract_arg(s.arg_set_id, 'debug.stack') is not null group by 1, 2"""
STACK = "/src/train.py(3): Net.forward;/src/train.py(7): train"


@case
def operators_have_their_call_stacks():
    recording, numbers = made(ranks=1)
    n = numbers["operators"] // 10
    stacks, = ask_trace_processor(exported(recording, "t.pftrace", "--format", "perfetto"), STACKS)
    expect_equal(stacks, [{"name": "aten::addmm", "stack": STACK, "n": n}], "stacks in Perfetto")
    path = exported(recording, "t.json", "--format", "chrome")
    trace = json.loads(path.read_text())
    found = [(event["name"], event["args"]["Call stack"]) for event in trace["traceEvents"]
             if "Call stack" in event.get("args", {})]
    expect_equal(found, [("aten::addmm", STACK)] * n, "stacks in Chrome's JSON")
    expect_equal(trace["with_stack"], 1, "with_stack")
    slices, flows = ask_trace_processor(path, SLICES, FLOWS)
    expect_equal([(row["out"], row["n"]) for row in flows], [("aten::addmm", n)], "arrows beside them")


@case
def what_would_be_empty_is_refused_with_a_reason():
    _, output = record([PROGRAMS / "entries"])
    recording = recordings(output)[0]
    for name in ("chrome", "csv", "json", "tensorboard"):
        assert "there is no timeline to export" in refused(recording, "--format", name)
    assert "there is no timeline to export" in refused(recording, "--format", "memory")
    _, output = record([PROGRAMS / "regions"], scratch("regions"))
    assert "there are no tensors to export" in refused(recordings(output)[0], "--format", "memory")
    for name in ("perfetto", "sqlite"):  # which have the memory of the process
        assert exported(recording, name, "--format", name).stat().st_size


main()
