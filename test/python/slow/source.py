# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Each step waits for a batch from a slow source; cured, others fetch ahead of the step."""

import concurrent.futures
import time

from work import IS_SLOW, Training, batch, network

STEPS = 20


def fetch(step):
    time.sleep(0.1)  # a disk, or a server
    return batch(step)


training = Training(network())
if IS_SLOW:
    batches = map(fetch, range(STEPS))
else:
    batches = concurrent.futures.ThreadPoolExecutor(STEPS).map(fetch, range(STEPS))
for x, y in batches:
    training.step(x, y)
training.end()
