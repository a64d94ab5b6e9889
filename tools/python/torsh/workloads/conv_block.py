# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Three stages of convolution, batch norm and ReLU, and a classifier: early ones are bound by memory, later ones by computing."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 16, "pixels": 64, "channels": (64, 128, 256), "classes": 10},
    "small": {"batch": 4, "pixels": 32, "channels": (16, 32, 64), "classes": 10},
}


def stage(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())


class ConvBlock(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.stage1 = stage(3, channels[0])
        self.stage2 = nn.Sequential(stage(channels[0], channels[1]), nn.MaxPool2d(2))
        self.stage3 = nn.Sequential(stage(channels[1], channels[2]), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Linear(channels[2], classes)

    def forward(self, x):
        return self.classifier(self.stage3(self.stage2(self.stage1(x))).flatten(1))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = ConvBlock(figures["channels"], figures["classes"]).to(device).eval()
    return model, torch.randn(figures["batch"], 3, figures["pixels"], figures["pixels"], device=device)
