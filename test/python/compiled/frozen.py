# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
frozen.py RESULT: models that Inductor freezes, whose weights oneDNN packs, each called once in a range of its name. RESULT gets
what FlopCounterMode counts in each as it is.
"""

import json
import sys

import torch
import torch._inductor.config as config
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

config.freezing = True
torch.set_grad_enabled(False)


class Residual(nn.Module):
    """A product that is added to its input, and another."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 48)

    def forward(self, x):
        return self.second((x + self.first(x)).relu())


class Forked(nn.Module):
    """Two products of one input: which of the weights is whose, no size of an operator says."""

    def __init__(self):
        super().__init__()
        self.narrow, self.wide = nn.Linear(56, 8, bias=False), nn.Linear(56, 72, bias=False)

    def forward(self, x):
        return self.narrow(x).relu(), self.wide(x).relu()


class Convolutions(nn.Module):
    """Plain, in groups and added to another tensor, of single points, transposed."""

    def __init__(self):
        super().__init__()
        self.plain, self.grouped = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.points, self.transposed = nn.Conv2d(16, 16, 1), nn.ConvTranspose2d(16, 8, 3, stride=2)

    def forward(self, x):
        y = self.plain(x).relu()
        return self.transposed(self.points(y + self.grouped(y)).relu())


BFLOAT16 = torch.bfloat16
MODELS = {
    "bfloat16": (Residual, (4, 10, 64), BFLOAT16),
    "float32": (Residual, (4, 10, 64), torch.float32),
    "unbiased": (lambda: nn.Linear(32, 48, bias=False), (4, 10, 32), BFLOAT16),
    "forked": (Forked, (4, 10, 56), BFLOAT16),
    "convolutions": (Convolutions, (2, 3, 12, 12), torch.float32),
}


def main():
    counts = {}
    for name, (make, sizes, dtype) in MODELS.items():
        model, x = make().eval().to(dtype), torch.randn(sizes).to(dtype)
        with FlopCounterMode(display=False) as counter:
            model(x)
        compiled = torch.compile(model)
        compiled(x)
        with torch.autograd.profiler.record_function(name):
            compiled(x)
        counts[name] = counter.get_total_flops()
    with open(sys.argv[1], "w") as file:
        json.dump(counts, file)


if __name__ == "__main__":
    main()
