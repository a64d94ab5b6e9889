# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
sharded_ranks.py fsdp|pipeline FOLDER: a rank of a training with FSDP, or of a pipeline of as many stages as there are ranks.
Writes to FOLDER/done-RANK.json its pid, and how often PyTorch's own profiler saw each operator of c10d.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH, WIDTH, MICROBATCHES = 4, 8, 32, 4


def train_sharded():
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH))
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(BATCH, WIDTH)).square().mean().backward()
        optimizer.step()


def train_in_stages():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, n = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(nn.Linear(WIDTH, WIDTH), rank, n, torch.device("cpu"), input_args=(torch.ones(BATCH // MICROBATCHES, WIDTH),))
    schedule = ScheduleGPipe(stage, MICROBATCHES, loss_fn=lambda output, target: (output - target).square().mean())
    data, target = torch.ones(BATCH, WIDTH), torch.zeros(BATCH, WIDTH)
    for _ in range(STEPS):
        if rank == 0:
            schedule.step(data)
        elif rank == n - 1:
            schedule.step(target=target)
        else:
            schedule.step()
        dist.barrier()


def main():
    what, folder = sys.argv[1:]
    dist.init_process_group("gloo")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        {"fsdp": train_sharded, "pipeline": train_in_stages}[what]()
        dist.barrier()
    counts = {row.key: row.count for row in profiler.key_averages() if row.key.startswith("c10d::")}
    with open(os.path.join(folder, f"done-{dist.get_rank()}.json"), "w") as file:
        json.dump({"pid": os.getpid(), "counts": counts}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
