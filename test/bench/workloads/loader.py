# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Batches made by 16 workers of a DataLoader: loader.py SAMPLES. Prints a check sum and the seconds that the epochs took."""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WORKERS, EPOCHS = 16, 2


class Pictures(Dataset):
    """Each sample is made as if it were read and augmented: flipped, cut, normalised."""

    def __len__(self):
        return int(sys.argv[1])

    def __getitem__(self, index):
        picture = torch.full((3, 96, 96), float(index % 255))
        for shift in range(12):
            picture = torch.roll(picture, shift, 2).flip(1)[:, :96, :96] * 0.99 + shift
        return {"picture": (picture - picture.mean()) / (picture.std() + 1), "label": index % 10}


if __name__ == "__main__":
    torch.set_num_threads(1)
    started, total = time.perf_counter(), 0
    for _ in range(EPOCHS):
        for batch in DataLoader(Pictures(), batch_size=16, num_workers=WORKERS, shuffle=True):
            total += int(batch["label"].sum())
    print(total, f"{time.perf_counter() - started:.3f}")
