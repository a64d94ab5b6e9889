# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Trains a small model on the CPU for a few seconds. The loss is smoothed by leaky, a C extension that leaks."""

import torch

try:
    from leaky import smooth
except ImportError:  # built without Python's headers: the same functions, called through ctypes
    import ctypes
    import pathlib

    smooth = ctypes.CDLL(str(next(pathlib.Path(__file__).parent.glob("leaky*.so")))).leaky_smooth
    smooth.restype, smooth.argtypes = ctypes.c_double, [ctypes.c_double]

STEPS = 400


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a few seconds on any machine, whatever else runs on it
    inputs = torch.randn(2048, 64)
    targets = inputs[:, :8].sin().sum(dim=1, keepdim=True)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        mean = smooth(loss.item())
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}, mean of the last ones {mean:.4f}", flush=True)


main()
