#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
FLOPs of what torch.compile makes for the CPU, against three truths: FlopCounterMode on the program as it is, the program's own
formula, and the operations that Inductor's metadata has for each kernel before it is code.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import OPERATORS_ONLY, TORCH, torch_python, unrecorded_compilers  # noqa: E402

SCRIPTS = ROOT / "test/python/compiled"
TIMEOUT_S = 500
FEW = ("chain", "softmax", "integers", "rows", "columns", "padded")
MORE = ("sums", "double", "transposed", "special", "bfloat16", "embedding", "normed", "mlp", "inner")
ONLY_FOR_SOME = "the kernel computes a part only for some elements"
UNKNOWN_WEIGHTS = "the weights are packed, and which ones they are is not known"
NO_CODE = "the kernel's code is not in the directory that Inductor's cache was in"


def environment():
    """Without Inductor's cache of graphs, which would give code that was not made here."""
    if TORCH != "torch":
        raise Skip("Inductor's metadata is another in older versions")
    return {**OPERATORS_ONLY, **unrecorded_compilers(), "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(scratch("cache")), "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}


def recorded(script, *names):
    """What the script wrote, and the recording."""
    written, around = scratch("written") / "counts.json", environment()
    result, output = record([torch_python(), SCRIPTS / script, written, *names], env=around, timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-800:]})")
    return json.loads(written.read_text()), output


def compare(printed, report):
    """Kernels and programs; returns the names of the kernels whose FLOPs are unknown, with the reason."""
    ops = {entry["name"]: entry for entry in report["ops"]}
    unknown = {entry["name"]: entry["reason"] for entry in report["ops_without_formula"] if "cpp_fused" in entry["name"]}
    found = {name: ops[name]["self_flops_all"] for name in printed["kernels"] if name not in unknown}
    assert found, f"no kernel is known of {unknown}"
    expect_equal(found, {name: printed["calls"] * printed["kernels"][name] for name in found}, "FLOPs of kernels")
    for name, program in printed["programs"].items():
        scope = ops["compiled " + name]
        calls = printed["calls"] - 1
        expect_equal(scope["flops"] or 0, calls * program["counter"], f"FLOPs of {name} as of the counter")
        if program["formula"] is not None:
            expect_equal(scope["flops_all"], calls * program["formula"], f"all FLOPs of {name}")
    return unknown


@case
def kernels_have_the_operations_of_their_code():
    printed, output = recorded("programs.py", *FEW)
    unknown = compare(printed, read_report("ops", output, "--limit", "0"))
    expect_equal(set(unknown.values()), {ONLY_FOR_SOME}, f"reasons of {unknown}")
    [name] = unknown
    assert "constant_pad_nd" in name, unknown
    text = torsh("ops", output)
    assert f"{name}: {ONLY_FOR_SOME}" in text, text[-800:]
    environment()  # empties the cache
    without = read_report("ops", output, "--limit", "0")
    expect_equal({entry["reason"] for entry in without["ops_without_formula"] if "cpp_fused" in entry["name"]}, {NO_CODE},
                 "reasons without the cache")


@case
@long
def kernels_of_more_programs_have_the_operations_of_their_code():
    printed, output = recorded("programs.py", *MORE)
    expect_equal(compare(printed, read_report("ops", output, "--limit", "0")), {}, "kernels with unknown FLOPs")


@case
def frozen_models_have_the_flops_of_the_counter():
    """oneDNN has packed their weights, which have no sizes any more; what packed them had."""
    counts, output = recorded("frozen.py")
    report = read_report("ops", output, "--limit", "0")
    ops = {entry["name"]: entry for entry in report["ops"]}
    assert counts.pop("forked") and not ops["forked"]["flops"], "products of weights that can't be told apart"
    unknown = {entry["name"]: (entry["calls"], entry["reason"]) for entry in report["ops_without_formula"] if "mkl" in entry["name"]}
    expect_equal(unknown, {"mkldnn::_linear_pointwise": (2 * 2, UNKNOWN_WEIGHTS)}, "what has no FLOPs")
    expect_equal({name: ops[name]["flops"] for name in counts}, counts, f"FLOPs among {sorted(ops)}")
    used = [name for name in ops if name.startswith("mkldnn::_") and name.endswith("_pointwise")]
    expect_equal(len(used), 3, f"operators with packed weights: {used}")


@case
@long
def templates_have_the_flops_of_the_counter():
    """A product of a batch calls one for each matrix, on several threads; attention counts by the sizes in its code."""
    printed, output = recorded("templates.py")
    ops = read_report("ops", output, "--limit", "0")["ops"]
    for name, kernel in (("bmm", "gemm_m8n32k16"), ("attention", "graph_1_kernel")):
        [found] = [entry["self_flops"] for entry in ops if kernel in entry["name"]]
        expect_equal(found, printed["calls"] * printed["counts"][name], f"FLOPs of {name} in calls of {kernel}")


if __name__ == "__main__":
    main()
