# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Times steps of training on the CPU: torch_steps.py OBSERVER MODEL:STEPS:REPEATS..., and prints a JSON object for each model.

OBSERVER: "none"; "empty" and "inputs" load the library $EMPTY_OBSERVER, which registers an observer that counts calls and
does nothing else, without and with arguments; "profiler" and what torch.profiler records beside operators, with commas
between: shapes, memory, all.
"""
import contextlib
import ctypes
import json
import os
import sys
import tempfile
import time

import torch
from torch import nn


def mlp():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.randn(8, 16), torch.randn(8, 4), torch.optim.SGD(model.parameters(), lr=0.01)


def cnn():
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 10))
    return model, torch.randn(32, 3, 32, 32), torch.randn(32, 10), torch.optim.SGD(model.parameters(), 0.01, 0.9)


def transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(128, 10))
    return model, torch.randn(8, 64, 128), torch.randn(8, 64, 10), torch.optim.Adam(model.parameters())


class GptBlock(nn.Module):
    """One block of a GPT, 100 M parameters."""

    def __init__(self, width=2896, heads=16):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (part.view(n, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.feed(self.norms[1](x))


def gpt():
    model = GptBlock()
    return model, torch.randn(1, 16, 2896), torch.randn(1, 16, 2896), torch.optim.SGD(model.parameters(), 0.01)


class Residual(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out))
        self.skip = nn.Sequential()
        if stride > 1 or n_in != n_out:
            self.skip = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.skip(x))


def resnet18():
    """The layers of torchvision's resnet18, written anew, on small images."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for n_in, n_out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Residual(n_in, n_out, stride), Residual(n_out, n_out, 1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    assert sum(p.numel() for p in model.parameters()) == 11_689_512, "torchvision's has so many parameters"
    return model, torch.randn(4, 3, 64, 64), torch.randn(4, 1000), torch.optim.SGD(model.parameters(), 0.01, 0.9)


class Dlrm(nn.Module):
    """26 tables, as in the Criteo data, with few rows; the products of all pairs of features."""

    N_TABLES, N_ROWS, WIDTH, N_DENSE = 26, 10000, 32, 13

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(self.N_ROWS, self.WIDTH, mode="sum", sparse=True) for _ in range(self.N_TABLES))
        n_pairs = (self.N_TABLES + 1) * self.N_TABLES // 2
        self.bottom = nn.Sequential(nn.Linear(self.N_DENSE, 256), nn.ReLU(), nn.Linear(256, self.WIDTH), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(n_pairs + self.WIDTH, 256), nn.ReLU(), nn.Linear(256, 1))
        self.pairs = torch.tril_indices(self.N_TABLES + 1, self.N_TABLES + 1, -1)

    def forward(self, features):
        dense, rows = features
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(indices) for table, indices in zip(self.tables, rows))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, products], 1))


def dlrm():
    model, n = Dlrm(), 768
    rows = torch.randint(0, Dlrm.N_ROWS, (Dlrm.N_TABLES, n, 4))
    return model, (torch.randn(n, Dlrm.N_DENSE), rows), torch.randn(n, 1), torch.optim.SGD(model.parameters(), 0.01)


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "gpt": gpt, "resnet18": resnet18, "dlrm": dlrm}


def observer_library(with_inputs):
    """The library with the observer, which is registered."""
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "libtorch_cpu" in line)
    library = ctypes.CDLL(os.environ["EMPTY_OBSERVER"])
    library.observed.restype = ctypes.c_uint64
    if library.observe(path.encode(), with_inputs):
        sys.exit("no observer could be registered")
    return library


def make_profiler(observer):
    """What to run steps in."""
    what, *options = observer.split(",")
    if what != "profiler":
        return contextlib.nullcontext()
    is_all = "all" in options
    return torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=is_all or "shapes" in options,
        profile_memory=is_all or "memory" in options, with_stack=is_all, with_modules=is_all, with_flops=is_all)


def size_of_trace(profiler):
    if not hasattr(profiler, "export_chrome_trace"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        return os.stat(path).st_size


def measure(name, n_steps, n_repeats, observer, library):
    """µs a step, calls of operators in a step where they are counted, bytes of torch.profiler's trace."""
    torch.manual_seed(0)
    model, inputs, targets, optimizer = MODELS[name]()

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()

    # Each profiler has steps of its own before it is measured; without one the first steps do.
    n_before = 1 + n_steps // 10
    n_within = n_before if observer.startswith("profiler") else 0
    wall_us, cpu_us, n_calls = [], [], None
    steps(n_before)
    for _ in range(n_repeats):
        profiler = make_profiler(observer)
        with profiler:
            steps(n_within)
            n_calls_before = library and library.observed()
            wall, cpu = time.perf_counter(), time.thread_time()
            steps(n_steps)
            wall_us.append((time.perf_counter() - wall) / n_steps * 1e6)
            cpu_us.append((time.thread_time() - cpu) / n_steps * 1e6)
            n_calls = library and (library.observed() - n_calls_before) / n_steps
    size = size_of_trace(profiler)
    return {"model": name, "wall_us": wall_us, "cpu_us": cpu_us, "calls_per_step": n_calls,
            "steps": n_before + n_repeats * (n_within + n_steps),
            "trace_bytes_per_step": size and size / (n_within + n_steps)}


def main():
    observer, *models = sys.argv[1:]
    torch.set_num_threads(1)
    # One processor for the program; what was started before has all.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    library = observer_library(observer == "inputs") if observer in ("empty", "inputs") else None
    for model in models:
        name, n_steps, n_repeats = model.split(":")
        print(json.dumps(measure(name, int(n_steps), int(n_repeats), observer, library)), flush=True)


main()
