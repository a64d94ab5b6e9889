#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Common models on simulated CUDA under the agent: PyTorch's calls of cuDNN, cuFFT, cuSOLVER,
cuSPARSE and NVRTC run, and each kernel is recorded once, on the operator that launched it."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import cuda_python, duration_ns, of_kind, read_truth, simulate, used  # noqa: E402

STEPS = 3

CONVOLUTIONS = f"""
import torch
from torch import nn
torch.backends.cudnn.benchmark = False
for amp, layout in ((False, torch.contiguous_format), (True, torch.channels_last)):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, 2))
    model = model.cuda().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=amp)
    for step in range({STEPS}):
        x = torch.randn(2, 3, 8, 8).pin_memory().cuda(non_blocking=True).to(memory_format=layout)
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=amp):
            loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
torch.cuda.synchronize()
print("trained")
"""

# Weights that were moved into cuDNN's one piece are still those that were made on the host.
RECURRENT = """
import torch
from torch import nn
for cell, options in ((nn.LSTM, {}), (nn.LSTM, {"proj_size": 4}), (nn.GRU, {"bidirectional": True})):
    model = cell(8, 16, 2, **options)
    made = [weights.detach().clone() for weights in model.parameters()]
    model = model.cuda()
    model.flatten_parameters()
    assert all(torch.equal(a, b.detach().cpu()) for a, b in zip(made, model.parameters())), cell
    begin = min(weights.data_ptr() for weights in model.parameters())
    end = max(weights.data_ptr() + weights.numel() * 4 for weights in model.parameters())
    assert end - begin == 4 * sum(weights.numel() for weights in model.parameters()), "in one piece"
    y, _ = model(torch.randn(5, 4, 8, device="cuda"))
    y.sum().backward()
torch.cuda.synchronize()
print("trained")
"""

ALGEBRA = """
import torch
x = torch.randn(8, 8, device="cuda")
for function in (torch.linalg.inv, torch.linalg.qr, torch.linalg.svd, torch.linalg.cholesky, torch.linalg.eigh):
    function(x)
torch.linalg.solve(x, x)
torch.fft.irfft(torch.fft.rfft(x)).abs()
torch.fft.fft(x).abs()
sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (8, 8), is_coalesced=True).cuda()
sparse @ x
try:
    sparse.to_sparse_csr() @ sparse.to_sparse_csr()
except RuntimeError as error:
    print("CUSPARSE_STATUS_NOT_SUPPORTED" in str(error))
torch.cuda.synchronize()
print("done")
"""


# Two ranks, each a process, as torchrun starts them.
PARALLEL = f"""
import os, torch
import torch.distributed as dist
from torch import nn
rank = int(os.environ["RANK"])
dist.init_process_group("nccl", init_method=os.environ["MEETING"], rank=rank, world_size=2)
torch.cuda.set_device(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 4)).cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range({STEPS}):
    optimizer.zero_grad()
    model(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
dist.destroy_process_group()
print("trained")
"""
BOTH_RANKS = 'RANK=0 "$@" & RANK=1 "$@"; status=$?; wait $! && exit $status'


# All but the first model: of a heap that was recorded nothing is read there.
WITHOUT_HEAP = {"TORSH_PROFILER_ACTIVITIES": "torch,cuda,nccl"}


def trained(script, printed, wrapper=(), env=WITHOUT_HEAP, **settings):
    """The recording of a script, and the simulation's log of its processes."""
    python, output, folder = cuda_python(), scratch(), scratch("truth")
    agent = {name: value for name, value in agent_environment(output, **env).items()
             if name.startswith(("TORSH_PROFILER", "LD_PRELOAD"))}
    agent["MEETING"] = f"file://{folder}/meeting"
    command = [*wrapper, python, "-W", "ignore", "-c", script]
    result = simulate(command, folder / "truth-%p", env=agent, **settings)
    expect_equal((result.returncode, result.stdout.decode().split()), (0, printed), result.stderr.decode()[-3000:])
    truth = [line for path in sorted(folder.glob("truth-*")) for line in read_truth(path)]
    expect_equal(of_kind(truth, "violation"), [], "violations")
    return output, truth


def kernels_on_operators(output, truth):
    """{part of a kernel's name: Counter of operators}: once each, with the truth's nanoseconds, and confidence high."""
    report = read_report("kernels", output, "--limit", "0")
    calls, sums = collections.Counter(), collections.Counter()
    for line in of_kind(truth, "kernel"):
        calls[line["name"]] += 1
        sums[line["name"]] += duration_ns(line)
    expect_equal({kernel["symbol"]: kernel["calls"] for kernel in report["kernels"]}, dict(calls), "kernels")
    expect_equal({kernel["symbol"]: kernel["total_ns"] for kernel in report["kernels"]}, dict(sums), "their time")
    expect_equal(report["unattributed"], [], "without an operator")
    expect_equal({op["confidence"] for kernel in report["kernels"] for op in kernel["ops"]}, {"high"}, "confidence")
    found = collections.defaultdict(collections.Counter)
    for kernel in report["kernels"]:
        for op in kernel["ops"]:
            found[kernel["symbol"]][op["name"]] += op["calls"]
    return found


def on_operators(found, part):
    """Of the kernels with this in their names."""
    return dict(sum((operators for symbol, operators in found.items() if part in symbol), collections.Counter()))


def check_readers(output):
    """Every reader takes the recording."""
    for command in (("peak", "--device", "cuda:0"), ("leaks", "--device", "cuda:0"), ("ops",), ("modules",), ("steps",)):
        read_report(command[0], output, *command[1:])
    for form in ("profile", "chrome", "perfetto"):
        torsh("export", output, "--format", form, "-o", scratch("export") / "written")


@case
@needs("torch")
def a_convolutional_net_trains_in_both_layouts_and_with_scaled_gradients():
    output, truth = trained(CONVOLUTIONS, ["trained"], env={})
    found = kernels_on_operators(output, truth)
    # Forward of a transposed convolution is backward of a plain one; the gradient of the images is
    # not requested.
    expect_equal(on_operators(found, "xmma_fprop"), {"aten::cudnn_convolution": 2 * STEPS, "aten::convolution_backward": 2 * STEPS},
                 "forward")
    expect_equal(on_operators(found, "xmma_dgrad"), {"aten::cudnn_convolution_transpose": 2 * STEPS}, "by the data")
    expect_equal(on_operators(found, "xmma_wgrad"), {"aten::convolution_backward": 4 * STEPS}, "by the filter")
    expect_equal(sum(on_operators(found, "bn_fw_tr_1C11").values()), STEPS, "normalisation with channels first")
    expect_equal(sum(on_operators(found, "batchnorm_fwtr_nhwc").values()), STEPS, "and last")
    assert {name for name in found if "implicit_gemm_f16f16" in name}, "half precision"
    check_readers(output)


@case
@needs("torch")
def recurrent_nets_keep_their_weights_and_have_kernels_on_their_operators():
    cuda_python()
    if used["version"] == "12":
        raise Skip("the simulated cuDNN 8 has no recurrent networks")
    output, truth = trained(RECURRENT, ["trained"])
    found = kernels_on_operators(output, truth)
    # Of three nets with two layers each, the last one in both directions.
    expect_equal(on_operators(found, "RNN_blockPersist_fp"), {"aten::_cudnn_rnn": 8}, "forward")
    expect_equal(on_operators(found, "RNN_blockPersist_bp"), {"aten::_cudnn_rnn_backward": 8}, "backward")


@case
@needs("torch")
def algebra_transforms_and_sparse_products_run_and_what_does_not_reports_it():
    # PyTorch queries the device, with a kernel, whether a decomposition failed.
    output, truth = trained(ALGEBRA, ["True", "done"], zero_counts=1)
    assert "cusparseSpGEMM_createDescr" in {line["name"] for line in of_kind(truth, "unsupported")}, "counted"
    found = kernels_on_operators(output, truth)
    for part, operator in (("fft_forward", "aten::_fft_r2c"), ("fft_inverse", "aten::_fft_c2r"), ("geqrf", "aten::linalg_qr"),
                           ("gesvd", "aten::_linalg_svd"), ("potrf", "aten::linalg_cholesky_ex"), ("csrmm", "aten::addmm")):
        assert operator in on_operators(found, part), (part, on_operators(found, part))


@case
@needs("torch")
def two_ranks_train_in_parallel_and_each_has_its_kernels():
    output, truth = trained(PARALLEL, ["trained"] * 2, ["sh", "-c", BOTH_RANKS, "sh"])
    report = read_report("kernels", output, "--limit", "0")
    calls = collections.Counter(line["name"] for line in of_kind(truth, "kernel"))
    expect_equal({kernel["symbol"]: kernel["calls"] for kernel in report["kernels"]}, dict(calls), "kernels of both")
    expect_equal(calls["ncclDevKernel_AllReduce_Sum_f32_RING_LL"], 2 * STEPS, "gradients are exchanged once a step")
    expect_equal([process["mode"] for process in report["processes"] if process["mode"] != "HOST_ONLY"], ["CUPTI"] * 2, "modes")


if __name__ == "__main__":
    main()
