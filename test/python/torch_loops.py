# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Training loops for test/e2e/torch/torch_growth.py: torch_loops.py FILE STEPS LOOP... runs each in a child of its own, and writes
their pids. One leaks, the others keep what is sensible to keep.
"""

import collections
import copy
import functools
import gc
import io
import json
import os
import sys

import torch
import torch._dynamo  # noqa: F401: the first optimizer of each child would
from torch import nn

SIZE = 32
kept = []


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((SIZE,), float(index))


class Loop:
    """Plain training; what it is made of is there for others to replace."""

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def loss(self, x):
        return self.model(x).square().mean()

    def step(self, i, x):
        self.optimizer.zero_grad()
        self.loss(x).backward()
        self.optimizer.step()

    def run(self, n_steps):
        for i in range(n_steps):
            self.step(i, torch.randn(8, SIZE))


class LeaksATensor(Loop):
    def step(self, i, x):
        super().step(i, x)
        kept.append(x * 2)  # line: leak


class WarmsACache(Loop):
    """Positions by length, a few of them."""

    cache = {}

    def loss(self, x):
        length = 1 + x.abs().sum().int().item() % 7
        if length not in self.cache:
            self.cache[length] = torch.randn(length, SIZE)
        return super().loss(x[:length] + self.cache[length][:len(x[:length])])


class HasMomentum(Loop):
    def __init__(self):
        super().__init__()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, nesterov=True)


class SchedulesItsRate(Loop):
    def __init__(self):
        super().__init__()
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=50)

    def step(self, i, x):
        super().step(i, x)
        self.scheduler.step()


class ClearsItsMetrics(Loop):
    metrics = []

    def loss(self, x):
        loss = super().loss(x)
        self.metrics.append(loss.detach().clone())
        return loss

    def step(self, i, x):
        super().step(i, x)
        if i % 20 == 19:
            torch.stack(self.metrics).mean().item()
            self.metrics.clear()


class LoadsByWorkers(Loop):
    def run(self, n_steps):
        loader, i = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, shuffle=True), 0
        while i < n_steps:
            for x in loader:
                self.step(i, x)
                i += 1


class AccumulatesGradients(Loop):
    def step(self, i, x):
        for part in x.chunk(4):
            (self.loss(part) / 4).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


class SavesCheckpoints(Loop):
    def step(self, i, x):
        super().step(i, x)
        if i % 10 == 9:
            self.saved = io.BytesIO()
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, self.saved)
            gc.collect()  # torch.save leaves a class behind, which Python's collector would free in its own time


class BoundsItsCache(Loop):
    """Embeddings of those seen last."""

    @functools.lru_cache(maxsize=16)
    def embedding(self, i):
        return torch.randn(SIZE)

    def step(self, i, x):
        super().step(i, x + self.embedding(i))


class IsCompiled(Loop):
    def __init__(self):
        super().__init__()
        self.model = torch.compile(self.model)


class EvaluatesInBetween(Loop):
    def step(self, i, x):
        super().step(i, x)
        if i % 10 == 9:
            self.model.eval()
            with torch.no_grad():
                self.result = torch.cat([self.model(torch.randn(8, SIZE)) for _ in range(3)])
            self.model.train()


class AveragesItsWeights(Loop):
    def __init__(self):
        super().__init__()
        self.average = copy.deepcopy(self.model)
        self.latest = collections.deque(maxlen=10)

    def step(self, i, x):
        super().step(i, x)
        self.latest.append(x)
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.model.parameters()):
                mean.lerp_(now, 0.1)


LOOPS = {kind.__name__: kind for kind in Loop.__subclasses__()}


def run(name, n_steps):
    """The pid of the child that ran it."""
    pid = os.fork()
    if pid == 0:
        torch.manual_seed(0)
        LOOPS[name]().run(n_steps)
        os._exit(0)  # Python would tidy up its copy of PyTorch for a second
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{name} ended with status {status}")
    return pid


def main():
    path, n_steps, *names = sys.argv[1:]
    torch.set_num_threads(1)
    pids = {name: run(name, int(n_steps)) for name in names}
    with open(path, "w") as file:
        json.dump(pids, file)


main()
