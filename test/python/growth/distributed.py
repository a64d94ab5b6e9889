# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A rank of a training over gloo on CPUs, as torchrun starts it: distributed.py FOLDER ddp|fsdp STEPS [leak]. With "leak" it
keeps a tensor a step. Writes its pid to FOLDER/RANK.
"""

import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

SIZE, WIDTH = 32, 64
kept = []


def of_ddp(model):
    return nn.parallel.DistributedDataParallel(model)


def of_fsdp(model):
    from torch.distributed.fsdp import fully_shard

    mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(wrap, n_steps, does_leak):
    model = wrap(nn.Sequential(nn.Linear(SIZE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = torch.zeros(10)
    for step in range(n_steps):
        x = torch.randn(16, SIZE)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses[step % len(losses)] = loss.detach()
        if step % len(losses) == 0:
            dist.all_reduce(losses)
        if does_leak:
            kept.append(x * 2)  # line: leak


def main():
    folder, kind, n_steps, *leak = sys.argv[1:]
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    pathlib.Path(folder, str(dist.get_rank())).write_text(str(os.getpid()))
    train({"ddp": of_ddp, "fsdp": of_fsdp}[kind], int(n_steps), bool(leak))
    dist.destroy_process_group()


main()
