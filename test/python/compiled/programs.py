# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
programs.py RESULT NAME...: runs programs as they are and compiled, each in a range of its name, "compiled " before it for the
latter. RESULT gets what FlopCounterMode counts in each, the program's own formula of all its operations, and what Inductor's
metadata says of each kernel.
"""

import json
import sys

import operations
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

CALLS = 2  # of what was compiled, in its range
r = torch.randn


def chain(x, y):
    return torch.sin(x * 2 + y).relu() / 3, torch.where(x > y, x, y)


def norm(training):
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2), nn.AvgPool2d(2))
    return layers.train(training)


def special(x):
    return (x.abs().rsqrt(), torch.erf(x), x.exp2(), torch.log1p(x.abs()), x.floor(), x.sign(), torch.fmod(x, 2), x.remainder(3),
            torch.atan2(x, x + 1), x.pow(3), x.pow(2.5), x.clamp(0, 1), torch.lerp(x, x + 1, 0.3), x.reciprocal(), x.round(), -x)


def integers(x):
    return x * 2 + 1, x.float() * 3, (x % 3 == 0).float().sum()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(24, 48), nn.Linear(48, 24)

    def forward(self, x):
        return x + self.second(F.gelu(self.first(x)))


# Function, inputs, and the number of its operations by itself: None where it is a convention.
PROGRAMS = {
    # Multiplication, addition, sine, maximum, division, comparison, choice
    "chain": (chain, lambda: (r(7, 33), r(7, 33)), 7 * 7 * 33),
    # Largest, difference, exponential, sum and quotient of each
    "softmax": (lambda x: x.softmax(-1), lambda: (r(19, 21),), 5 * 19 * 21),
    "sums": (lambda x: (x.sum(), x.mean(1)), lambda: (r(40, 1000),), 2 * 40 * 1000 + 40),
    "integers": (integers, lambda: (torch.randint(0, 9, (8, 30)),), 2 * 8 * 30),
    "double": (lambda x: (x.tanh() + x.sigmoid()).sum(1), lambda: (r(9, 40).double(),), 4 * 9 * 40),
    "transposed": (lambda x, y: x.t() + y.sin(), lambda: (r(40, 50), r(50, 40)), 2 * 40 * 50),
    "special": (special, lambda: (r(5, 35),), None),
    "bfloat16": (nn.Sequential(nn.GELU(), nn.Hardswish()), lambda: (r(8, 64).bfloat16(),), None),
    "embedding": (nn.Sequential(nn.Embedding(100, 20), nn.LayerNorm(20)), lambda: (torch.randint(0, 100, (5, 7)),), None),
    "normed": (norm(True), lambda: (r(2, 3, 18, 18),), None),
    "mlp": (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)), lambda: (r(16, 32, requires_grad=True),), None),
    # A row by each matrix, each matrix by a column, and a row by a column: Inductor makes loops of these.
    "rows": (torch.bmm, lambda: (r(4, 1, 16), r(4, 16, 12)), 2 * 4 * 16 * 12),
    "columns": (lambda x, y: torch.bmm(x, y).relu(), lambda: (r(4, 10, 16), r(4, 16, 1)), 2 * 4 * 10 * 16 + 4 * 10),
    "inner": (torch.mm, lambda: (r(1, 160), r(160, 1)), 2 * 160),
    # What is computed where padding isn't
    "padded": (lambda x: F.pad(x.sin() * 2, (1, 3, 2, 2)).exp(), lambda: (r(7, 9),), None),
}


def call(function, inputs):
    result = function(*inputs)
    result = result if isinstance(result, tuple) else (result,)
    if any(part.requires_grad for part in result):
        sum(part.sum() for part in result).backward()


def run(name, of_programs):
    function, make, formula = PROGRAMS[name]
    inputs = make()
    torch._dynamo.reset()
    with torch.autograd.profiler.record_function(name), FlopCounterMode(display=False) as counter:
        call(function, inputs)
    compiled = torch.compile(function, dynamic=False)
    call(compiled, inputs)
    with torch.autograd.profiler.record_function("compiled " + name):
        for i in range(CALLS):
            call(compiled, inputs)
    of_programs[name] = {"counter": counter.get_total_flops(), "formula": formula}


def main():
    of_programs = {}
    operations.watch()
    for name in sys.argv[2:]:
        run(name, of_programs)
    with open(sys.argv[1], "w") as file:
        json.dump({"programs": of_programs, "kernels": operations.counted, "calls": 1 + CALLS}, file)


if __name__ == "__main__":
    main()
