# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Python's collector walks over many objects in each step; cured, it doesn't run there."""

import gc

from work import IS_SLOW, Training, batch, network

STEPS = 20

vocabulary = [[i] for i in range(400000)]
training = Training(network())
gc.collect()
if not IS_SLOW:
    gc.freeze()
for step in range(STEPS):
    training.step(*batch(step))
    if IS_SLOW:
        gc.collect()  # here
training.end()
