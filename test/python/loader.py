# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A DataLoader with workers that leak a block with each item: loader.py METHOD FILE. See family.py
for the contents of FILE."""

import ctypes
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


class Leaky(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 24

    def __getitem__(self, i):
        size = 70000 + i
        libc.malloc(ctypes.c_size_t(size))  # line: leak
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()} {os.getppid()} {size} -\n")
        return torch.full((16,), float(i))


if __name__ == "__main__":
    loader = DataLoader(Leaky(sys.argv[2]), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1])
    print(sum(batch.sum().item() for batch in loader))
