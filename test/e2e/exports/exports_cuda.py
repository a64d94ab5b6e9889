#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What devices did, in every export and report that has times: read by the programs that users open them with, and compared
with the simulation's own log and with the trace that PyTorch's Kineto made of the same run.
"""

import collections
import csv
import gzip
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import ask_trace_processor, run_python  # noqa: E402
from exported import exported  # noqa: E402
from html_report import data_of, written  # noqa: E402
from schema import expect_fits  # noqa: E402
from environments import TORCH  # noqa: E402
from simcuda import cuda_python, duration_ns, of_kind, record_simulated, recorded_once  # noqa: E402

KINDS = ("kernel", "memcpy", "memset")
CATEGORIES = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
DEVICES, STEPS, REPLAYS = 2, 5, 3

# Two devices, two streams, a graph; steps 1 to 3 also under torch.profiler, with its trace as a
# second source.
SCRIPT = f"""
import sys, torch
from torch.profiler import ProfilerActivity, profile
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
side, far = torch.cuda.Stream(), torch.ones(256, device="cuda:1")
def step():
    x = torch.randn(16, 64).pin_memory().cuda(non_blocking=True)
    optimizer.zero_grad()
    model(x).sum().backward()
    with torch.cuda.stream(side):
        torch.zeros(1 << 12, device="cuda").add_(1)
    far.mul_(2)
    optimizer.step()
def synchronize():
    for device in range({DEVICES}):
        torch.cuda.synchronize(device)
step()
synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for _ in range({STEPS} - 2):
        step()
    synchronize()
profiler.export_chrome_trace(sys.argv[1])
step()
graph, y = torch.cuda.CUDAGraph(), torch.ones(1024, device="cuda")
with torch.cuda.graph(graph):
    z = y * 2 + 1
for _ in range({REPLAYS}):
    graph.replay()
synchronize()
"""


def trained():
    """The recording, what the simulation did, and Kineto's trace: of one training, which all cases look at."""
    kineto = shared(f"kineto-{TORCH}") / "trace.json"
    output, truth = recorded_once("two-devices", "-c", SCRIPT, kineto, devices=DEVICES)
    return output, truth, json.loads(kineto.read_text())


def demangled(names):
    result = subprocess.run(["c++filt"], input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True)
    return dict(zip(names, result.stdout.decode().splitlines()))


def names_of(truth):
    """How often each kernel ran, by its name as viewers show it."""
    counts = collections.Counter(line["name"] for line in of_kind(truth, "kernel"))
    texts = demangled(sorted(counts))
    found = collections.Counter()
    for name, n in counts.items():
        found[texts[name]] += n
    return found


def by_correlation(truth):
    return {(line["correlation"], line["node"]): line for line in of_kind(truth, *KINDS)}


def of_device(trace):
    return [event for event in trace["traceEvents"] if event.get("cat") in CATEGORIES]


def key_of(event):
    return event["args"]["correlation"], event["args"].get("graph node id", 0)


# ---- Chrome's JSON ------------------------------------------------------------------------------------------------------


def chrome_traces_have_each_kernel_as_the_device_ran_it(recording, truth, kineto):
    trace = json.loads(exported(recording, "t.json", "--format", "chrome").read_text())
    expected = by_correlation(truth)
    found = {key_of(event): event for event in of_device(trace)}
    expect_equal(len(of_device(trace)), len(expected), "rows of devices")
    expect_equal(set(found), set(expected), "what they are")
    texts = demangled(sorted({line["name"] for line in of_kind(truth, "kernel")}))
    for key, line in expected.items():
        event = found[key]
        expect_equal(CATEGORIES[event["cat"]], line["kind"], "category")
        expect_equal(event["pid"], line["device"], "process of the row")
        expect_equal([event["args"][name] for name in ("device", "context", "stream")],
                     [line[name] for name in ("device", "context", "stream")], "place")
        # Kineto's clock counts other units: times come back from these.
        assert abs(event["dur"] * 1000 - duration_ns(line)) <= 10, (event, line)
        if line["kind"] == "kernel":
            expect_equal(event["name"], texts[line["name"]], "name")
            expect_equal((event["args"]["grid"], event["args"]["block"]), (line["grid"], line["block"]), "dimensions")
            expect_equal(event["args"]["registers per thread"], line["registers"], "registers")
        else:
            expect_equal(event["args"]["bytes"], line["bytes"], "bytes")
    labels = {event["pid"]: event["args"]["labels"] for event in trace["traceEvents"] if event["name"] == "process_labels"}
    expect_equal([labels[device] for device in range(DEVICES)], [f"GPU {device}" for device in range(DEVICES)], "labels")


def chrome_rows_of_devices_are_on_the_operators_that_launched_them(recording, truth, kineto):
    trace = json.loads(exported(recording, "t.json", "--format", "chrome").read_text())["traceEvents"]
    operators = {event["args"]["External id"]: event for event in trace if event.get("cat") in ("cpu_op", "user_annotation")
                 and "External id" in event["args"]}
    calls = {event["args"]["correlation"]: event for event in trace if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    sums = collections.Counter()
    for event in (event for event in trace if event.get("cat") in CATEGORIES):
        call = calls[event["args"]["correlation"]]
        is_node = bool(event["args"].get("graph node id"))
        if not is_node:
            expect_equal(event["args"].get("External id"), call["args"].get("External id"), "operator of launch and kernel")
        if "External id" not in event["args"]:
            continue
        operator = operators[event["args"]["External id"]]
        sums[operator["name"]] += round(event["dur"] * 1000)
        if is_node:  # its operator is the one that captured it
            continue
        expect_equal((operator["pid"], operator["tid"]), (call["pid"], call["tid"]), "thread of the operator and its launch")
        assert operator["ts"] <= call["ts"] and call["ts"] + call["dur"] <= operator["ts"] + operator["dur"] + 1e-3, \
            (operator, call)
    ops = read_report("ops", recording, "--limit", "0")["ops"]
    expect_equal({op["name"]: op["self_device_ns"] for op in ops if op["self_device_ns"]}, dict(sums), "sums of torsh ops")


OF_LATER_KINETOS = ("graph id", "graph node id")  # PyTorch 2.3's has neither


def chrome_traces_agree_with_kinetos(recording, truth, kineto):
    ours = json.loads(exported(recording, "t.json", "--format", "chrome").read_text())
    mine, theirs = ({key_of(event): event for event in of_device(trace)} for trace in (ours, kineto))
    assert len(theirs) > 30, len(theirs)
    names = {trace_name: {event["args"]["External id"]: event["name"] for event in trace["traceEvents"]
                          if event.get("cat") == "cpu_op"} for trace_name, trace in (("ours", ours), ("theirs", kineto))}
    # PyTorch 2.3's Kineto gives each the correlation in place of the operator's number, and counts in microseconds.
    names_none = all(event["args"]["External id"] == event["args"]["correlation"] for event in theirs.values())
    within_us = 1 if all(event["dur"] == int(event["dur"]) for event in theirs.values()) else 0.02
    shift = None
    for key, event in theirs.items():
        own = mine[key]
        expect_equal([own[field] for field in ("name", "cat", "pid", "tid")],
                     [event[field] for field in ("name", "cat", "pid", "tid")], "row")
        for name in ("device", "context", "stream", "correlation", "grid", "block", "registers per thread", "shared memory",
                     "bytes", "graph id", "graph node id", "queued"):
            if name in event["args"] or name not in OF_LATER_KINETOS:
                expect_equal(own["args"].get(name), event["args"].get(name), name)
        if not names_none:
            expect_equal(names["ours"][own["args"]["External id"]], names["theirs"][event["args"]["External id"]], "operator")
        assert abs(own["dur"] - event["dur"]) <= within_us, (own, event)
        shift = shift if shift is not None else event["ts"] - own["ts"]
        # Two conversions of one clock, over half a minute.
        assert abs(event["ts"] - own["ts"] - shift) < 1000, (own, event)


FLOWS = """select a.category out, b.category into_, count(*) n, count(distinct b.id) slices, sum(b.ts < a.ts) backwards,
           sum(extract_arg(a.arg_set_id, '{0}correlation') != extract_arg(b.arg_set_id, '{0}correlation')) wrong
           from flow join slice a on slice_out = a.id join slice b on slice_in = b.id
           where b.category in ('kernel', 'gpu_memcpy', 'gpu_memset') group by 1, 2"""
KERNELS = """select name, count(*) n, sum(dur) ns from slice where category = 'kernel' group by 1"""
OVERLAPS = """select count(*) n from slice a join slice b on a.track_id = b.track_id and a.id < b.id
              and b.ts < a.ts + a.dur and a.ts < b.ts + b.dur
              where a.category in ('kernel', 'gpu_memcpy', 'gpu_memset') and b.category in ('kernel', 'gpu_memcpy', 'gpu_memset')"""
DEPTHS = "select count(*) n from slice where category in ('kernel', 'gpu_memcpy', 'gpu_memset') and depth > 0"


def check_pictures(path, truth, prefix):
    """What Perfetto's trace processor finds in a trace: every kernel, none on another, an arrow to each."""
    kernels, flows, overlaps, depths = ask_trace_processor(path, KERNELS, FLOWS.format(prefix), OVERLAPS, DEPTHS)
    expect_equal({row["name"]: row["n"] for row in kernels}, dict(names_of(truth)), "kernels")
    took_ns, expected_ns = sum(row["ns"] for row in kernels), sum(duration_ns(line) for line in of_kind(truth, "kernel"))
    assert abs(took_ns - expected_ns) <= 10 * len(of_kind(truth, "kernel")), (took_ns, expected_ns)
    expect_equal(sum(row["n"] for row in flows), len(of_kind(truth, *KINDS)), "arrows")
    expect_equal(sum(row["slices"] for row in flows), len(of_kind(truth, *KINDS)), "rows with an arrow")
    expect_equal((sum(row["backwards"] for row in flows), sum(row["wrong"] for row in flows)), (0, 0), "wrong arrows")
    expect_equal((overlaps, depths), ([{"n": 0}], [{"n": 0}]), "rows on other rows")


def perfetto_shows_each_kernel_with_its_launch(recording, truth, kineto):
    path = exported(recording, "t.pftrace", "--format", "perfetto")
    check_pictures(path, truth, "debug.")
    tracks, graphs, operators = ask_trace_processor(
        path, """select p.name device, t.name stream, count(*) n from slice s join track t on s.track_id = t.id
                 join track p on t.parent_id = p.id where s.category in ('kernel', 'gpu_memcpy', 'gpu_memset') group by 1, 2""",
        """select a.name out, count(distinct a.id) launches, count(*) n from flow join slice a on slice_out = a.id
           join slice b on slice_in = b.id where extract_arg(b.arg_set_id, 'debug.node') is not null group by 1""",
        """select extract_arg(arg_set_id, 'debug.operator') operator, sum(dur) ns from slice
           where category in ('kernel', 'gpu_memcpy', 'gpu_memset') group by 1""")
    expected = collections.Counter((f"GPU {line['device']}", f"stream {line['stream']}") for line in of_kind(truth, *KINDS))
    found = {(row["device"], row["stream"].partition(" (")[0]): row["n"] for row in tracks}
    expect_equal(found, dict(expected), "rows of each stream")
    nodes = sum(bool(line["node"]) for line in of_kind(truth, *KINDS))
    expect_equal(graphs, [{"out": "cudaGraphLaunch", "launches": REPLAYS, "n": nodes}], "arrows of graphs")
    ops = read_report("ops", recording, "--limit", "0")["ops"]
    expect_equal({row["operator"]: row["ns"] for row in operators if row["operator"]},
                 {op["name"]: op["self_device_ns"] for op in ops if op["self_device_ns"]}, "time by operator")


def perfetto_shows_the_same_of_chromes_json(recording, truth, kineto):
    check_pictures(exported(recording, "t.json", "--format", "chrome"), truth, "args.")


HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
_, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)
queue = analysis.get_queue_length_summary()
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
texts = analysis.t.symbol_table.get_sym_table()
frame = analysis.t.get_trace(0)
counts = frame[frame["cat"].map(lambda i: texts[i]) == "kernel"]["name"].map(lambda i: texts[i]).value_counts()
print(json.dumps({"kernels": {name: int(n) for name, n in counts.items()}, "breakdown": sorted(kernels["name"]),
                  "streams": [list(map(int, index)) for index in queue.index], "launches": len(launches),
                  "delays": bool((launches["launch_delay"] >= 0).all())}))
"""


def holistic_trace_analysis_breaks_the_devices_down(recording, truth, kineto):
    folder = exported(recording, "trace.json.gz", "--format", "chrome").parent
    found = run_python(HTA, folder)
    # HTA leaves out what is in no step, or in the last one; steps are the optimizer's here.
    steps = read_report("steps", recording)["steps"]
    expected = collections.Counter()
    for step in steps:
        for kernel in read_report("kernels", recording, "--limit", "0", "--steps", str(step["index"]))["kernels"]:
            expected[kernel["name"]] += kernel["calls"]
    everything = names_of(truth)
    for name, n in found["kernels"].items():
        assert expected[name] <= n <= everything[name], (name, n, expected[name], everything[name])
    expect_equal(set(found["kernels"]), set(everything), "kernels")
    strange = [name for name in found["breakdown"] if name not in everything and not name.startswith(("Memcpy ", "Memset "))]
    expect_equal(strange, [], "names in the breakdown")
    streams = {(0, line["stream"]) for line in of_kind(truth, "kernel")}
    assert {tuple(stream) for stream in found["streams"]} <= streams and found["streams"], found["streams"]
    assert found["launches"] > 30 and found["delays"], found


@case
@needs("torch")
def the_file_that_was_requested_has_the_devices():
    folder, output = scratch("folder"), scratch("run")
    script = "import torch\nfor _ in range(4):\n    x = (torch.ones(64, device='cuda') + 1).cpu()\n"
    _, truth = record_simulated([cuda_python(), "-c", script], env={"TORSH_PROFILER_OUTPUT": str(output / "trace.json.gz")})
    trace = json.loads(gzip.decompress((output / "trace.json.gz").read_bytes()))
    expect_equal(collections.Counter(CATEGORIES[event["cat"]] for event in of_device(trace)),
                 collections.Counter(line["kind"] for line in of_kind(truth, *KINDS)), "rows of devices")
    shutil.copy(output / "trace.json.gz", folder)
    counts = run_python(HTA, folder)
    expect_equal(counts["kernels"], dict(names_of(truth)), "kernels in HTA")


# ---- programs of one's own ----------------------------------------------------------------------------------------------


def databases_have_what_devices_did(recording, truth, kineto):
    database = sqlite3.connect(exported(recording, "t.sqlite", "--format", "sqlite"))
    report = read_report("kernels", recording, "--limit", "0")
    rows = database.execute("select name_text, count(*), sum(end_ns - start_ns), min(end_ns - start_ns), max(end_ns - start_ns) "
                            "from kernel_calls group by 1").fetchall()
    expect_equal({name: list(rest) for name, *rest in rows},
                 {kernel["name"]: [kernel[field] for field in ("calls", "total_ns", "min_ns", "max_ns")]
                  for kernel in report["kernels"]}, "kernels")
    rows = database.execute("select op_text, sum(end_ns - start_ns) from kernel_calls group by 1").fetchall()
    by_op = collections.Counter()
    for kernel in report["kernels"]:
        for op in kernel["ops"]:
            by_op[op["name"]] += op["total_ns"]
    expect_equal({name: ns for name, ns in rows if name}, dict(by_op), "time by operator")
    copies = database.execute("select kind, count(*), sum(bytes), sum(end_ns - start_ns) from copies group by 1 union all "
                              "select 'memset', count(*), sum(bytes), sum(end_ns - start_ns) from memsets").fetchall()
    expect_equal(sorted(row for row in copies if row[1]),
                 sorted((copy["kind"], copy["calls"], copy["bytes"], copy["total_ns"]) for copy in report["copies"]), "copies")
    for table, list_of, fields in (("calls", "calls", ("name", "calls", "failed", "total_ns", "max_ns")),
                                   ("waits", "waits", ("kind", "op", "calls", "total_ns", "max_ns"))):
        rows = database.execute(f"select {', '.join(fields).replace('op,', 'operator,')} from {table}").fetchall()
        assert rows, f"no {table}"
        key = lambda row: tuple(str(part) for part in row)  # noqa: E731
        expect_equal(sorted(rows, key=key), sorted((tuple(row[field] for field in fields) for row in report[list_of]), key=key), table)
    launches = database.execute("select count(*), sum(caused) from launches where caused").fetchone()
    expect_equal(launches, (len({line["correlation"] for line in of_kind(truth, *KINDS)}), len(of_kind(truth, *KINDS))),
                 "launches and what came of them")
    lost = database.execute("select count(*) from kernels k left join launches l using (process, correlation) "
                            "where l.correlation is null").fetchone()
    expect_equal(lost, (0,), "kernels without a launch")
    for query in ("select * from kernels where process = 1 and name = 3", "select * from kernels where process = 1 and op = 5",
                  "select * from kernels where process = 1 and device = 0 and stream = 7 and start_ns > 5",
                  "select * from launches where process = 1 and correlation = 7"):
        assert "USING INDEX" in database.execute(f"explain query plan {query}").fetchall()[0][3], query


def json_and_csv_have_what_devices_did(recording, truth, kineto):
    found = json.loads(exported(recording, "t.json", "--format", "json").read_text())
    expect_fits("events", found)
    kinds = {"kernel": "kernel", "copy": "memcpy", "memset": "memset"}
    rows = [event for event in found["events"] if event["type"] in kinds]
    expected = by_correlation(truth)
    expect_equal(sorted((kinds[row["type"]], row["correlation"], row["node"] or 0) for row in rows),
                 sorted((line["kind"], *key) for key, line in expected.items()), "rows")
    names = {(event["process"], event["id"]): event["name"] for event in found["events"] if event["type"] == "operator"}
    sums = collections.Counter()
    for row in rows:
        if row["operator"] is not None:
            sums[names[row["process"], row["operator"]]] += row["end_ns"] - row["start_ns"]
        expect_equal(row["reason"] is None, row["operator"] is not None, "reason")
    ops = read_report("ops", recording, "--limit", "0")["ops"]
    expect_equal(dict(sums), {op["name"]: op["self_device_ns"] for op in ops if op["self_device_ns"]}, "time by operator")
    with open(exported(recording, "t.csv", "--format", "csv"), newline="") as file:
        lines = [line for line in csv.DictReader(file, strict=True) if line["category"] in kinds]
    expect_equal(len(lines), len(rows), "lines of the table")
    expect_equal(sum(round(float(line["duration_us"]) * 1000) for line in lines),
                 sum(row["end_ns"] - row["start_ns"] for row in rows), "time in the table")
    expect_equal(sum(int(line["bytes"] or 0) for line in lines), sum(row.get("bytes", 0) for row in rows), "bytes in the table")


# ---- TensorBoard --------------------------------------------------------------------------------------------------------

SCALARS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
events.Reload()
print(json.dumps({"scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]},
                  "kernels": [e.histogram_value.num for e in events.Histograms("durations/kernels_us")]}))
"""
PLUGIN = """
import json, sys
from torch_tb_profiler.io import cache
from torch_tb_profiler.profiler.loader import RunLoader
with cache.Cache() as files:
    run = RunLoader("run", sys.argv[1], files).load()
(profile,) = run.profiles.values()
table = profile.kernel_table["data"]
names = [column["name"] for column in table["columns"]]
print(json.dumps({"views": [view.display_name for view in profile.views], "gpus": profile.gpu_ids if hasattr(profile, "gpu_ids") else None,
                  "rows": [dict(zip(names, row)) for row in table["rows"]]}))
"""


def tensorboard_has_the_devices_of_each_step(recording, truth, kineto):
    found = run_python(SCALARS, exported(recording, "board", "--format", "tensorboard"))
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    for (number, value), step in zip(found["scalars"]["step/device_ms"], steps, strict=True):
        expect_equal(number, step["index"], "step")
        assert abs(value - step["device_ns"] / 1e6) < 1e-6, (value, step)
    for device in range(DEVICES):
        for (_, value), step in zip(found["scalars"][f"device/cuda:{device}/busy_percent"], steps, strict=True):
            assert abs(value - 100 * step["devices"][device]["busy_share"]) < 1e-3, (value, step)
    expect_equal(found["kernels"], [float(len(of_kind(truth, "kernel")))], "kernels in the histogram")


def the_profiler_plugin_shows_the_kernels(recording, truth, kineto):
    found = run_python(PLUGIN, exported(recording, "board", "--format", "tensorboard"))
    assert "Kernel" in found["views"], found["views"]
    calls = collections.Counter()
    for row in found["rows"]:
        calls[row["Name"]] += row["Calls"]
    everything = names_of(truth)
    assert calls and all(n <= everything[name] for name, n in calls.items()), (calls, everything)


# ---- reports ------------------------------------------------------------------------------------------------------------


def union_ns(spans, begin, end):
    """How much of [begin, end) lies in some of the spans."""
    total, until = 0, begin
    for start, stop in sorted(spans):
        start, stop = max(start, until), min(stop, end)
        total += max(0, stop - start)
        until = max(until, stop)
    return total


def steps_have_what_they_launched_and_how_busy_devices_were(recording, truth, kineto):
    report = read_report("steps", recording, "--limit", "0")
    expect_fits("steps", report)
    expect_equal(len(report["steps"]), STEPS, "steps")
    events = json.loads(exported(recording, "t.json", "--format", "json").read_text())["events"]
    rows = [event for event in events if event["type"] in ("kernel", "copy", "memset")]
    begins = {event["correlation"]: event["start_ns"] for event in events if event["type"] == "launch"}
    for step in report["steps"]:
        begin, end = step["start_ns"], step["start_ns"] + step["duration_ns"]
        launched = [row for row in rows if begin <= begins[row["correlation"]] < end]
        expect_equal(step["device_ns"], sum(row["end_ns"] - row["start_ns"] for row in launched), "launched in the step")
        expect_equal({row["step"] for row in launched}, {step["index"]}, "number of the step")
        phases = collections.Counter()
        for row in launched:
            phases[row["phase"]] += row["end_ns"] - row["start_ns"]
        expect_equal({name: ns for name, ns in step["device_phases"].items() if ns},
                     {name: ns for name, ns in phases.items() if name}, "by phase")
        expect_equal([device["device"] for device in step["devices"]], list(range(DEVICES)), "devices")
        for device in step["devices"]:
            spans = [(row["start_ns"], row["end_ns"]) for row in rows if row["device"] == device["device"]]
            expect_equal(device["busy_ns"], union_ns(spans, begin, end), "busy")
            expect_equal(device["device_ns"], sum(row["end_ns"] - row["start_ns"] for row in launched
                                                  if row["device"] == device["device"]), "launched there")
            assert abs(device["busy_share"] - device["busy_ns"] / step["duration_ns"]) < 1e-6, step


def the_page_has_how_busy_devices_were(recording, truth, kineto):
    rows = [event for event in json.loads(exported(recording, "t.json", "--format", "json").read_text())["events"]
            if event["type"] in ("kernel", "copy", "memset")]
    steps = [(step["start_ns"], step["start_ns"] + step["duration_ns"]) for step in read_report("steps", recording)["steps"]]
    devices = data_of(written(recording))["devices"]
    expect_equal([device["device"] for device in devices], list(range(DEVICES)), "devices")
    for device in devices:
        work, spans = device["work"], [(row["start_ns"], row["end_ns"]) for row in rows if row["device"] == device["device"]]
        expect_equal(work["busy_ns"], sum(union_ns(spans, begin, end) for begin, end in steps), "busy in the steps")
        expect_equal(work["scope_ns"], sum(end - begin for begin, end in steps), "time of the steps")
        edges = [work["from_ns"] + i * work["interval_ns"] for i in range(len(work["intervals"]) + 1)]
        expect_equal(work["intervals"], [union_ns(spans, begin, end) for begin, end in zip(edges, edges[1:])], "the curve")
        expect_equal(sum(work["intervals"]), union_ns(spans, 0, edges[-1]), "the whole curve")


def modules_have_the_devices_time_of_forward_and_backward(recording, truth, kineto):
    report = read_report("modules", recording, "--limit", "0")
    expect_fits("modules", report)
    modules = {module["name"]: module for module in report["modules"]}
    events = json.loads(exported(recording, "t.json", "--format", "json").read_text())["events"]
    own = collections.Counter()
    for event in events:
        if event["type"] in ("kernel", "copy", "memset"):
            own[event["module"]] += event["end_ns"] - event["start_ns"]
    expect_equal({name: module["self_device_ns"] for name, module in modules.items() if module["self_device_ns"]},
                 dict(own), "self")
    outer = next(name for name in modules if name and name.endswith(":Sequential"))
    inner = [module for name, module in modules.items() if name and name != outer]
    expect_equal(len(inner), 3, "modules inside")
    for field in ("device_ns", "backward_ns"):
        expect_equal(modules[outer][field], modules[outer][f"self_{field}"] + sum(module[field] for module in inner), field)
        assert modules[outer][field], f"{field} of the outermost module"


def windows_hold_what_was_launched_in_them(recording, truth, kineto):
    for step in read_report("steps", recording, "--limit", "0")["steps"][1:3]:
        number = str(step["index"])
        report = read_report("kernels", recording, "--limit", "0", "--steps", number)
        expect_fits("kernels", report)
        expect_equal(report["total_ns"], step["device_ns"], "torsh kernels --steps")
        trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--steps", number).read_text())
        expect_equal(sum(round(event["dur"] * 1000) for event in of_device(trace)), step["device_ns"], "rows of the step")
        sorts = [read_report("kernels", recording, "--steps", number, "--sort", key)["kernels"] for key in ("calls", "name")]
        expect_equal(sorts[0], sorted(sorts[0], key=lambda kernel: -kernel["calls"]), "by calls")
        expect_equal([kernel["symbol"] for kernel in sorts[1]], sorted(kernel["symbol"] for kernel in sorts[1]), "by name")
    warm = read_report("kernels", recording, "--skip-warmup", "1")
    expect_equal(warm["total_ns"], sum(step["device_ns"] for step in read_report("steps", recording)["steps"][1:]), "warm")
    begins = sorted(event["ts"] for event in of_device(json.loads(
        exported(recording, "t.json", "--format", "chrome").read_text())))
    middle = begins[len(begins) // 2]
    trace = json.loads(exported(recording, "t.json", "--format", "chrome", "--from", f"{middle}us").read_text())
    expect_equal(sorted(event["ts"] for event in of_device(trace)), [at for at in begins if at >= middle], "after a moment")


def check(*checks):
    found = trained()
    for one in checks:
        one(*found)


check.needs = ["torch"]
add_case("chrome_traces_have_what_devices_did", check,
         chrome_traces_have_each_kernel_as_the_device_ran_it,
         chrome_rows_of_devices_are_on_the_operators_that_launched_them,
         chrome_traces_agree_with_kinetos)
add_case("perfetto_shows_what_devices_did", check,
         perfetto_shows_each_kernel_with_its_launch,
         perfetto_shows_the_same_of_chromes_json)
add_case("readers_of_kinetos_traces_see_the_devices", check,
         holistic_trace_analysis_breaks_the_devices_down,
         the_profiler_plugin_shows_the_kernels)
add_case("tables_and_scalars_have_what_devices_did", check,
         databases_have_what_devices_did,
         json_and_csv_have_what_devices_did,
         tensorboard_has_the_devices_of_each_step)
add_case("steps_modules_and_windows_have_the_devices_time", check,
         steps_have_what_they_launched_and_how_busy_devices_were,
         the_page_has_how_busy_devices_were,
         modules_have_the_devices_time_of_forward_and_backward,
         windows_hold_what_was_launched_in_them)


main()
