# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A block of a diffusion model's UNet: a residual block that gets the time, a transformer block with attention to its own pixels
and to a text, and a halving of the resolution. The full size is that of Stable Diffusion's first block.
"""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 2, "pixels": 64, "channels": 320, "heads": 8, "times": 1280, "words": 77, "text": 768},
    "small": {"batch": 1, "pixels": 16, "channels": 64, "heads": 4, "times": 128, "words": 16, "text": 64},
}
GROUPS = 32


class Residual(nn.Module):
    def __init__(self, channels, times):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, channels), nn.GroupNorm(GROUPS, channels)
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(times, channels)

    def forward(self, x, time):
        y = self.conv1(nn.functional.silu(self.norm1(x)))
        y = y + self.time(nn.functional.silu(time))[:, :, None, None]
        return x + self.conv2(nn.functional.silu(self.norm2(y)))


class Attention(nn.Module):
    def __init__(self, width, of, heads):
        super().__init__()
        self.heads = heads
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.key, self.value = nn.Linear(of, width, bias=False), nn.Linear(of, width, bias=False)

    def forward(self, x, of):
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                             for part in (self.query(x), self.key(of), self.value(of)))
        return self.out(nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, channels, text, heads):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.before, self.after = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(channels) for _ in range(3))
        self.itself, self.text = Attention(channels, channels, heads), Attention(channels, text, heads)
        self.gate, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x, text):
        y = self.before(self.norm(x)).flatten(2).transpose(1, 2)
        normed = self.norm1(y)
        y = y + self.itself(normed, normed)
        y = y + self.text(self.norm2(y), text)
        value, gate = self.gate(self.norm3(y)).chunk(2, dim=-1)
        y = y + self.down(value * nn.functional.gelu(gate))
        return x + self.after(y.transpose(1, 2).unflatten(2, x.shape[2:]))


class UNetBlock(nn.Module):
    def __init__(self, channels, times, text, heads):
        super().__init__()
        self.residual = Residual(channels, times)
        self.transformer = Transformer(channels, text, heads)
        self.halve = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x, time, text):
        return self.halve(self.transformer(self.residual(x, time), text))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = UNetBlock(figures["channels"], figures["times"], figures["text"], figures["heads"]).to(device).eval()
    batch, pixels = figures["batch"], figures["pixels"]
    return model, (torch.randn(batch, figures["channels"], pixels, pixels, device=device),
                   torch.randn(batch, figures["times"], device=device),
                   torch.randn(batch, figures["words"], figures["text"], device=device))
