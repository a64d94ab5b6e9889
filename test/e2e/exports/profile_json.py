#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The operator profile, on the simulated CUDA: each kernel, copy and memset of the simulation's own log is in it once, on the
operator that launched it, by the evidence that there was; layers are those that the model has.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from simcuda import cuda_python, duration_ns, of_kind, record_simulated, recorded_once, trained_with_graphs  # noqa: E402
from timeline import events  # noqa: E402
import schema  # noqa: E402

LAYERS, STEPS, BATCH, WORDS, WIDTH, HEADS = 12, 2, 2, 16, 32, 4

GPT = f"""
import torch
torch.backends.cudnn.enabled = False
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm({WIDTH}), torch.nn.LayerNorm({WIDTH})
        self.attn, self.proj = torch.nn.Linear({WIDTH}, 3 * {WIDTH}), torch.nn.Linear({WIDTH}, {WIDTH})
        self.up, self.down = torch.nn.Linear({WIDTH}, 4 * {WIDTH}), torch.nn.Linear(4 * {WIDTH}, {WIDTH})
    def forward(self, x):
        parts = self.attn(self.ln_1(x)).split({WIDTH}, 2)
        q, k, v = (part.view({BATCH}, {WORDS}, {HEADS}, -1).transpose(1, 2) for part in parts)
        y = torch.softmax(q @ k.transpose(2, 3), -1) @ v
        x = x + self.proj(y.transpose(1, 2).reshape({BATCH}, {WORDS}, {WIDTH}))
        return x + self.down(torch.nn.functional.gelu(self.up(self.ln_2(x))))
class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(100, {WIDTH}), torch.nn.Embedding({WORDS}, {WIDTH})
        self.h = torch.nn.ModuleList(Block() for _ in range({LAYERS}))
        self.ln_f, self.head = torch.nn.LayerNorm({WIDTH}), torch.nn.Linear({WIDTH}, 100, bias=False)
    def forward(self, words):
        x = self.wte(words) + self.wpe(torch.arange({WORDS}, device="cuda"))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))
model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range({STEPS}):
    words = torch.zeros({BATCH}, {WORDS}, dtype=torch.long).cuda()
    optimizer.zero_grad()
    model(words).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""

# Two layers that differ, and one that is called three times: no layers that stand for others.
MLP = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.ReLU(), torch.nn.Linear(48, 8)).cuda()
again = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()).cuda()
optimizer = torch.optim.SGD([*model.parameters(), *again.parameters()], 0.1)
for step in range(4):
    optimizer.zero_grad()
    x = model(torch.ones(16, 64).cuda())
    for i in range(3):
        x = again(x)
    x.sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""

# Kernels by the driver alone, beside PyTorch: what torch.compile's would look like where no operator is around them.
FUSED = """
import ctypes, sys, torch
x = torch.ones(8, device="cuda")
cuda, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuModuleLoadData(ctypes.byref(module), b"code") == 0
for name in sys.argv[1:]:
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    assert cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, None) == 0
torch.cuda.synchronize()
"""

INDUCTOR = """
# Topologically Sorted Source Nodes: [add, relu], Original ATen: [aten.add, aten.relu]
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
''', device_str='cuda')
"""


def exported(output):
    """The operator profile of a recording, of whom every line was checked."""
    path = scratch("exported") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    profile = json.loads(path.read_text())
    schema.expect_fits("profile", profile)
    return profile


def kernels_of(profile):
    return [kernel for operator in profile["operators"] for kernel in operator["kernels"]] + profile["unattributed_kernels"]


def copies_of(profile):
    return [copy for operator in profile["operators"] for copy in operator["copies"]] + profile["unattributed_copies"]


def key(item):
    return item["correlation_id"], item["graph_node_id"] or 0


def check_times(found, output):
    """Times are the recording's own, and numbers count what began earlier first."""
    recorded = {(event["correlation"], event["node"]): event for event in events(output)
                if event["event"] in ("kernel", "copy", "memset")}
    for item in found:
        event = recorded[key(item)]
        expect_equal((item["start_ns"], item["duration_ns"]), (event["begin_ns"], event["duration_ns"]), "times")
        expect_equal(item["end_ns"] - item["start_ns"], item["duration_ns"], "duration")
    starts = [item["start_ns"] for item in sorted(found, key=lambda item: int(next(iter(item.values()))[2:]))]
    expect_equal(starts, sorted(starts), "order of ids")


def check_truth(profile, truth, output, within_ns=0):
    """Everything that the simulation did is there once, as it was."""
    expected = {(line["correlation"], line["node"]): line for line in of_kind(truth, "kernel")}
    kernels = kernels_of(profile)
    expect_equal(sorted(key(kernel) for kernel in kernels), sorted(expected), "kernels")
    expect_equal(sorted(kernel["kernel_id"] for kernel in kernels), [f"k_{i:05}" for i in range(len(kernels))], "ids")
    for kernel in kernels:
        line = expected[key(kernel)]
        assert abs(kernel["duration_ns"] - duration_ns(line)) <= within_ns, (kernel, line)
        fields = {"kernel_name": "name", "grid_dim": "grid", "block_dim": "block", "stream_id": "stream", "device_id": "device",
                  "context_id": "context", "registers_per_thread": "registers", "dynamic_smem": "shared"}
        expect_equal({field: kernel[field] for field in fields}, {field: line[name] for field, name in fields.items()}, "kernel")
        expect_equal(kernel["metrics"]["raw"], {"launch__registers_per_thread": line["registers"],
                                                "launch__shared_mem_per_block_dynamic": line["shared"]}, "raw metrics")
    copies = {(line["correlation"], line["node"]): (line.get("copy", "memset"), line["bytes"], line["stream"], line["device"])
              for line in of_kind(truth, "memcpy", "memset")}
    expect_equal({key(copy): (copy["kind"], copy["bytes"], copy["stream_id"], copy["device_id"])
                  for copy in copies_of(profile)}, copies, "copies")
    expect_equal(len(copies_of(profile)), len(copies), "number of copies")
    check_times(kernels, output)
    check_times(copies_of(profile), output)


def check_sums(profile):
    """Operators are what their kernels come to."""
    ids = [operator["operator_id"] for operator in profile["operators"]]
    expect_equal(len(set(ids)), len(ids), "different ids")
    for operator in profile["operators"]:
        kernels, sums = operator["kernels"], operator["aggregated"]
        expect_equal(operator["operator_id"], f"{operator['operator_name']}_{operator['call_index']}", "id")
        expect_equal(sums["total_duration_ns"], sum(kernel["duration_ns"] for kernel in kernels), "total_duration_ns")
        expect_equal(sums["kernel_count"], len(kernels), "kernel_count")
        longest = max(kernels, key=lambda kernel: kernel["duration_ns"], default={"kernel_id": None})
        expect_equal(sums["dominant_kernel_id"], longest["kernel_id"], "dominant_kernel_id")
        expect_equal(sums["registers_per_thread"], max((kernel["registers_per_thread"] for kernel in kernels), default=None),
                     "registers_per_thread")
        expect_equal(sums["dynamic_smem_per_block"], max((kernel["dynamic_smem"] for kernel in kernels), default=None),
                     "dynamic_smem_per_block")
        expect_equal((sums["total_dram_bytes_read"], sums["achieved_occupancy"]), (None, None), "what was not measured")
        covered = set()
        for item in kernels + operator["copies"]:
            covered.update(range(item["start_ns"], item["end_ns"]))
        expect_equal(operator["self_wall_ns"], len(covered), "self_wall_ns")


@case
def profiles_hold_each_kernel_of_a_program_once():
    output, truth = record_simulated([PROGRAMS / "cuda_driver", 2, 20], kernel_ns=123)
    profile = exported(output)
    check_truth(profile, truth, output)
    check_sums(profile)
    expect_equal(len(profile["unattributed_kernels"]), 40, "without an operator")
    expect_equal({(kernel["confidence"], kernel["reason_unattributed"]) for kernel in profile["unattributed_kernels"]},
                 {("unattributed", "it was launched outside of every operator that was recorded")}, "reasons")
    # One warning for all of them, and unmeasured values are marked as such.
    expect_equal(len(profile["warnings"]), 1, "warnings")
    assert profile["warnings"][0].startswith("40 kernels"), profile["warnings"]
    assert {"capture_metadata.torch_version", "operators[].roofline"} <= {row["what"] for row in profile["unmeasured"]}
    expect_equal(profile["capture_metadata"]["torch_version"], "unknown", "torch_version")


@case
def ranges_and_names_are_evidence_where_no_operator_is():
    devices = 2
    output, truth = record_simulated([PROGRAMS / "cuda_evidence"], devices=devices)
    profile = exported(output)
    check_truth(profile, truth, output)
    check_sums(profile)
    found = collections.Counter((operator["operator_name"], kernel["kernel_name"], kernel["method_detail"], kernel["confidence"],
                                 (kernel["nvtx_range"] or {}).get("text"))
                                for operator in profile["operators"] for kernel in operator["kernels"])
    n = 2 * devices  # streams
    expect_equal(dict(found), {
        ("my::scale", "scale", "region", "medium", "my::scale"): 2 * n,
        ("my::outer", "shift", "region", "medium", "my::outer"): n,
        ("my::inner", "shift", "region", "medium", "my::inner"): n,
        ("kernel_family::gemm", "ampere_sgemm_64x64_nn", "name_heuristic", "low", None): n,
    }, "kernels by operator")
    expect_equal([operator["call_index"] for operator in profile["operators"] if operator["operator_name"] == "my::scale"],
                 list(range(2 * n)), "calls")
    expect_equal([kernel["kernel_name"] for kernel in profile["unattributed_kernels"]], ["shift"] * n, "without evidence")
    copies = collections.Counter((operator["operator_name"], copy["kind"]) for operator in profile["operators"]
                                 for copy in operator["copies"])
    expect_equal(dict(copies), {("my::fill", "HtoD"): n, ("kernel_family::memset", "memset"): n}, "copies")
    expect_equal(sorted({(kernel["device_id"], kernel["stream_id"]) for kernel in kernels_of(profile)}),
                 sorted({(line["device"], line["stream"]) for line in of_kind(truth, "kernel")}), "devices and streams")
    # torsh kernels goes by the same evidence.
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    expect_equal({(kernel["symbol"], op["name"], op["method"], op["confidence"], op["calls"])
                  for kernel in report["kernels"] for op in kernel["ops"]},
                 {(name, operator, method, confidence, calls) for (operator, name, method, confidence, _), calls in found.items()
                  if confidence != "low"}, "torsh kernels")
    expect_equal({(row["name"], row["confidence"], row["family"]) for row in report["unattributed"]},
                 {("shift", "unattributed", None), ("ampere_sgemm_64x64_nn", "low", "gemm"), ("memset", "low", "memset")},
                 "torsh kernels, unattributed")


@case
def layers_that_a_program_names_are_taken():
    output, _ = record_simulated([PROGRAMS / "cuda_evidence", "layers"])
    profile = exported(output)
    expect_equal(profile["layers"], {"second": "first"}, "layers")
    found = [(operator["operator_name"], operator["layer_instance"], operator["is_representative"])
             for operator in profile["operators"] if operator["layer_group"] == "layers_0"]
    expect_equal(found, [("my::project", 0, True), ("my::norm", 0, True), ("my::project", 1, False), ("my::norm", 1, False)],
                 "operators of layers")
    expect_equal(json.loads(torsh("export", output, "--format", "part")), {"second": "first"}, "part map")


def check_operators(profile, output):
    """Operators are those of torsh ops: time of devices and calls."""
    totals, calls = collections.Counter(), collections.Counter()
    for operator in profile["operators"]:
        totals[operator["operator_name"]] += sum(item["duration_ns"] for item in operator["kernels"] + operator["copies"])
        calls[operator["operator_name"]] = max(calls[operator["operator_name"]], operator["call_index"] + 1)
    ops = {op["name"]: op for op in read_report("ops", output, "--limit", "0")["ops"]}
    expect_equal(dict(totals), {name: op["self_device_ns"] for name, op in ops.items() if op["self_device_ns"]}, "time")
    for name, n in calls.items():
        assert n <= ops[name]["calls"], (name, n, ops[name]["calls"])


def check_layers(profile, phase, module):
    """Each operator of a phase inside of a block is in the instance of that block; those of others are in none."""
    groups = collections.defaultdict(set)
    for operator in profile["operators"]:
        if operator["training_phase"] != phase or operator["module_path"] is None:
            continue
        is_inside = module in operator["module_path"]
        expect_equal(operator["layer_group"] is not None, is_inside, f"layer of {operator['operator_id']}")
        if is_inside:
            block = operator["module_path"].split(module)[1].split(".")[0].split(":")[0]
            groups[operator["layer_group"]].add((operator["layer_instance"], int(block), operator["is_representative"]))
    (found,) = groups.values()
    order = range(LAYERS) if phase == "forward" else range(LAYERS - 1, -1, -1)
    expect_equal(sorted(found), [(i, block, i == 0) for i, block in enumerate(order)], f"instances of {phase}")


def without_open_ends(profile):
    """What is written at the end is written by a process that still ends: which part of its time it waited isn't settled."""
    analysis = {key: [row for row in rows if row["rule"] != "profiler_too_heavy"]
                for key, rows in profile["analysis"].items() if key in ("rules", "inefficiencies")}
    return {**profile, "analysis": {**profile["analysis"], **analysis}}


def trained_gpt():
    return recorded_once("gpt", "-c", GPT, env={"TORSH_PROFILER_EXPORT_FORMAT": "profile"})


@case
@needs("torch")
def profiles_of_pytorch_have_each_kernel_on_its_operator():
    output, truth = trained_gpt()
    profile = exported(output)
    check_truth(profile, truth, output)
    check_sums(profile)
    check_operators(profile, output)
    kernels = kernels_of(profile)
    expect_equal(collections.Counter(kernel["confidence"] for kernel in kernels), {"high": len(kernels)}, "confidence")
    expect_equal({kernel["op_path"][-1] == operator["operator_name"] for operator in profile["operators"]
                  for kernel in operator["kernels"]}, {True}, "innermost of the path")
    metadata = profile["capture_metadata"]
    version = run([cuda_python(), "-c", "import torch; print(torch.__version__, torch.version.cuda)"]).stdout.decode().split()
    expect_equal([metadata["torch_version"], metadata["cuda_version"]], version, "versions")
    expect_equal((metadata["model_name"], metadata["compile_mode"], metadata["steps"], metadata["capture_mode"]),
                 ("GPT", "eager", STEPS, "CUPTI"), "metadata")
    expect_equal({item["phase"] for item in kernels + copies_of(profile)}, {"init", "warmup", "steady"}, "phases")
    # What is written at the end is the same.
    (written,) = output.glob("*.profile.json")
    expect_equal(without_open_ends(json.loads(written.read_text())), without_open_ends(profile), "what was exported at the end")


@case
@needs("torch")
def backward_is_linked_to_forward_and_layers_are_the_models_blocks():
    output, _ = trained_gpt()
    profile = exported(output)
    forward = {"aten::native_layer_norm_backward": "aten::native_layer_norm", "aten::gelu_backward": "aten::gelu",
               "aten::_softmax_backward_data": "aten::_softmax", "aten::embedding_dense_backward": "aten::embedding"}
    by_id = {operator["operator_id"]: operator for operator in profile["operators"]}
    seen = collections.Counter()
    for operator in profile["operators"]:
        if operator["operator_name"] not in forward:
            continue
        expect_equal(operator["fwd_op_id"].rsplit("_", 1)[0], forward[operator["operator_name"]], "forward operator")
        # What looks words up leaves that to another operator, and launches nothing itself.
        if "embedding" not in operator["fwd_op_id"]:
            expect_equal(by_id[operator["fwd_op_id"]]["module_path"], operator["module_path"], "its module")
        seen[operator["fwd_op_id"]] += 1
    expect_equal(set(seen.values()), {1}, "backward calls of a forward call")
    expect_equal(len(seen), STEPS * (2 * LAYERS + 1 + LAYERS + LAYERS + 2), "forward calls")
    check_layers(profile, "forward", "GPT.h.")
    check_layers(profile, "backward", "GPT.h.")
    assert {f"GPT.h.{i}": "GPT.h.0" for i in range(1, LAYERS)}.items() <= profile["layers"].items(), profile["layers"]
    expect_equal(len(profile["layers"]), 2 * (LAYERS - 1), "layers that another stands for")
    expect_equal(json.loads(torsh("export", output, "--format", "part")), profile["layers"], "part map")


@case
@needs("torch")
def a_model_without_repeated_blocks_has_no_layers():
    output, _ = record_simulated([cuda_python(), "-c", MLP])
    profile = exported(output)
    expect_equal({operator["layer_group"] for operator in profile["operators"]}, {None}, "layers")
    expect_equal(profile["layers"], {}, "part map")


@case
@needs("torch")
def kernels_of_graphs_are_in_the_profile_node_by_node():
    output, truth = trained_with_graphs()
    profile = exported(output)
    check_truth(profile, truth, output, within_ns=10)
    nodes = [kernel for kernel in kernels_of(profile) if kernel["graph_node_id"]]
    assert nodes and all(kernel["graph_id"] for kernel in nodes), nodes
    assert profile["analysis"]["flags"]["has_cuda_graphs"], profile["analysis"]


@case
@needs("torch")
def kernels_of_inductor_are_what_its_cache_has():
    cache = scratch("cache") / "ab"
    cache.mkdir()
    (cache / "cab.py").write_text(INDUCTOR)
    names = ["triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0", "triton_red_fused_sum_1"]
    output, truth = record_simulated([cuda_python(), "-c", FUSED, *names], env={"TORCHINDUCTOR_CACHE_DIR": str(cache.parent)})
    profile = exported(output)
    check_truth(profile, truth, output)
    fused = [operator for operator in profile["operators"] if operator["is_fused"]]
    expect_equal([(operator["operator_name"], operator["fused_with"]) for operator in fused],
                 [("aten::add", ["aten::relu"])] * 2, "operators")
    expect_equal({(kernel["attribution_method"], kernel["confidence"], kernel["method_detail"]) for operator in fused
                  for kernel in operator["kernels"]}, {("inductor_fusion", "medium", "inductor_artifact")}, "evidence")
    (family,) = [operator for operator in profile["operators"] if operator["operator_name"] == "kernel_family::triton_reduction"]
    expect_equal([kernel["confidence"] for kernel in family["kernels"]], ["low"], "what the cache doesn't have")
    expect_equal(profile["capture_metadata"]["compile_mode"], "inductor", "compile_mode")


@case
@needs("models")
def profiles_are_loaded_by_the_published_models():
    output, truth = record_simulated([PROGRAMS / "cuda_evidence", "layers"], devices=2)
    path = scratch("exported") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    loaded = run([environment_python("models"), ROOT / "test/lib/readers/profile_models.py", path])
    expect_equal(loaded.returncode, 0, f"status\n{loaded.stderr.decode()[-3000:]}\n")
    expect_equal(int(loaded.stdout), len(of_kind(truth, "kernel")), "kernels")


if __name__ == "__main__":
    main()
