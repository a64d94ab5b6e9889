# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Nothing is wrong with this one."""

import torch
from work import Training, batch, network

STEPS = 20

training = Training(network(512, 2048, 10))
batches = [batch(step, 512, 512) for step in range(STEPS)]
for x, y in batches:
    training.step(x, y)
training.end()
