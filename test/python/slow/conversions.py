# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A table is converted from one type to another in each step; cured, once."""

import torch
from work import IS_SLOW, Training, batch, network

STEPS = 20

table = torch.randn(64, 50000).half()
if not IS_SLOW:
    table = table.float()
training = Training(network())
for step in range(STEPS):
    x, y = batch(step)
    weights = table.float()
    training.step(x + weights[0, :256], y)
training.end()
