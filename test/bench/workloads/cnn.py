# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A small convolutional network trained on the CPU: cnn.py STEPS."""
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 16, 3),
                            torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 11 * 11, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
inputs, labels = torch.randn(16, 1, 28, 28), torch.randint(10, (16,))
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
