# SPDX-License-Identifier: Apache-2.0 OR MIT
"""train.py FOLDER: PyTorch on a CUDA device: eager training and a CUDA graph, each under
torch.profiler, with traces in FOLDER; prints the allocator's counts and the errors."""

import json
import pathlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile

FOLDER = pathlib.Path(sys.argv[1])
BATCH, INPUTS, HIDDEN, OUTPUTS, STEPS, REPLAYS = 16, 32, 64, 8, 5, 3
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def make_step():
    model = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, OUTPUTS)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        batch = torch.randn(BATCH, INPUTS).pin_memory().cuda(non_blocking=True)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def profiled(name, function):
    torch.cuda.synchronize()
    with profile(activities=ACTIVITIES) as profiler:
        function()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(FOLDER / f"{name}.json"))


def train():
    step = make_step()
    step()
    profiled("eager", lambda: [step() for _ in range(STEPS)])


def replay():
    graph, stream, x = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.ones(1024, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        y = x * 2 + 1  # noqa: F841
    profiled("graph", lambda: [graph.replay() for _ in range(REPLAYS)])


def move():
    """What the host wrote is what comes back, by way of pinned memory, streams and both directions."""
    stream = torch.cuda.Stream()
    sent = torch.arange(1 << 16, dtype=torch.float32).pin_memory()
    with torch.cuda.stream(stream):
        received = sent.cuda(non_blocking=True).clone().cpu()
    return bool(torch.equal(sent, received))


def fail():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return "OutOfMemoryError"
    return "none"


def main():
    torch.manual_seed(0)
    torch.cuda.init()
    moved, error = move(), fail()
    train()
    replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    end.synchronize()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    print(json.dumps({
        "moved": moved, "error": error, "elapsed_ms": begin.elapsed_time(end),
        "segments": stats["segment.all.allocated"], "reserved_peak": stats["reserved_bytes.all.peak"],
    }))


main()
