#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""NCCL collectives of one process on simulated libraries: sizes, types and group as torch.profiler
reports them for the same calls, and each NCCL kernel within an operator."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import cuda_python, of_kind, record_simulated, used  # noqa: E402

SCRIPT = """
import sys, torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile
x = torch.ones(1024, device="cuda")
dist.init_process_group("nccl", init_method=f"file://{sys.argv[1]}/meeting", rank=0, world_size=1)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
    dist.all_reduce(x)
    dist.broadcast(torch.ones(3, 5, dtype=torch.int64, device="cuda"), 0)
    dist.all_gather_into_tensor(torch.zeros(7, device="cuda"), torch.ones(7, device="cuda"))
    dist.reduce_scatter_tensor(torch.zeros(9, dtype=torch.float16, device="cuda"), torch.ones(9, dtype=torch.float16, device="cuda"))
    torch.cuda.synchronize()
profiler.export_chrome_trace(f"{sys.argv[1]}/kineto.json")
dist.destroy_process_group()
"""
SAID = ("In msg nelems", "Out msg nelems", "dtype", "Group size", "Process Group Name")


def collectives(trace):
    """Names with their attributes, in order."""
    events = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op" and "Collective name" in event["args"]]
    events.sort(key=lambda event: event["ts"])
    return [event["args"]["Collective name"] for event in events], \
        [[event["args"].get(name) for name in SAID] for event in events]


@case
@needs("torch")
def collectives_over_simulated_nccl_are_those_of_torch_profiler():
    folder = scratch("written")
    output, truth = record_simulated([cuda_python(), "-c", SCRIPT, folder])
    _, theirs = collectives(json.loads((folder / "kineto.json").read_text()))
    names, ours = collectives(json.loads(torsh("export", output, "--format", "chrome")))
    # Before PyTorch 2.4, torch.profiler reported none of them, and PyTorch no group.
    if theirs or used["version"] != "12":
        expect_equal(len(theirs), 4, "collectives that torch.profiler saw")
        expect_equal(ours, theirs, "collectives")
    # Named by PyTorch's operators; torch.profiler has other words for them with NCCL, which differ by version.
    expect_equal(names, ["allreduce", "broadcast", "_allgather_base", "_reduce_scatter_base"], "names")
    expected = collections.Counter(line["name"] for line in of_kind(truth, "kernel") if line["name"].startswith("nccl"))
    kernels = [kernel for kernel in read_report("kernels", output, "--limit", "0")["kernels"] if kernel["symbol"] in expected]
    expect_equal({kernel["symbol"]: sum(op["calls"] for op in kernel["ops"]) for kernel in kernels}, dict(expected),
                 "kernels within operators")
    expect_equal(sum(expected.values()), 4, "kernels")


if __name__ == "__main__":
    main()
