# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Batches made by 16 workers of a DataLoader: loader.py SAMPLES. Prints a check sum and the seconds that the epochs took."""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WORKERS, EPOCHS = 16, 2


class Pictures(Dataset):
    """Each sample is made as if it had been read: enlarged, cut at random, flipped, normalised."""

    def __len__(self):
        return int(sys.argv[1])

    def __getitem__(self, index):
        picture = torch.full((1, 3, 200, 200), float(index % 255))
        picture = torch.nn.functional.interpolate(picture, size=256, mode="bicubic", antialias=True)[0]
        top, left = torch.randint(32, (2,)).tolist()
        picture = picture[:, top:top + 224, left:left + 224].flip(2)
        return {"picture": (picture - picture.mean((1, 2), True)) / (picture.std() + 1), "label": index % 10}


if __name__ == "__main__":
    torch.set_num_threads(1)
    started, total = time.perf_counter(), 0
    for _ in range(EPOCHS):
        for batch in DataLoader(Pictures(), batch_size=16, num_workers=WORKERS, shuffle=True):
            total += int(batch["label"].sum())
    print(total, f"{time.perf_counter() - started:.3f}")
