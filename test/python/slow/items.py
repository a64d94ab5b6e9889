# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Means of each layer's outputs are read from the device one by one in each step; cured, they stay there."""

import json

import torch
from work import IS_SLOW

STEPS = 20

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.ones(32, 256, device="cuda")
means = []
for step in range(STEPS):
    optimizer.zero_grad()
    y = x
    for layer in model:
        y = layer(y)
        of_heads = y.detach().view(16, -1).mean(1)
        means.append([mean.item() for mean in of_heads] if IS_SLOW else of_heads)
    y.mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(json.dumps({"steps": STEPS, "means": len(means)}))
