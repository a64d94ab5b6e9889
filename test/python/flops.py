# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Runs a few steps of a model. With "count" under PyTorch's FlopCounterMode, whose total it prints:

    flops.py MODEL [count]
"""

import contextlib
import sys

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

STEPS = 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 20, 2)

    def forward(self, x):
        return self.lstm(x)[0]


class Products(nn.Module):
    """Products in all the ways in which they can be written."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 7, 8))

    def forward(self, x):
        y = torch.bmm(x, self.weight) + torch.einsum("bij,bjk->bik", x, self.weight)
        z = torch.baddbmm(y, x, self.weight) @ torch.ones(8, 3)
        return z + (x.reshape(-1, 7) @ self.weight[0]).mean() + torch.mv(x[0], torch.ones(7)).sum()


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 10)), (32, 64)),
    "cnn": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.Conv2d(8, 12, (3, 5), padding=(1, 2), dilation=1), nn.MaxPool2d(2),
                                  nn.ConvTranspose2d(12, 4, 3, stride=2)), (4, 3, 32, 32)),
    "conv1d3d": lambda: (nn.Sequential(nn.Conv1d(4, 6, 3, padding="same"), nn.Unflatten(1, (1, 6)), nn.Unflatten(3, (5, 4)),
                                       nn.Conv3d(1, 2, (2, 3, 1))), (2, 4, 20)),
    "transformer": lambda: (Attention(), (3, 10, 32)),
    "lstm": lambda: (Recurrent(), (5, 3, 12)),
    "products": lambda: (Products(), (6, 5, 7)),
}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, shape = MODELS[sys.argv[1]]()
    optimizer = torch.optim.Adam(model.parameters())
    counter = FlopCounterMode(display=False) if "count" in sys.argv else contextlib.nullcontext()
    with counter:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(shape)).square().mean().backward()
            optimizer.step()
    print(counter.get_total_flops() if "count" in sys.argv else 0)


main()
