#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
FLOPs of compiled models on the simulated CUDA: those of operators and those of kernels that Inductor generated with Triton
are together what FlopCounterMode counts in the model as it is.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import TORCH  # noqa: E402
from simcuda import LIBRARIES, cuda_python, recording_environment  # noqa: E402
import schema  # noqa: E402

# Trains a model as it is, printing what the counter counts, and twice compiled. Its results do not matter: the device is simulated.
SCRIPT = """
import sys

import torch
import torch._inductor.config as config
from torch._inductor.runtime.benchmarking import benchmarker
from torch.utils.flop_counter import FlopCounterMode

# Else what is timed for a choice would count too.
type(benchmarker).benchmark_gpu = lambda self, launch, **options: 1.0
config.compile_threads, config.shape_padding = 1, False


def random(*sizes):
    return torch.randn(sizes, device="cuda", requires_grad=True)


class Small(torch.nn.Module):
    # Products of a column by a row, which Inductor makes multiplications of, between those that a library computes.
    def __init__(self):
        super().__init__()
        self.layer, self.row = torch.nn.Linear(32, 64), torch.nn.Parameter(torch.randn(1, 16))

    def forward(self, x):
        return self.layer(x).relu(), torch.mm(x[:, :1], self.row).relu(), torch.bmm(x[:, :, None], x[:, None, :])


class Gelu(torch.nn.Module):
    # Its kernels multiply, but no product is in them.
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8))

    def forward(self, x):
        return self.layers(x),


class Templates(torch.nn.Module):
    # Products that Inductor has templates of, with what follows them in the same kernel; these take long to compile: forward only.
    def __init__(self):
        super().__init__()
        self.layer, self.weights = torch.nn.Linear(32, 64, bias=False), torch.nn.Parameter(torch.randn(4, 16, 32))

    def forward(self, x):
        return torch.bmm(self.layer(x).relu().view(4, -1, 16), self.weights),


def train(model, x):
    y = model(x)
    if torch.is_grad_enabled():
        sum(part.sum() for part in y).backward()
    torch.cuda.synchronize()


def run(name):
    model, x = {"small": Small, "gelu": Gelu, "templates": Templates}[name]().cuda(), random(8, 32)
    if name == "templates":
        config.max_autotune, config.max_autotune_gemm_backends, config.test_configs.max_mm_configs = True, "TRITON", 1
        torch.set_grad_enabled(False)
    with FlopCounterMode(display=False) as counter:
        train(model, x)
    compiled = torch.compile(model)
    train(compiled, x)
    train(compiled, x)
    print(counter.get_total_flops())


run(sys.argv[1])
"""
TIMEOUT_S = 500
TRAININGS = 3  # one of the model as it is, two of what was compiled
NO_CODE = "the kernel's code is not in the directory that Inductor's cache was in"


def trained(name):
    """What the counter counted, the operators' FLOPs and the kernels of Inductor; its cache is gone afterwards."""
    if TORCH != "torch":
        raise Skip("older versions write no sizes into Inductor's code")
    python, output, cache = cuda_python(), scratch(), scratch("cache")
    environment = recording_environment(output, scratch("truth") / "truth", {
        "TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_LIBCUDA_PATH": str(LIBRARIES), "TORSH_PROFILER_FILTER": "python*",
        "TORSH_PROFILER_ACTIVITIES": "torch,cuda"})
    result = run([python, "-c", SCRIPT, name], environment, timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
    kernels = fused_kernels(output)
    cache.rename(cache.with_name("gone"))
    without, unread = fused_kernels(output), read_report("ops", output)["fused_kernels"]
    cache.with_name("gone").rename(cache)
    expect_equal(len(without), len(kernels), "kernels without the cache")
    expect_equal({(kernel["flops"], kernel["reason"][:len(NO_CODE)]) for kernel in unread}, {(None, NO_CODE)}, "FLOPs in ops without it")
    for kernel in without:
        assert kernel["fused_flops"] is None and kernel["fused_flops_reason"].startswith(NO_CODE), kernel
    report = read_report("ops", output)
    expect_equal(flops_by_name(report["fused_kernels"], "name", "flops"), flops_by_name(kernels, "kernel_name", "fused_flops"),
                 "FLOPs of kernels in ops")
    assert f"in {sum(kernel['calls'] for kernel in report['fused_kernels'])} launches, not in the FLOPs" in torsh("ops", output), "text"
    return int(result.stdout), report["flops"], kernels


def flops_by_name(kernels, name, flops):
    of_kernels = {}
    for kernel in kernels:
        of_kernels[kernel[name]] = of_kernels.get(kernel[name], 0) + kernel[flops]
    return of_kernels


def fused_kernels(output):
    path = scratch("exported") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    profile = json.loads(path.read_text())
    schema.expect_fits("profile", profile)
    kernels = [kernel for operator in profile["operators"] for kernel in operator["kernels"]] + profile["unattributed_kernels"]
    others = [kernel for kernel in kernels if not kernel["kernel_name"].startswith("triton_")]
    expect_equal([kernel for kernel in others if kernel["fused_flops"] is not None or kernel["fused_flops_reason"]], [], "others")
    return [kernel for kernel in kernels if kernel["kernel_name"].startswith("triton_")]


def check(name, fused_of_training):
    counted, of_operators, kernels = trained(name)
    expect_equal({kernel["fused_flops_reason"] for kernel in kernels}, {None}, "reasons")
    of_kernels = flops_by_name(kernels, "kernel_name", "fused_flops")
    expect_equal(sum(of_kernels.values()), 2 * fused_of_training, f"FLOPs of {of_kernels}")
    expect_equal(of_operators + sum(of_kernels.values()), TRAININGS * counted, "FLOPs of operators and kernels")


@case
@needs("torch")
def small_products_count_in_the_kernels_that_they_became():
    """A column by a row, and a column by a row of each of a batch; what a library multiplies is in no kernel of Inductor's."""
    check("small", 2 * 8 * 16 + 2 * 8 * 32 * 32)


@case
@needs("torch")
def templates_count_the_products_that_they_compute():
    """One of a layer and one of a batch."""
    check("templates", 2 * 8 * 32 * 64 + 2 * 4 * 8 * 16 * 32)


@case
@long
@needs("torch")
def multiplications_of_other_operators_do_not_count():
    check("gelu", 0)


if __name__ == "__main__":
    main()
