# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Operators that differ in what torsh ops groups by: names, inputs, modules, phases, steps, threads; and tensors."""
import ctypes
import random
import threading

import torch
from torch.nn.modules.module import Module

random.seed(7)


class Leaf(Module):
    def forward(self):
        work(3)


class Loss(Module):
    def forward(self):
        work(2)


class Net(Module):
    def forward(self):
        work(1)
        self.children["leaf"]()
        work(1)


def allocate(n_bytes):
    return torch._library.stand_in_allocate(n_bytes)


def work(n):
    """n operators with others inside, of random names and inputs; each allocates, some free."""
    for _ in range(n):
        held.append(allocate(random.randrange(1, 5000)))
        tensor = torch.zeros(random.randrange(1, 3), 2)
        torch.call(random.choice(("aten::mul", "aten::linalg_svd", "aten::add")), tensor, tensor, inside=inner)
        if random.random() < 0.6:
            torch._library.stand_in_free(ctypes.c_void_p(held.pop(random.randrange(len(held)))))


def inner():
    held.append(allocate(random.randrange(1, 2000)))
    torch.call("aten::add", random.randrange(3), inside=lambda: torch.call("aten::inmost"))


held = []
net, loss = Net(leaf=Leaf()), Loss()
work(2)
for i in range(5):
    torch.call("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", scope=torch.USER, inside=lambda: work(1))
    net()
    loss()
    torch.call("MulBackward0", scope=torch.BACKWARD, inside=lambda: work(2))
    torch.call("Optimizer.step#SGD.step", scope=torch.USER, inside=lambda: work(1))
    thread = threading.Thread(target=torch.mul, args=(torch.zeros(4), torch.zeros(4)))
    thread.start()
    thread.join()
work(1)
