# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Times steps of training on the CPU: torch_steps.py MODEL OBSERVER STEPS REPEATS, and prints a JSON object.

OBSERVER: "none"; "empty" and "inputs" load the library $EMPTY_OBSERVER, which registers an observer that does nothing,
without and with arguments; "profiler" and what torch.profiler records beside operators, with commas between: shapes,
memory, all.
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
    return model, torch.randn(16, 3, 32, 32), torch.randn(16, 10), torch.optim.SGD(model.parameters(), 0.01, 0.9)


def transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(128, 10))
    return model, torch.randn(8, 64, 128), torch.randn(8, 64, 10), torch.optim.Adam(model.parameters())


def register(with_inputs):
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "libtorch_cpu" in line)
    if ctypes.CDLL(os.environ["EMPTY_OBSERVER"]).observe(path.encode(), with_inputs):
        sys.exit("no observer could be registered")


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


def main():
    model_name, observer, n_steps, n_repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # One processor for the program; what was started before has all.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    model, inputs, targets, optimizer = {"mlp": mlp, "cnn": cnn, "transformer": transformer}[model_name]()
    if observer in ("empty", "inputs"):
        register(observer == "inputs")

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()

    n_before = 1 + n_steps // 10
    wall_us, cpu_us = [], []
    steps(n_before)
    for _ in range(n_repeats):
        profiler = make_profiler(observer)
        with profiler:
            steps(n_before)
            wall, cpu = time.perf_counter(), time.thread_time()
            steps(n_steps)
            wall_us.append((time.perf_counter() - wall) / n_steps * 1e6)
            cpu_us.append((time.thread_time() - cpu) / n_steps * 1e6)
    size = size_of_trace(profiler)
    print(json.dumps({"wall_us": wall_us, "cpu_us": cpu_us, "steps": n_before + n_repeats * (n_before + n_steps),
                      "trace_bytes_per_step": size and size / (n_before + n_steps)}))


main()
