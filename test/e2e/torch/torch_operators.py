#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PyTorch's operators, tensors and modules as the agent records them, against torch.profiler in the
same process at the same time, and against what the program holds."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators, without_twins  # noqa: E402
from timeline import events  # noqa: E402
from torch_python import TORCH, inductor_cache, torch_python, unrecorded_compilers  # noqa: E402

STEPS = ROOT / "test/lib/torch_steps.py"
BACKWARD = 1
MODELS = ["mlp", "cnn", "transformer", "lstm", "embedding"]
INDUCTOR = "inductor"  # which a compiler makes, in a while
TRAINED = {"witness": [*MODELS, INDUCTOR], "run": [*MODELS, INDUCTOR]}
TIMEOUT_S = 240


def written_by(run_program, wanted):
    """What the program writes of {what: models}, and what run_program returns beside its result."""
    written = scratch("written") / "result.json"
    result, *others = run_program([torch_python(), STEPS, written, *(f"{what}:{','.join(models)}" for what, models in wanted.items())])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return json.loads(written.read_text()), *others


def run_step(what, models, env=None):
    """What the program wrote by model, and the recording of it."""
    results, output = written_by(
        lambda command: record(command, env={**unrecorded_compilers(), **(env or {})}, timeout=TIMEOUT_S), {what: models})
    return results[what], output


def alone():
    """What comes of them without the agent, by what and model. This comes first: Inductor compiles in less time without it."""
    def make(_):
        return written_by(lambda command: [run(command, {**clean_environment(), **inductor_cache()}, timeout=TIMEOUT_S)],
                          {"workers": ["mlp"], **TRAINED, "compiled": ["mlp"]})[0]
    return once(f"alone-{TORCH}", make)


def trained():
    """What every model's training came to under the agent and what torch.profiler saw of it, and the recording."""
    alone()

    def make(folder):
        results, output = written_by(
            lambda command: record(command, folder / "out", env=unrecorded_compilers(), timeout=TIMEOUT_S), TRAINED)
        return results, str(output)
    return once(f"trained-{TORCH}", make)


def window(recorded, name="the window"):
    """The operators of the profiled step, without the profiler's own."""
    all_of_them = operators(recorded)
    (scope,) = [operator for operator in all_of_them if operator.name == name]
    return [operator for operator in all_of_them
            if operator.at_ns >= scope.at_ns and operator.end_ns is not None and operator.end_ns <= scope.end_ns]


def differences(ours, theirs):
    ours, theirs = collections.Counter(ours), collections.Counter(theirs)
    return {"only ours": list((ours - theirs).items())[:5], "only torch.profiler's": list((theirs - ours).items())[:5]}


def sequence(operator):
    """With torch.profiler the engine's own scope has the number of the function inside of it."""
    if operator.name.startswith("autograd::engine::evaluate_function: "):
        operator = next((child for child in operator.children if child.scope == BACKWARD), operator)
    return -1 if operator.sequence is None else operator.sequence


def forward_thread(operator):
    """With torch.profiler the engine's own scope has that of the function inside of it too."""
    if operator.name.startswith("autograd::engine::evaluate_function: "):
        operator = next((child for child in operator.children if child.scope == BACKWARD), operator)
    return operator.forward_thread


# The first case makes what the last ones read too: these come when that is done.
@case
def operators_are_those_of_the_profiler():
    results, output = trained()
    recorded = events(output)
    for model, witness in results["witness"].items():
        agree_with_the_profiler(window(recorded, f"the window of {model}"), witness["events"], model)


def agree_with_the_profiler(ours, theirs, model):
    assert len(theirs) > 30, f"torch.profiler saw {len(theirs)} events of {model}"
    name = differences([operator.name for operator in ours], [event[0] for event in theirs])
    assert not any(name.values()), f"names of {model}: {name}"
    shapes = differences([(operator.name, str(operator.shapes() or [])) for operator in ours],
                         [(event[0], str(event[1])) for event in theirs])
    assert not any(shapes.values()), f"shapes of {model}: {shapes}"
    numbers = differences([(operator.name, sequence(operator)) for operator in ours],
                          [(event[0], event[2]) for event in theirs])
    assert not any(numbers.values()), f"sequence numbers of {model}: {numbers}"
    threads = differences([(operator.name, forward_thread(operator)) for operator in ours],
                          [(event[0], event[4]) for event in theirs])
    assert not any(threads.values()), f"forward threads of {model}: {threads}"
    for operator in ours:
        if operator.parent:
            assert operator.parent.at_ns <= operator.at_ns and operator.end_ns <= operator.parent.end_ns, operator.name


@case
def backward_has_the_thread_of_forward():
    witnesses, output = run_step("threads", ["mlp"])
    seen = witnesses["mlp"]
    recorded = events(output)
    ours = without_twins(window(recorded, "the window"))
    nodes = differences([(operator.name, forward_thread(operator), sequence(operator)) for operator in ours
                         if forward_thread(operator)], [tuple(node) for node in seen["nodes"]])
    assert not any(nodes.values()), f"forward threads: {nodes}"
    assert len({node[1] for node in seen["nodes"]}) == 2, seen["nodes"]
    arrows_come_from_their_threads(recorded, output)
    if any(overload for _, overload in seen["overloads"]):
        overloads = differences([(operator.name, operator.overload or "") for operator in ours],
                                [tuple(event) for event in seen["overloads"]])
        assert not any(overloads.values()), f"overloads: {overloads}"
    else:
        assert "overloads of operators" in torsh("report", output), "the report doesn't contain that there are none"


def arrows_come_from_their_threads(recorded, output):
    """Each node has an arrow in the export, from the thread that ran its forward, though these count alike."""
    rows = {event["number"]: event["thread"] for event in recorded if event["event"] == "op_thread"}
    nodes = [event for event in recorded if event["event"] == "op_begin" and event["scope"] == BACKWARD and event["forward_thread"]]
    forward = {(event["thread"], event["sequence"]): event["at_ns"] for event in recorded
               if event["event"] == "op_begin" and event["scope"] == 0}
    expected = sorted((forward[rows[node["forward_thread"]], node["sequence"]], node["at_ns"]) for node in nodes)
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    flows = {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            flows.setdefault(event["id"], {})[event["ph"]] = round(event["ts"] * 1000)
    expect_equal(sorted((flow["s"], flow["f"]) for flow in flows.values()), expected, "beginnings and ends of arrows")


AVERAGED = """
import json, torch
with torch.profiler.profile() as profiler:
    weight = torch.randn(8, 8, requires_grad=True)
    for _ in range(5):
        torch.softmax(weight @ weight, 1).mean().backward()
        weight.t().contiguous(), weight.sum(), torch.ones(3).to(torch.float64), torch.nn.functional.layer_norm(weight, (8,))
print(json.dumps({entry.key: entry.count for entry in profiler.key_averages()}))
"""


@case
def the_table_counts_as_key_averages():
    """A call that is the only one inside of one of its own name counts with that."""
    version = run([torch_python(), "-c", "import importlib.metadata as all_of; print(all_of.version('torch'))"]).stdout
    if tuple(int(part) for part in version.split(b".")[:2]) < (2, 4):
        raise Skip("this PyTorch nests calls by whole microseconds: key_averages() merges one or another")
    result, output = record([torch_python(), "-c", AVERAGED], timeout=TIMEOUT_S)
    theirs = json.loads(result.stdout)
    merged, raw = (read_report("ops", output, "--limit", "0", *options) for options in (["--merge-nested"], []))
    ours = {entry["name"]: entry["calls"] for entry in merged["ops"]}
    expect_equal({name: ours.get(name) for name in theirs}, theirs, "calls by name")
    assert merged["merged_calls"] > 0, "nothing was nested"
    expect_equal((raw["merged_calls"], raw["calls"]), (0, merged["calls"] + merged["merged_calls"]), "calls that are not merged")
    for field in ("self_cpu_ns", "self_flops", "self_flops_all", "self_allocated_bytes"):
        sums = [sum(entry[field] or 0 for entry in report["ops"]) for report in (raw, merged)]
        expect_equal(*sums, f"sum of {field}")
    assert "key_averages" in torsh("ops", output) and "key_averages" not in torsh("ops", output, "--no-merge-nested")


@case
def tensors_are_the_storages_that_are_held():
    held, output = run_step("tensors", MODELS)
    live, n_ends = {}, 0
    for event in events(output):
        if event["event"] == "op_begin" and event["name"].startswith("the end of "):
            model, n_ends = event["name"].rpartition(" ")[2], n_ends + 1
            expect_equal((len(live), sum(live.values())), (held[model]["blocks"], held[model]["bytes"]),
                         f"blocks and bytes of tensors at the end of {model}")
        if event["event"] != "tensor" or n_ends == len(MODELS):
            continue
        if event["is_free"]:
            assert live.pop(event["address"]) == event["bytes"], event
        else:
            assert event["address"] not in live, event
            live[event["address"]] = event["bytes"]
            assert event["stack"], event
    expect_equal(n_ends, len(MODELS), "models")


@case
def only_the_programs_own_tensors_are_recorded():
    """Not those by which the agent finds the layout of PyTorch's classes."""
    _, output = record([torch_python(), "-c", "import torch; torch.ones(1000)"], timeout=TIMEOUT_S)
    found = [(event["bytes"], event["is_free"]) for event in events(output) if event["event"] == "tensor"]
    expect_equal(found, [(4000, 0), (4000, 1)], "tensors and their ends")


@case
def workers_of_a_data_loader_work():
    under_us, output = run_step("workers", ["mlp"])
    expect_equal(under_us, alone()["workers"], "what the workers gave")
    filled = {event["process"] for event in events(output) if event.get("name") == "aten::full"}
    assert len(filled) >= 4, f"processes that made the numbers: {filled}"


LOADED = """
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        return torch.full((1000,), float(i))
kept = torch.zeros(1 << 20)
print(sum(batch.sum().item() for batch in torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2)))
"""


@case
def the_hosts_memory_is_reported_without_a_cache():
    """Blocks of shared memory and forks: what comes with them is no allocator's sum."""
    result, output = record([torch_python(), "-c", LOADED], timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    devices = read_report("tensors", output)["devices"]
    expect_equal(len(devices), 3, "processes with tensors")
    for device in devices:
        sums = {name: value for name, value in device.items() if name.startswith(("allocated_", "reserved_", "fragmentation_"))}
        expect_equal({name: value for name, value in sums.items() if value is not None}, {}, "sums of the host's allocator")
    peaks = sorted(device["peak_bytes"] for device in devices)
    assert peaks[1] < 1 << 20 < 4 << 20 <= peaks[2], f"peaks of the workers and of what loads: {peaks}"
    assert "reserved" not in torsh("tensors", output)


@case
def compiling_comes_to_the_same():
    under_us, output = run_step("compiled", ["mlp"], env={"PYTHONWARNINGS": "error:Using `torch.compile"})
    expect_equal(under_us, alone()["compiled"], "results, and nodes of the exported graph")
    names = {event["name"] for event in events(output) if event["event"] == "range_push"}
    assert {"Sequential:Sequential", "Sequential.0:Linear"} <= names, names


@case
def modules_have_the_names_of_named_modules():
    _, output = trained()
    names = [event["name"] for event in events(output) if event["event"] == "range_push"]
    expect_equal([name for name in names if name.startswith("Transformer")][:4], ["Transformer:Transformer", "Transformer.encoder:TransformerEncoder",
                             "Transformer.encoder.layers.0:TransformerEncoderLayer",
                             "Transformer.encoder.layers.0.self_attn:MultiheadAttention"], "the first modules")
    pops = [event for event in events(output) if event["event"] == "range_pop"]
    expect_equal(len(pops), len(names), "ends")


@case
def the_profiler_is_left_alone():
    results, _ = trained()
    for model, bare in alone()["witness"].items():
        under_us = results["witness"][model]
        expect_equal(under_us["memory"], bare["memory"], f"memory that torch.profiler saw of {model}")
        expect_equal(under_us["columns"], bare["columns"], f"memory columns of torch.profiler, of {model}")
        # Numbers of autograd nodes begin elsewhere: some were made to find out where things lie.
        # Before 2.9 its times are microseconds, and the order of what begins in the same one is by chance.
        events_of = [[(name, str(shapes)) for name, shapes, *_ in seen["events"]] for seen in (under_us, bare)]
        expect_equal(sorted(events_of[0]), sorted(events_of[1]), f"torch.profiler's events of {model}")


@case
def training_comes_to_the_same_losses_and_gradients():
    results, _ = trained()
    for model, bare in alone()["run"].items():
        expect_equal(results["run"][model], bare, f"losses and gradients of {model}")


main()
