# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs steps of models of each kind: two as they are, then one under PyTorch's FlopCounterMode, and
writes the counter's numbers.

    flops.py FILE MODEL...
"""

import json
import sys

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

STEPS = 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class MathAttention(nn.Module):
    """A learned mask makes PyTorch compose attention from products; so do more heads of queries
    than of keys."""

    def __init__(self):
        super().__init__()
        self.heads = nn.Linear(16, 3 * 16)
        self.mask = nn.Parameter(torch.randn(10, 10))

    def forward(self, x):
        query, key, value = (part.unflatten(2, (4, 4)).transpose(1, 2) for part in self.heads(x).chunk(3, dim=2))
        return scaled_dot_product_attention(query, key, value, attn_mask=self.mask)


class CausalAttention(nn.Module):
    """On the CPU a kernel of its own, which FlopCounterMode takes for as much as without the mask."""

    def __init__(self):
        super().__init__()
        self.heads = nn.Linear(16, 3 * 16)

    def forward(self, x):
        query, key, value = (part.unflatten(2, (4, 4)).transpose(1, 2) for part in self.heads(x).chunk(3, dim=2))
        return scaled_dot_product_attention(query, key, value, is_causal=True)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells = kind(12, 20, 2)

    def forward(self, x):
        return self.cells(x)[0]


class ChannelsLast(nn.Module):
    """Libraries have other kernels for that order of elements."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 1), nn.Conv2d(16, 16, 3, groups=2),
                                    nn.ConvTranspose2d(16, 4, 3, stride=2)).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.layers(x.to(memory_format=torch.channels_last))


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.bag, self.head = nn.Embedding(50, 8), nn.EmbeddingBag(50, 8), nn.Linear(8, 3)

    def forward(self, x):
        words = torch.arange(24).reshape(6, 4)
        return self.head(self.table(words).mean(dim=1) + self.bag(words))


class Products(nn.Module):
    """Products in all the ways in which they can be written."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 7, 8))

    def forward(self, x):
        y = torch.bmm(x, self.weight) + torch.einsum("bij,bjk->bik", x, self.weight)
        z = torch.baddbmm(y, x, self.weight) @ torch.ones(8, 3)
        w = torch.einsum("bij,bkj,k->bi", x, x, torch.ones(5)).sum() + torch.tensordot(x, self.weight, dims=([2], [1])).mean()
        v = torch.addmm(torch.ones(8), x[0], self.weight[0]).mean() + torch.addmv(torch.ones(5), x[0], torch.ones(7)).mean()
        return z + w + v + (x.reshape(-1, 7) @ self.weight[0]).mean() + torch.mv(x[0], torch.ones(7)).sum()


class Unknown(nn.Module):
    """What has no formula, once a step: beside a product, which has."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        with torch.no_grad():
            torch.fft.fft(x), torch.linalg.det(torch.eye(4)), torch.cdist(x, x)
        return x @ self.weight


def compiled():
    return torch.compile(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)))


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 10)), (32, 64)),
    "cnn": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.Conv2d(8, 12, (3, 5), padding=(1, 2), dilation=1), nn.MaxPool2d(2),
                                  nn.ConvTranspose2d(12, 4, 3, stride=2)), (4, 3, 32, 32)),
    "conv1d3d": lambda: (nn.Sequential(nn.Conv1d(4, 6, 3, padding="same"), nn.Unflatten(1, (1, 6)), nn.Unflatten(3, (5, 4)),
                                       nn.Conv3d(1, 2, (2, 3, 1))), (2, 4, 20)),
    "transposed": lambda: (nn.Sequential(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1), nn.Unflatten(1, (6, 1, 1)),
                                         nn.ConvTranspose3d(6, 2, (1, 2, 3), bias=False)), (2, 4, 20)),
    "channelslast": lambda: (ChannelsLast(), (2, 8, 12, 12)),
    "grouped": lambda: (nn.Sequential(nn.Conv2d(8, 16, 3, groups=4), nn.Conv2d(16, 16, 3, groups=16)), (2, 8, 12, 12)),
    "transformer": lambda: (Attention(), (3, 10, 32)),
    "mathattention": lambda: (MathAttention(), (3, 10, 16)),
    "causalattention": lambda: (CausalAttention(), (3, 10, 16)),
    "lstm": lambda: (Recurrent(nn.LSTM), (5, 3, 12)),
    "gru": lambda: (Recurrent(nn.GRU), (5, 3, 12)),
    "embedding": lambda: (Embedding(), (1,)),
    "products": lambda: (Products(), (6, 5, 7)),
    "unknown": lambda: (Unknown(), (4, 4)),
    "compiled": lambda: (compiled(), (32, 64)),
}


def step(model, optimizer, shape):
    optimizer.zero_grad()
    model(torch.randn(shape)).square().mean().backward()
    optimizer.step()


def main():
    path, *names = sys.argv[1:]
    torch.set_num_threads(1)
    numbers = {}
    for name in names:
        torch.manual_seed(0)
        model, shape = MODELS[name]()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(STEPS):
            step(model, optimizer, shape)
        # What Inductor made calls operators in a form that the counter of 2.3 can't take.
        counted = getattr(model, "_orig_mod", model)
        with FlopCounterMode(display=False) as counter:
            step(counted, optimizer, shape)
        numbers[name] = {str(operator): n for operator, n in counter.get_flop_counts().get("Global", {}).items()}
    with open(path, "w") as file:
        json.dump(numbers, file)


if __name__ == "__main__":
    main()
