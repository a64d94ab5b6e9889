# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A PyTorch training loop on the CPU: train.py STEPS."""
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                            torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters())
inputs, targets = torch.randn(128, 64), torch.randn(128, 1)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
