# SPDX-License-Identifier: Apache-2.0 OR MIT
"""scheduled.py STEPS BY...: step i has i + 1 operators "aten::work", each with one inside, and an
operator that ends in the next step. BY: what marks steps: profiler (ProfilerStep#), optimizer,
or two optimizers, the first one counts; in this order, one in each third of the steps."""
import sys

import torch

FIRST_NUMBER = 100


def step(i, then=lambda: None):
    for _ in range(i + 1):
        torch.call("aten::work", inside=lambda: torch.call("aten::within"))
    then()


def optimize(name):
    torch.call(f"Optimizer.step#{name}.step", scope=torch.USER, inside=lambda: torch.call("aten::update"))


n_steps, by = int(sys.argv[1]), sys.argv[2]
torch.call("aten::setup")
for i in range(n_steps):
    if by == "profiler":
        torch.call(f"ProfilerStep#{FIRST_NUMBER + i}", scope=torch.USER, inside=lambda i=i: step(i))
    elif by == "optimizer":
        step(i, lambda: optimize("Adam"))
    elif by == "optimizers":
        step(i, lambda: (optimize("First"), optimize("Second"), optimize("Second")))
    elif by == "nothing":
        step(i)
torch.call("aten::teardown")
