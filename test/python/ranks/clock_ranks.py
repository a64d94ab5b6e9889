# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A rank of a job over gloo, by the variables of its environment: steps with all-reduces.

    clock_ranks.py STEPS SECONDS_A_STEP [FOLDER]

FOLDER gets for each rank CLOCK_MONOTONIC right before and right after the calls that begin its all-reduces.
"""
import json
import pathlib
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
stamps = []


def all_reduce(tensor):
    before = time.monotonic_ns()
    work = dist.all_reduce(tensor, async_op=True)  # it returns without the other rank
    stamps.append((before, time.monotonic_ns()))
    work.wait()


weight = torch.zeros(8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    (weight * step).sum().backward()
    all_reduce(weight.grad)
    all_reduce(torch.ones(100))
    optimizer.step()
    time.sleep(float(sys.argv[2]))  # the work of a step
dist.barrier()
if len(sys.argv) > 3:
    (pathlib.Path(sys.argv[3]) / f"{dist.get_rank()}.json").write_text(json.dumps(stamps))
dist.destroy_process_group()
