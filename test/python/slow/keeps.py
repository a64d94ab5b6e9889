# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Each step's outputs are kept for a mean at the end; cured, their sum is."""

from work import IS_SLOW, Training, batch, network

STEPS = 40

history = []
training = Training(network(256, 2048))
for step in range(STEPS):
    x, y = batch(step, 256)
    training.step(x, y)
    seen = bytearray(200000)
    if IS_SLOW:
        history.append(seen)
training.end()
