# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The state is copied in each step, in case it is the best one; cured, where it is."""

import copy

from work import IS_SLOW, Training, batch, network

STEPS = 30

training = Training(network(256, 8192, 256))
best = None
for step in range(STEPS):
    training.step(*batch(step, 4))
    is_best = training.losses[-1] == min(training.losses) and step % 10 == 0
    if IS_SLOW or is_best:
        best = copy.deepcopy(training.model.state_dict())
training.end()
