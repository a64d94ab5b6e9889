# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Four linear layers, each with another activation, from the cheapest to the dearest."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 256, "width": 512, "hidden": 2048},
    "small": {"batch": 64, "width": 128, "hidden": 512},
}


class MLPActivations(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
        self.fc3, self.fc4 = nn.Linear(hidden, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = nn.functional.relu(self.fc1(x))
        x = nn.functional.gelu(self.fc2(x))
        x = nn.functional.silu(self.fc3(x))
        return torch.tanh(self.fc4(x))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = MLPActivations(figures["width"], figures["hidden"]).to(device).eval()
    return model, torch.randn(figures["batch"], figures["width"], device=device)
