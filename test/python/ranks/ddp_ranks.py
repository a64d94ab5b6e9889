# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A rank of a training with DistributedDataParallel, whose reducer waits in C++ for the all-reduce of its only bucket:

    ddp_ranks.py FOLDER

All ranks but the last enter each all-reduce early: the last one begins its backward pass once they have computed theirs.
FOLDER/done-RANK.json gets for each step, by CLOCK_MONOTONIC in ns: when the last gradient was computed, and when the backward
pass was over; and the sum of the gradients, which must not change.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

STEPS, STRAGGLES_S = 6, 0.2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    store = dist.distributed_c10d._get_default_store()
    inner = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    model = nn.parallel.DistributedDataParallel(inner)
    steps, computed = [], []
    inner[0].bias.register_hook(lambda gradient: computed.append(time.monotonic_ns()))
    inner[0].weight.register_hook(lambda gradient: computed.append(time.monotonic_ns()))
    for step in range(STEPS):
        model.zero_grad()
        loss = model(torch.ones(4, 64) * (rank + 1)).sum()
        computed.clear()
        if rank == last:
            store.wait([f"step {step} of {other}" for other in range(last)])
            time.sleep(STRAGGLES_S)
        else:
            store.set(f"step {step} of {rank}", "computes")
        loss.backward()
        steps.append((max(computed), time.monotonic_ns(), sum(float(each.grad.sum()) for each in inner.parameters())))
    with open(os.path.join(sys.argv[1], f"done-{rank}.json"), "w", encoding="utf-8") as file:
        json.dump({"pid": os.getpid(), "steps": steps}, file)
    dist.barrier()
    dist.destroy_process_group()


main()
