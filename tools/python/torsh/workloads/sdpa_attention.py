# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Attention with separate projections of query, key and value, which torch.compile may fuse, between two layer norms."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 8, "words": 512, "width": 512, "heads": 8},
    "small": {"batch": 2, "words": 64, "width": 128, "heads": 4},
}


class SDPAAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.norm_before, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, x):
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        y = self.norm_before(x)
        attended = nn.functional.scaled_dot_product_attention(self.split(self.query(y)), self.split(self.key(y)),
                                                              self.split(self.value(y)))
        return self.norm_after(self.out(attended.transpose(1, 2).flatten(2)) + x)


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = SDPAAttention(figures["width"], figures["heads"]).to(device).eval()
    return model, torch.randn(figures["batch"], figures["words"], figures["width"], device=device)
