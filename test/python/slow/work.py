# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the slow programs share: each is called with "slow" or "cured", trains or infers, and prints what it came to."""

import json
import sys
import time

import torch

import torsh

IS_SLOW = sys.argv[1] == "slow"
torch.manual_seed(0)
torch.set_num_threads(1)


def network(width=256, hidden=512, outputs=10):
    return torch.nn.Sequential(torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs))


class Training:
    """Steps of a small network, as any script has them."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.losses = []
        self.begin_s = time.process_time()

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss))
        torsh.scalar("loss", self.losses[-1])

    def end(self):
        end({"loss": self.losses[-1], "steps": len(self.losses)}, self.begin_s)


def end(results, begin_s):
    print(json.dumps({**results, "cpu_s": time.process_time() - begin_s}))


def batch(step, rows=32, width=256):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(rows, width, generator=generator), torch.randint(10, (rows,), generator=generator)
