# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Trainings on a CUDA device, each a few steps: NAME BATCH [checkpoint]. Prints PyTorch's own peaks as JSON. With checkpoint
the blocks' activations are computed again for the backward pass; limit=MIB is what the allocator may reserve. random SEED:
allocations of any size instead.
"""

import json
import random
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 3
IS_CHECKPOINTED = "checkpoint" in sys.argv[3:]
LIMITS = [int(argument.partition("=")[2]) << 20 for argument in sys.argv[3:] if argument.startswith("limit=")]


def call(block, x):
    return checkpoint(block, x, use_reentrant=False) if IS_CHECKPOINTED else block(x)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))

    def forward(self, x):
        return self.layers(x)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.second(functional.relu(self.norm(self.first(x))))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(32) for _ in range(3))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(32 * 16 * 16, 10)

    def forward(self, x):
        x = functional.relu(self.stem(x))
        for block in self.blocks:
            x = call(block, x)
        return self.head(self.pool(x).flatten(1))


class Basic(nn.Module):
    """A block of a ResNet: it changes its tensors in place, and the last that it allocates is not its result."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first, self.of_first = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.second, self.of_second = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        out = self.relu(self.of_first(self.first(x)))
        out = self.of_second(self.second(out))
        out += self.shortcut(x)
        return self.relu(out)


class ResidualNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList([Basic(32, 32, 1), Basic(32, 64, 2), Basic(64, 128, 2)])
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = call(block, x)
        return self.head(x.mean((2, 3)))


class Stage(nn.Sequential):
    """Two convolutions and what makes their result smaller, in place where that is possible."""

    def __init__(self, channels, out):
        super().__init__(nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(out, out, 3, padding=1),
                         nn.ReLU(inplace=True), nn.MaxPool2d(2))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([Stage(3, 32), Stage(32, 64), Stage(64, 128)])
        self.head = nn.Sequential(nn.Linear(128 * 16, 256), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(256, 10))

    def forward(self, x):
        for stage in self.stages:
            x = call(stage, x)
        return self.head(x.flatten(1))


class Layer(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(4 * width, width))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(784) for _ in range(3))
        self.head = nn.Linear(784, 10)

    def forward(self, x):
        for layer in self.layers:
            x = call(layer, x)
        return self.head(x)


class Attention(nn.Module):
    """A block of a transformer, its attention written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.of_inputs, self.of_outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.of_inputs(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = self.dropout(scores.masked_fill(mask, float("-inf")).softmax(-1))
        x = x + self.of_outputs((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    LENGTH, WORDS, WIDTH = 128, 2000, 256

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(self.WORDS, self.WIDTH), nn.Embedding(self.LENGTH, self.WIDTH)
        self.blocks = nn.ModuleList(Attention(self.WIDTH, 8) for _ in range(3))
        self.head = nn.Linear(self.WIDTH, self.WORDS)

    def forward(self, x):
        x = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = call(block, x)
        return self.head(x).flatten(0, 1)


class Recurrent(nn.Module):
    LENGTH, WORDS = 64, 3000

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, 128)
        self.cells = nn.LSTM(128, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 5)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0][:, -1])


class TimeFirst(nn.Module):
    """Sequences lie along the first dimension. With twice the batch its sums over rows need memory of their own."""

    LENGTH, WORDS = 35, 5000

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, 200)
        self.cells = nn.GRU(200, 300, 2)
        self.head = nn.Linear(300, self.WORDS)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0]).flatten(0, 1)


def images(batch):
    return torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))


def vectors(batch):
    return torch.randn(batch, 784), torch.randint(10, (batch,))


def sentences(batch):
    shape = (batch, Transformer.LENGTH)
    return torch.randint(Transformer.WORDS, shape), torch.randint(Transformer.WORDS, (batch * Transformer.LENGTH,))


def labelled_sentences(batch):
    return torch.randint(Recurrent.WORDS, (batch, Recurrent.LENGTH)), torch.randint(5, (batch,))


def words_in_order(batch):
    shape = (TimeFirst.LENGTH, batch)
    return torch.randint(TimeFirst.WORDS, shape), torch.randint(TimeFirst.WORDS, (batch * TimeFirst.LENGTH,))


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)


def adam(model):
    return torch.optim.Adam(model.parameters(), 1e-3)


# By name: the model, what makes a batch, the optimizer, and how many batches a step has.
PROGRAMS = {
    "mlp": (Perceptron, vectors, sgd, 1),
    "cnn": (Convolutional, images, sgd, 1),
    "transformer": (Transformer, sentences, adam, 1),
    "resnet": (ResidualNetwork, images, sgd, 1),
    "vgg": (Plain, images, sgd, 1),
    "layers": (Layers, vectors, sgd, 1),
    "lstm": (Recurrent, labelled_sentences, adam, 1),
    "gru": (TimeFirst, words_in_order, adam, 1),
    "accumulated": (Transformer, sentences, adam, 4),
}


def train(name, batch):
    make, load, optimize, accumulated = PROGRAMS[name]
    model = make().cuda()
    optimizer, loss_of = optimize(model), nn.CrossEntropyLoss()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(accumulated):
            x, y = (tensor.cuda() for tensor in load(batch))
            (loss_of(model(x), y) / accumulated).backward()
        optimizer.step()
    torch.cuda.synchronize()


def allocate(seed, n=1500, most=120):
    """Tensors without operators that know their sizes, and a cache that is emptied now and then."""
    choose, held = random.Random(seed), []
    for _ in range(n):
        if held and (len(held) == most or choose.random() < 0.47):
            held.pop(choose.randrange(len(held)))
        elif choose.random() < 0.02:
            torch.cuda.empty_cache()
        else:
            most_bytes = choose.choice((1 << 10, 1 << 20, 12 << 20, 40 << 20))
            held.append(torch.empty(choose.randrange(1, most_bytes), dtype=torch.uint8, device="cuda"))


if __name__ == "__main__":
    torch.manual_seed(1)
    for limit in LIMITS:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    if sys.argv[1] == "random":
        allocate(int(sys.argv[2]))
    else:
        train(sys.argv[1], int(sys.argv[2]))
    stats = torch.cuda.memory_stats()
    print(json.dumps({name: stats[f"{name}.all.peak"] for name in ("reserved_bytes", "allocated_bytes")}))
