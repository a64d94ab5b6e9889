# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A loop of Python standardises row by row; cured, one operator does all rows."""

import torch
from work import IS_SLOW, Training, batch, network

STEPS, ROWS = 20, 256


def standardised(x):
    if not IS_SLOW:
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-6)
    return torch.stack([(row - row.mean()) / (row.std() + 1e-6) for row in x])


training = Training(network())
for step in range(STEPS):
    x, y = batch(step, ROWS)
    training.step(standardised(x), y)
training.end()
