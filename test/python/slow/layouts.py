# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A large table is laid out anew in each step, for one who reads it by columns; cured, once."""

import torch
from work import IS_SLOW, Training, batch, network

STEPS = 20

table = torch.randn(20000, 256).t()
if not IS_SLOW:
    table = table.contiguous()
training = Training(network())
for step in range(STEPS):
    x, y = batch(step)
    columns = table.contiguous()
    training.step(x + columns[:, step], y)
training.end()
