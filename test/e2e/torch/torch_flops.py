#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""FLOPs of recorded operators against PyTorch's own FlopCounterMode in the same process, step by
step, on models of each kind. Where the two differ, and why:

 - FlopCounterMode of 2.3 does not have the CPU's attention; `flops` counts as today's does.
 - It can't look at what torch.compile made in 2.3: the model that was compiled is compared with the same one as it was.
 - What one operator does by calling others (a transformer's fast path without gradients, bilinear, cdist) is nothing to it,
   as it doesn't look inside: the products there are in flops_all only, fused ones too.
 - Attention over packed sequences (_flash_attention_forward, _efficient_attention_forward) has no formula of ours, as only
   the device has the lengths of the sequences; inside of scaled_dot_product_attention it counts there. flex_attention is no
   operator of its own where it isn't compiled: the products inside are counted.
 - What it doesn't count on any version (norms, element by element, cells of an LSTM) is in flops_all only.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import OPERATORS_ONLY, TORCH, inductor_cache, torch_python  # noqa: E402

SCRIPT = ROOT / "test/python/flops.py"
MODELS = ("mlp", "cnn", "conv1d3d", "transposed", "grouped", "channelslast", "transformer", "mathattention", "causalattention", "lstm", "gru",
          "embedding", "products", "unknown")
TIMEOUT_S = 240
STEPS = 3  # the last one is that of the counter
# Of each step: queries and keys of every head, then scores and values; its backward takes 5 products instead of 2.
CPU_ATTENTION = {"transformer": 2 * 3 * 4 * 10 * 10 * (8 + 8) * 7 // 2, "causalattention": 2 * 3 * 4 * 10 * 10 * (4 + 4) * 7 // 2}
WITHOUT_FORMULA = {"aten::_fft_r2c": 3, "aten::linalg_lu_factor_ex": 3, "aten::_cdist_forward": 3}


def recorded(*models):
    """What the counter counted, by model and operator, and the recording."""
    written = scratch("written") / "counts.json"
    result, output = record([torch_python(), SCRIPT, written, *models], env={**OPERATORS_ONLY, **inductor_cache()}, timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    return json.loads(written.read_text()), output


def expected_flops(model, counts):
    knows_attention = any("flash_attention_for_cpu" in name for name in counts)
    return sum(counts.values()) + (0 if knows_attention else CPU_ATTENTION.get(model, 0))


def compare(counts, output):
    report, steps = read_report("ops", output, "--limit", "0"), read_report("steps", output, "--limit", "0")
    expect_equal(steps["rule"], "optimizer", "rule of the steps")
    found = [step["flops"] for step in steps["steps"]]
    expect_equal(len(found), STEPS * len(counts), "steps")
    for i, (model, of_operators) in enumerate(counts.items()):
        expect_equal(found[STEPS * i:STEPS * (i + 1)], [expected_flops(model, of_operators)] * STEPS, f"FLOPs of steps of {model}")
    expect_equal(report["flops"], sum(found), "FLOPs of all")
    assert report["flops_all"] > report["flops"], report
    return report


@case
def every_model_has_the_flops_of_the_counter():
    counts, output = recorded(*MODELS)
    report = compare(counts, output)
    expect_equal({entry["name"]: entry["calls"] for entry in report["ops_without_formula"]}, WITHOUT_FORMULA,
                 "what has no formula")


@case
def a_compiled_model_has_the_flops_of_the_counter():
    """Also in the step that compiles it, though operators are called on tensors without data then."""
    counts, output = recorded("compiled")
    report = compare(counts, output)
    expect_equal(report["ops_without_formula"], [], "what has no formula")


FROZEN = """
import json, torch
from torch.utils.flop_counter import FlopCounterMode
import torch._inductor.config
torch._inductor.config.freezing = True
model = torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.GELU(), torch.nn.Linear(64, 16)).eval()
x = torch.randn(2, 10, 48)
with torch.no_grad():
    with FlopCounterMode(display=False) as counter:
        model(x)
    compiled = torch.compile(model)
    compiled(x)
    with torch.autograd.profiler.record_function("frozen"):
        compiled(x)
print(counter.get_total_flops())
"""


@case
@long
def a_frozen_model_has_the_flops_of_the_model_that_it_was():
    """Inductor has packed the weights, and calls MKL or oneDNN instead of aten::addmm."""
    result, output = record([torch_python(), "-c", FROZEN], env={**OPERATORS_ONLY, **inductor_cache()}, timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    report = read_report("ops", output, "--limit", "0")
    [frozen] = [entry for entry in report["ops"] if entry["name"] == "frozen"]
    expect_equal(frozen["flops"], int(result.stdout), f"FLOPs among {sorted(entry['name'] for entry in report['ops'])}")
    without = {entry["name"] for entry in report["ops_without_formula"]}
    assert not [name for name in without if "linear" in name], without


TEMPLATES = """
import torch
import torch._inductor.config as config
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
config.freezing, config.max_autotune, config.max_autotune_gemm_backends = True, True, "CPP"
model, x = nn.Sequential(nn.Linear(32, 64), nn.ReLU()).eval(), torch.randn(16, 32)
with torch.no_grad():
    with FlopCounterMode(display=False) as counter:
        model(x)
    compiled = torch.compile(model)
    compiled(x)
    for i in range(2):
        with torch.autograd.profiler.record_function("compiled"):
            compiled(x)
print(counter.get_total_flops())
"""


@case
@long
def templates_of_inductor_have_the_flops_of_the_counter():
    """By the names of their kernels, which have sizes where Inductor records calls of these."""
    if TORCH != "torch":
        raise Skip("names of templates have sizes in newer versions")
    environment = {**OPERATORS_ONLY, **inductor_cache(), "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
                   "TORSH_PROFILER_FILTER": "python*"}
    result, output = record([torch_python(), "-c", TEMPLATES], env=environment, timeout=2 * TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    report = read_report("ops", output, "--limit", "0")
    [compiled] = [entry for entry in report["ops"] if entry["name"] == "compiled"]
    names = sorted(entry["name"] for entry in report["ops"])
    expect_equal(compiled["flops"], 2 * int(result.stdout), f"FLOPs among {names}")
    assert any("gemm_m16n64k32" in name for name in names), names



FUSED = """
import json, sys, torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
encoder, x = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), torch.randn(2, 10, 16)
lstm, y = nn.LSTM(12, 20, 2, bidirectional=True).eval(), torch.randn(5, 3, 12)
counts = {}
for name in "fused", "composed":
    torch.backends.mha.set_fastpath_enabled(name == "fused")
    with torch.no_grad(), torch.autograd.profiler.record_function(name), FlopCounterMode(display=False) as counter:
        encoder(x), lstm(y)
    counts[name] = counter.get_total_flops()
import torch.utils.flop_counter as module
print(json.dumps({"counts": counts, "known": sorted({str(key).replace("aten.", "") for key in module.flop_registry})}))
"""
WITHOUT_OURS = ("_flash_attention_", "_efficient_attention_", "flex_attention")
ATTENTION = 2 * 2 * 4 * 10 * 10 * (4 + 4)  # of the encoder, in versions without the CPU's attention
LSTM = 2 * 5 * 3 * 4 * (20 * (12 + 20) + 20 * (40 + 20)) * 2  # by products of matrices, in both directions


def fused():
    """The output of FUSED, and its recording: two cases read them."""
    def make(folder):
        result, _ = record([torch_python(), "-c", FUSED], folder / "out", env=OPERATORS_ONLY, timeout=TIMEOUT_S)
        expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
        return json.loads(result.stdout), str(folder / "out")
    return once(f"fused-{TORCH}", make)


@case
def what_is_fused_is_what_it_is_made_of():
    """The counter does not see these, nor an LSTM that a library computes: they are in flops_all."""
    printed, output = fused()
    scopes = {entry["name"]: entry for entry in read_report("ops", output, "--limit", "0")["ops"]}
    attention = 0 if "_scaled_dot_product_flash_attention_for_cpu" in printed["known"] else ATTENTION
    composed = printed["counts"]["composed"] + attention
    expect_equal((scopes["composed"]["flops"], scopes["fused"]["flops"]), (composed, printed["counts"]["fused"]), "FLOPs")
    assert printed["counts"]["fused"] < composed, printed
    assert scopes["fused"]["flops_all"] > composed + LSTM, scopes["fused"]


@case
def all_that_the_counter_counts_is_counted():
    printed, _ = fused()
    rows = (ROOT / "tools/ops/flops.def").read_text()
    ours = set(re.findall(r"COUNTER\((\w+),", rows)) | set(re.findall(r"FORMULA\((\w+), \w+, \w+, \d+, 1\)", rows))
    missing = [name for name in printed["known"] if name not in ours and not name.startswith(WITHOUT_OURS)]
    expect_equal(missing, [], "operators with a formula of FlopCounterMode and none of ours")


main()
