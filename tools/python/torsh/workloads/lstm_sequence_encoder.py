# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two layers of LSTM, averaged over time, and a classifier; compiled, the layers are unrolled into their gates."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 32, "words": 128, "width": 256, "hidden": 512, "classes": 10},
    "small": {"batch": 4, "words": 8, "width": 64, "hidden": 128, "classes": 10},
}


class LSTMSequenceEncoder(nn.Module):
    def __init__(self, width, hidden, classes):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.classifier(self.lstm(x)[0].mean(dim=1))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = LSTMSequenceEncoder(figures["width"], figures["hidden"], figures["classes"]).to(device).eval()
    return model, torch.randn(figures["batch"], figures["words"], figures["width"], device=device)
