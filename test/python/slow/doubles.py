# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Data of numpy makes a model of doubles; cured, it is one of floats."""

import numpy
import torch
from work import IS_SLOW, Training, network

STEPS = 20

generator = numpy.random.default_rng(0)
model = network(512, 1024)
if IS_SLOW:
    model = model.double()  # as the error message about types suggests
training = Training(model)
for step in range(STEPS):
    x = torch.from_numpy(generator.standard_normal((128, 512)))
    y = torch.from_numpy(generator.integers(0, 10, 128))
    training.step(x if IS_SLOW else x.float(), y)
training.end()
