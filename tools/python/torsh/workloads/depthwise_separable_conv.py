# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Blocks of a depthwise convolution, which is bound by memory, and a pointwise one, which is a product of matrices."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 16, "pixels": 56, "channels": (32, 64, 128, 256)},
    "small": {"batch": 2, "pixels": 28, "channels": (16, 32, 64, 128)},
}


class DepthwiseSeparableBlock(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.depthwise = nn.Conv2d(before, before, 3, padding=1, groups=before, bias=False)
        self.norm_of_depthwise = nn.BatchNorm2d(before)
        self.pointwise = nn.Conv2d(before, after, 1, bias=False)
        self.norm_of_pointwise = nn.BatchNorm2d(after)
        self.activation = nn.ReLU6()

    def forward(self, x):
        x = self.activation(self.norm_of_depthwise(self.depthwise(x)))
        return self.activation(self.norm_of_pointwise(self.pointwise(x)))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    channels = figures["channels"]
    model = nn.Sequential(*(DepthwiseSeparableBlock(*pair) for pair in zip(channels, channels[1:]))).to(device).eval()
    return model, torch.randn(figures["batch"], channels[0], figures["pixels"], figures["pixels"], device=device)
