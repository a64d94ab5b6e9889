#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What TensorBoard and its profiler plugin make of an export: scalars, histograms and the graph of each run."""

import bisect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import run_python  # noqa: E402
from environments import torch_python  # noqa: E402
from exported import LAYERS, TENSOR_BYTES, exported, made  # noqa: E402

READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend import process_graph
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
events.Reload()
tags = events.Tags()
graph = events.Graph()
process_graph.prepare_graph_for_ui(graph)
fields = ("min", "max", "num", "sum", "sum_squares", "bucket_limit", "bucket")
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags["scalars"]},
    "histograms": {tag: [[e.step, {field: getattr(e.histogram_value, field) for field in fields}]
                         for e in events.Histograms(tag)] for tag in tags["histograms"]},
    "graph": [{"name": n.name, "op": n.op, "input": list(n.input),
               "attr": {key: value.s.decode() for key, value in n.attr.items()}} for n in graph.node]}))
"""


def read(folder):
    return run_python(READ, folder)


def run_of_one_process():
    """The recording of rank 0 alone, what its directory holds, and its steps."""
    recording, numbers = made(ranks=1)
    folder = exported(recording, "board", "--format", "tensorboard")
    return recording, numbers, folder, read_report("steps", recording, "--limit", "0")["steps"]


@case
def each_step_has_scalars():
    recording, numbers, folder, steps = run_of_one_process()
    found = read(folder)["scalars"]
    for tag, field, scale in (("step/ms", "duration_ns", 1e6), ("step/peak_MiB", "peak_bytes", 2**20),
                              ("memory/cpu/peak_MiB", "peak_bytes", 2**20)):
        expect_equal([step for step, _ in found[tag]], [step["index"] for step in steps], f"steps of {tag}")
        for (_, value), step in zip(found[tag], steps):
            assert abs(value - step[field] / scale) < 1e-6, (tag, value, step)
    for (_, value), step in zip(found["step/GFLOPs_per_second"], steps):
        assert abs(value / (step["flops_all"] / step["duration_ns"]) - 1) < 1e-6, (value, step)
    expect_equal({value for _, value in found["memory/cpu/live_MiB"]}, {0.0}, "held after a step")
    expect_equal([value for _, value in found["loss"]], [float(i) for i in range(len(steps))], "the program's own values")
    assert "length" not in found, "samples are no scalars"


def check_buckets(histogram, samples, what):
    """Returns whether the samples are in the buckets with the limits around them."""
    expected = [0] * len(histogram["bucket"])
    for sample in samples:
        expected[bisect.bisect_right(histogram["bucket_limit"], sample)] += 1
    expect_equal(histogram["bucket"], [float(n) for n in expected], f"buckets of {what}")
    assert histogram["bucket_limit"] == sorted(set(histogram["bucket_limit"])), histogram
    expect_equal((histogram["num"], histogram["sum"], histogram["min"], histogram["max"]),
                 (float(len(samples)), float(sum(samples)), float(min(samples)), float(max(samples))), what)
    assert abs(histogram["sum_squares"] - sum(sample * sample for sample in samples)) < 1e-6 * histogram["sum_squares"] + 1e-9


@case
def each_step_has_histograms():
    recording, numbers, folder, steps = run_of_one_process()
    found = read(folder)["histograms"]
    for tag, samples in (("length", range(10)), ("sizes/tensors_bytes", [TENSOR_BYTES] * LAYERS)):
        expect_equal([step for step, _ in found[tag]], [step["index"] for step in steps], f"steps of {tag}")
        for step, histogram in found[tag]:
            check_buckets(histogram, samples, f"{tag} in step {step}")
    (last, histogram), = found["durations/steps_ms"]
    expect_equal(last, steps[-1]["index"], "step of the durations of all")
    check_buckets(histogram, [step["duration_ns"] / 1e6 for step in steps], "durations of steps")
    # Scopes of the program, one a step, are no operators.
    expect_equal(sum(histogram["num"] for _, histogram in found["durations/operators_us"]),
                 float(numbers["operators"] - numbers["steps"]), "operators")


@case
def the_graph_is_what_a_step_did():
    recording, numbers, folder, steps = run_of_one_process()
    nodes = {node["name"]: node for node in read(folder)["graph"]}
    by_operator = {}
    for node in nodes.values():
        by_operator.setdefault(node["op"], []).append(node)
        assert all(name.lstrip("^") in nodes for name in node["input"]), node
    expect_equal({name: len(of) for name, of in by_operator.items()},
                 {"aten::linear": LAYERS, "aten::relu": LAYERS, "aten::sum": LAYERS, "AddmmBackward0": LAYERS, "aten::add_": 9},
                 "outermost operators of a step")
    for node in by_operator["aten::linear"]:
        assert node["name"].startswith("forward/net/0/aten.linear_"), node
        expect_equal(node["attr"], {"inputs": "float32[64,128];float32[256,128];float32[256]", "module": "net.0:Linear"},
                     "attributes")
    # Each layer's backward has an edge from the forward operator that made its node, all different ones.
    made_by = [name for node in by_operator["AddmmBackward0"] for name in node["input"] if name.startswith("^")]
    expect_equal(sorted(made_by), sorted("^" + node["name"] for node in by_operator["aten::linear"]), "control edges")


DATAFLOW = """
import torch
torch.manual_seed(0)
first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
x = torch.ones(4, 8)
torch.relu(x)
with torch.no_grad():
    hidden = first(x)
    torch.relu_(hidden)
    branch = torch.sigmoid(hidden)
    out = second(hidden.t().t())
    both = torch.add(out, branch)
    unused = torch.exp(x)
    torch.mul(both, hidden, out=unused)
    total = torch.sum(unused)
print(float(total))
"""
# Who reads what was written by whom, as the program above has it: in place and into a given tensor, too.
DATA_EDGES = {("linear", "relu_"), ("relu_", "sigmoid"), ("relu_", "t"), ("relu_", "linear"), ("linear", "add"), ("sigmoid", "add"),
              ("add", "mul"), ("relu_", "mul"), ("exp", "mul"), ("mul", "sum"), ("sum", "item")}


@case
@needs("torch")
def edges_of_the_graph_are_data():
    python = torch_python()
    result, output = record([python, "-c", DATAFLOW])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-300:]})")
    expect_equal(result.stdout, run([python, "-c", DATAFLOW]).stdout, "result with and without the agent")
    nodes = {node["name"]: node for node in read(exported(output, "dataflow", "--format", "tensorboard"))["graph"]}
    wanted = {name for edge in DATA_EDGES for name in edge}
    named = {name: node["op"].partition("::")[2] for name, node in nodes.items()}
    found = {(named[of], named[name]) for name, node in nodes.items() for of in node["input"]
             if not of.startswith("^") and {named[of], named[name]} <= wanted}
    expect_equal(sorted(found), sorted(DATA_EDGES), "edges")
    relu, = [node for node in nodes.values() if node["op"] == "aten::relu"]
    assert not [name for name in relu["input"] if not name.startswith("^") and named[name] in wanted], relu


GRAPH_PAGE = """
import json, sys
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.graph import graphs_plugin
from tensorboard.plugins.histogram import histograms_plugin
runs = plugin_event_multiplexer.EventMultiplexer()
runs.AddRunsFromDirectory(sys.argv[1])
runs.Reload()
context = base_plugin.TBContext(data_provider=data_provider.MultiplexerDataProvider(runs, sys.argv[1]), logdir=sys.argv[1])
page = graphs_plugin.GraphsPlugin(context)
text, kind = page.graph_impl(RequestContext(), sys.argv[2], None, False, "")
samples = histograms_plugin.HistogramsPlugin(context).histograms_impl(RequestContext(), "length", sys.argv[2], "")[0]
print(json.dumps({"nodes": text.count("node {"), "runs": sorted(runs.Runs()), "histograms": len(samples)}))
"""


@case
def the_pages_of_graphs_and_histograms_show_each_rank():
    recording, numbers = made(ranks=2)
    found = run_python(GRAPH_PAGE, exported(recording, "board", "--format", "tensorboard"), "rank-1")
    expect_equal(found, {"nodes": 4 * LAYERS + 9, "runs": ["rank-0", "rank-1"], "histograms": numbers["steps"]},
                 "what the pages have")


PLUGIN = """
import json, sys
from torch_tb_profiler.io import cache
from torch_tb_profiler.profiler.loader import RunLoader
with cache.Cache() as files:
    run = RunLoader("run", sys.argv[1], files).load()
print(json.dumps([{"worker": worker, "views": [view.display_name for view in profile.views],
                   "stacks": {name: [row["call_stack"] for row in table["data"]]
                              for name, table in profile.operation_stack_by_name.items()},
                   "calls": {row["name"]: row["calls"] for row in profile.operation_table_by_name["data"]}}
                  for (worker, _), profile in sorted(run.profiles.items())]))
"""


def check_worker(found, recording, rank):
    assert {"Overview", "Operator", "Memory", "Module"} <= set(found["views"]), found
    expect_equal(found["stacks"], {"aten::addmm": ["/src/train.py(3): Net.forward;/src/train.py(7): train"]}, "call stacks")
    for entry in read_report("ops", recording, "--limit", "0", "--rank", str(rank))["ops"]:
        if not entry["name"].startswith("Optimizer"):  # which the plugin doesn't take for an operator
            expect_equal(found["calls"].get(entry["name"]), entry["calls"], f"calls of {entry['name']}")


@case
def the_profiler_plugin_reads_a_worker_for_each_rank():
    recording, numbers = made(ranks=2)
    folder = exported(recording, "board", "--format", "tensorboard")
    expect_equal(len(list(folder.glob("*.pt.trace.json.gz"))), 2, "traces for the plugin")
    found = run_python(PLUGIN, folder)
    expect_equal([worker["worker"] for worker in found], ["host_1000", "host_2000"], "workers")
    for rank, worker in enumerate(found):
        check_worker(worker, recording, rank)


main()
