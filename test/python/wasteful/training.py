# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Small programs that waste in one way each, and the same ones that do not. Arguments: names of wastes. Each program is a fork:
prints its name, whether it is wasteful, its pid and what it knows of the waste, as JSON.
"""

import json
import os
import sys
import threading
import time

import torch
import torch._dynamo  # which each optimizer's first step would import
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, TensorDataset

STEPS = 12


class Training:
    """Does the step of a small model; what a waste adds comes before it."""

    def __init__(self, model=None, optimizer=None, inputs=256, **zero):
        self.model = model or nn.Sequential(nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, 10))
        self.optimizer = optimizer or torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.zero, self.inputs = zero, inputs
        self.x = torch.ones(64, inputs)

    def step(self, extra=None, batch=None):
        self.optimizer.zero_grad(**self.zero)
        if extra:
            extra()
        outputs = self.model(self.x if batch is None else batch)
        loss = nn.functional.cross_entropy(outputs, torch.zeros(len(outputs), dtype=torch.long))
        loss.backward()
        self.optimizer.step()

    def run(self, extra=None):
        for _ in range(STEPS):
            self.step(extra)


def scalar_reads(is_wasteful):
    value = torch.ones(())
    Training().run(lambda: [value.item() for _ in range(4000 if is_wasteful else 1)])
    return {"reads_per_step": 4000}


def contiguous_copies(is_wasteful):
    image = torch.ones(2000, 2000)
    seen = image.t() if is_wasteful else image
    Training().run(lambda: [seen.contiguous() for _ in range(4)])
    return {"copies_per_step": 4}


def growing_cat(is_wasteful):
    piece = torch.ones(40, 512)

    def collect():
        if is_wasteful:
            whole = piece
            for _ in range(50):
                whole = torch.cat([whole, piece])
        else:
            torch.cat([piece for _ in range(51)])
    Training().run(collect)
    # The first of the 50 calls makes it, of two pieces; before each other one it has 2 to 50 pieces, and 51 in the end.
    return {"copied_times": sum(range(2, 51)) / 51}


def constant_tensors(is_wasteful):
    kept = torch.arange(1_000_000)
    Training().run(lambda: [torch.arange(1_000_000) if is_wasteful else kept for _ in range(4)])
    return {"calls_per_step": 4}


def float64_operators(is_wasteful):
    import numpy
    data = torch.from_numpy(numpy.random.default_rng(0).normal(size=(700, 700)).astype(numpy.float64 if is_wasteful else numpy.float32))
    Training().run(lambda: data @ data)
    return {"calls_per_step": 1}


def gradient_fills(is_wasteful):
    model = nn.Sequential(nn.Embedding(4000, 512, sparse=False), nn.Flatten(), nn.Linear(512, 10))
    training = Training(model, torch.optim.SGD(model.parameters(), lr=0.01), set_to_none=not is_wasteful)
    training.x = torch.zeros(64, 1, dtype=torch.long)
    training.run()
    return {"calls_per_step": 1}


def optimizer_loop(is_wasteful):
    model = nn.Sequential(nn.Linear(256, 16), *[nn.Linear(16, 16) for _ in range(40)], nn.Linear(16, 10))
    Training(model, torch.optim.AdamW(model.parameters(), foreach=False, fused=not is_wasteful)).run()
    return {"parameters": len(list(model.parameters()))}


def dense_embedding_gradients(is_wasteful):
    model = nn.Sequential(nn.Embedding(40000, 64, sparse=not is_wasteful), nn.Flatten(), nn.Linear(64, 10))
    training = Training(model, torch.optim.SGD(model.parameters(), lr=0.01))
    training.x = torch.zeros(64, 1, dtype=torch.long)
    training.run()
    return {"rows": 40000, "indices": 64}


def inference(model, x, is_with_gradients):
    for _ in range(40):
        with torch.set_grad_enabled(is_with_gradients):
            model(x)


def training_layers(is_wasteful):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 64), nn.BatchNorm1d(64)).train(is_wasteful)
    inference(model, torch.ones(64, 256), False)
    return {"layers_per_step": 2}


def unused_graph(is_wasteful):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(12)], nn.ReLU()).eval()
    inference(model, torch.ones(64, 64), is_wasteful)
    return {}


def graph_growth(is_wasteful):
    cell = nn.GRUCell(64, 64)
    hidden = torch.zeros(16, 64)
    for _ in range(STEPS):
        hidden = cell(torch.ones(16, 64), hidden if is_wasteful else hidden.detach())
        hidden.sum().backward(retain_graph=True)
    return {}


def guard_checks(is_wasteful):
    def small(x):
        return x + 1
    called = torch.compile(small, backend="eager") if is_wasteful else small
    x = torch.ones(4)
    called(x)
    Training(inputs=16).run(lambda: [called(x) for _ in range(3000)])
    return {"lookups_per_step": 3000}


class Items(Dataset):
    """Each item takes as long as it is told."""

    def __init__(self, n, seconds=0.0):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return torch.full((256,), float(i))


def of_batches(loader, epochs=1, seconds=0.0):
    training = Training()
    for _ in range(epochs):
        for batch in loader:
            training.step(lambda: time.sleep(seconds), batch[0] if isinstance(batch, (list, tuple)) else batch)


def loader_without_workers(is_wasteful):
    of_batches(DataLoader(Items(64 * STEPS, 0.0005), batch_size=64, num_workers=0 if is_wasteful else 1), seconds=0.01)
    return {"batches": STEPS - 1}


def loader_behind(is_wasteful):
    of_batches(DataLoader(Items(64 * STEPS, 0.0005 if is_wasteful else 0), batch_size=64, num_workers=1), seconds=0 if is_wasteful else 0.25)
    return {"workers": 1}


def loader_restarts(is_wasteful):
    of_batches(DataLoader(Items(64 * 2), batch_size=64, num_workers=1, persistent_workers=not is_wasteful), epochs=15)
    return {"restarts": 14}


def loader_too_many_workers(is_wasteful):
    of_batches(DataLoader(Items(64 * 8), batch_size=64, num_workers=5 if is_wasteful else 1), seconds=0.1)
    return {"workers": 5}


def loader_small_operators(is_wasteful):
    data = torch.ones(256 * STEPS, 256)
    if is_wasteful:
        loader = DataLoader(TensorDataset(data), batch_size=256)
    else:
        loader = DataLoader(TensorDataset(data), sampler=BatchSampler(SequentialSampler(data), 256, False), batch_size=None)
    small = Training(nn.Linear(256, 10))
    for batch, in loader:
        small.step(None, batch)
    # Of each item a row, and then what stacks them.
    return {"operators": 256}


def sleeps(is_wasteful):
    Training().run(lambda: time.sleep(0.005) if is_wasteful else None)
    return {"seconds": 0.005 * STEPS}


def file_waits(is_wasteful):
    import tempfile
    with tempfile.TemporaryFile(dir="/var/tmp") as out:
        def keep():
            out.write(b"0" * 100_000)
            out.flush()
            os.fsync(out.fileno())
        Training().run(keep if is_wasteful else None)
    return {}


def network_waits(is_wasteful):
    import socket
    here, there = socket.socketpair()

    def serve():
        while there.recv(1):
            time.sleep(0.01)
            there.send(b"y")
    server = threading.Thread(target=serve)
    server.start()

    def ask():
        here.send(b"x")
        here.recv(1)
    Training().run(ask if is_wasteful else None)
    here.close()
    server.join()
    return {}


def python_lock_waits(is_wasteful):
    stop = threading.Event()

    def compute():
        n = 0
        while not stop.is_set():
            n += 1
    others = [threading.Thread(target=compute) for _ in range(2 if is_wasteful else 0)]
    for other in others:
        other.start()
    Training(inputs=64).run(lambda: sum(range(20000)))
    stop.set()
    for other in others:
        other.join()
    return {}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        for is_wasteful in True, False:
            pid = os.fork()
            if not pid:
                known = globals()[name](is_wasteful)
                print(json.dumps([name, is_wasteful, os.getpid(), known]), flush=True)
                sys.exit()
            if os.waitpid(pid, 0)[1]:
                sys.exit(f"{name} failed")
