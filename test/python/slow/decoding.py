# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A DataLoader without workers decodes each sample when it is wanted; cured, all are decoded once, before the loop."""

import torch
from torch.utils.data import DataLoader, Dataset
from work import IS_SLOW, Training, network

EPOCHS, SAMPLES = 4, 64

stored = [bytes((7 * i + k) % 256 for k in range(4096)) for i in range(SAMPLES)]


def decode(data):
    seed, pixels = 1, []
    for value in data:
        seed = (seed * 31 + value) % 65521
        pixels.append(seed / 65521)
    return torch.tensor(pixels[:256])


class Images(Dataset):
    def __init__(self):
        self.decoded = None if IS_SLOW else [decode(data) for data in stored]

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return (self.decoded[i] if self.decoded else decode(stored[i])), i % 10


training = Training(network())
loader = DataLoader(Images(), batch_size=8)
for epoch in range(EPOCHS):
    for x, y in loader:
        training.step(x, y)
training.end()
