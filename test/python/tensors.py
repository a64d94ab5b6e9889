# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tensors of PyTorch on the CPU: writes down how many storages each line made and their bytes, and
ends without cleanup. PyTorch allocates exactly the bytes of a storage, aligned to 64."""

import inspect
import json
import os
import sys

import torch

by_line, kept = {}, []


def keep(*tensors):
    """Each has a storage of its own that the calling line made."""
    storages = by_line.setdefault(inspect.currentframe().f_back.f_lineno, [0, 0])
    for tensor in tensors:
        kept.append(tensor)
        storages[0] += 1
        storages[1] += tensor.untyped_storage().nbytes()


def make():
    for i in range(20):
        keep(torch.empty(1000 + i))
    keep(torch.zeros(3, 5, 7, dtype=torch.float64), torch.ones(11, dtype=torch.int8))
    keep(kept[0] + kept[0])
    keep(torch.cat([kept[1], kept[2]]).clone())
    keep(kept[3][::2].contiguous())
    keep(torch.arange(500).reshape(50, 10).t().contiguous())
    kept.append(kept[4].view(4, 251))


def train():
    layer = torch.nn.Linear(40, 30)
    kept.append(layer)
    loss = layer(torch.ones(8, 40)).sum()
    loss.backward()
    return layer


make()
layer = train()
lines, first = inspect.getsourcelines(train)
sizes = {mark: first + next(i for i, line in enumerate(lines) if text in line)
         for mark, text in (("parameters", "nn.Linear"), ("gradients", "backward"))}
by_line[sizes["parameters"]] = [2, sum(p.untyped_storage().nbytes() for p in layer.parameters())]
by_line[sizes["gradients"]] = [2, sum(p.grad.untyped_storage().nbytes() for p in layer.parameters())]
with open(sys.argv[1], "w") as file:
    json.dump({line: sums for line, sums in by_line.items()}, file)
os._exit(0)
