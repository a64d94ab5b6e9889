# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
phases.py FOLDER WAY...: trains in several ways, and marks its phases through torsh.py (in FOLDER): a range "whole" with
"data", "forward", "loss", "backward" or "optimizer" inside it for each part. Of many ways each is trained in a child of its
own, as importing PyTorch takes longer than all of them. Prints the ways' pids.
"""
import json
import os
import sys

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
import torsh  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

STEPS, ROWS = 4, 8


class Scaled(torch.utils.data.TensorDataset):
    """A module makes its items, as transforms do."""

    scale = nn.Hardtanh()

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return self.scale(x), y


def batches(n=STEPS, **workers):
    data = Scaled(torch.randn(ROWS * n, 16), torch.randint(0, 4, (ROWS * n,)))
    return iter(torch.utils.data.DataLoader(data, ROWS, **workers))


def following(iterator):
    with torsh.range("data"):
        return next(iterator)


def network():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def learn(model, criterion, batch):
    x, y = batch
    with torsh.range("forward"):
        out = model(x)
    with torsh.range("loss"):
        loss = criterion(out, y)
    with torsh.range("backward"):
        loss.backward()
    return loss


def update(*optimizers):
    with torsh.range("optimizer"):
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def plain(criterion=nn.CrossEntropyLoss(), **workers):
    model, loader = network(), batches(**workers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        learn(model, criterion, following(loader))
        update(optimizer)


def workers():
    plain(num_workers=2, multiprocessing_context="fork")


def spawned_workers():
    plain(num_workers=1, multiprocessing_context="spawn", persistent_workers=True)


def served_workers():
    """By processes that a server forks."""
    plain(num_workers=1, multiprocessing_context="forkserver", pin_memory=True)


def functional():
    """No module has the traits of a loss."""
    plain(criterion=F.cross_entropy)


def accumulation():
    model, criterion, loader = network(), nn.CrossEntropyLoss(), batches(n=3 * STEPS)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        for _ in range(3):
            learn(model, criterion, following(loader))
        update(optimizer)


def two_optimizers():
    model, criterion, loader = network(), nn.CrossEntropyLoss(), batches()
    one, other = torch.optim.AdamW(model[0].parameters()), torch.optim.RMSprop(model[2].parameters())
    for _ in range(STEPS):
        learn(model, criterion, following(loader))
        update(one, other)


def distributed():
    """Gradients are reduced by a thread, and copied when backward() has gone through all nodes; then they are clipped."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model, loader = nn.parallel.DistributedDataParallel(network()), batches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        learn(model, F.cross_entropy, following(loader))
        with torsh.range("backward"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update(optimizer)
    torch.distributed.destroy_process_group()


def checkpointed():
    """Backward computes forward again."""
    model, criterion, loader = network(), nn.CrossEntropyLoss(), batches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        learn(lambda x: checkpoint(model, x, use_reentrant=False), criterion, following(loader))
        update(optimizer)


def without_modules():
    """Nothing but backward shows where setup ends."""
    weight, batch = torch.randn(16, 4) * 0.1, (torch.randn(ROWS, 16), torch.randint(0, 4, (ROWS,)))
    optimizer = torch.optim.SGD([weight.requires_grad_()], lr=0.1)
    for _ in range(STEPS):
        learn(lambda x: x @ weight, F.cross_entropy, batch)
        update(optimizer)


def functional_closure():
    closure(F.cross_entropy)


def closure(criterion=nn.CrossEntropyLoss()):
    model, loader = network(), batches()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    for _ in range(STEPS):
        batch = following(loader)

        def again(batch=batch):
            optimizer.zero_grad()
            return learn(model, criterion, batch)

        with torsh.range("optimizer"):
            optimizer.step(again)


def mixed_precision():
    model, criterion, loader = network(), nn.CrossEntropyLoss(), batches()
    optimizer = torch.optim.Adagrad(model.parameters())
    for _ in range(STEPS):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            learn(model, criterion, following(loader))
        update(optimizer)


def train(way):
    with torsh.range("whole"):
        globals()[way]()
    return os.getpid()


def train_in_child(way):
    pid = os.fork()
    if pid == 0:
        train(way)
        os._exit(0)  # Python would tidy up its copy of PyTorch for a second
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{way} ended with status {status}")
    return pid


if __name__ == "__main__":
    ways = sys.argv[2:]
    if len(ways) > 1:
        import torch._dynamo  # noqa: F401: the first optimizer of each child would
    print(json.dumps({way: train(way) if len(ways) == 1 else train_in_child(way) for way in ways}))
