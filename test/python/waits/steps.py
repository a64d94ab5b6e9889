# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
steps.py PATH: a training on the CPU whose steps load a batch that takes time, wait for a lock and for a file, sleep, collect
garbage and compute. PATH: of torsh.py. Prints of each step what its parts took by the program's clock, in ns.
"""

import gc
import json
import os
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402
import torsh  # noqa: E402

# Python sets the moment at which it wakes before it calls what waits: a wait may be shorter by what is between.
DATA, SLEEP, LOCK = 0.010, 0.005, 0.004
N_STEPS = 6
torch.set_num_threads(1)


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return N_STEPS

    def __getitem__(self, i):
        time.sleep(DATA)
        return torch.ones(64)


def now():
    return time.monotonic_ns()


def keep_cycles():
    kept = []
    for _ in range(20000):
        cycle = []
        cycle.append(cycle)
        kept.append(cycle)


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=LOCK)


def main():
    gc.disable()
    model = torch.nn.Linear(64, 512)
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=1))
    told = []
    for i in range(N_STEPS):
        torsh.step(i)
        at = [now()]
        batch = next(batches)
        at.append(now())
        for _ in range(20):
            model(batch.repeat(64, 1)).sum().backward()
        at.append(now())
        time.sleep(SLEEP)
        at.append(now())
        wait_for_lock()
        at.append(now())
        keep_cycles()
        at.append(now())
        gc.collect()
        at.append(now())
        until = time.monotonic() + 0.005
        while time.monotonic() < until:
            pass
        at.append(now())
        told.append(dict(zip(("data", "operators", "sleep", "lock", "cycles", "gc", "python"),
                             (b - a for a, b in zip(at, at[1:])))))
    torsh.step(N_STEPS)
    print(json.dumps(told))
    sys.stdout.flush()
    os._exit(0)


main()
