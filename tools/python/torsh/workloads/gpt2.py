# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
GPT-2, up to its last hidden state: equal transformer blocks, which layer deduplication finds. The full size is GPT-2 small, with
its 124,439,808 parameters and random weights.
"""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 4, "words": 128, "vocabulary": 50257, "positions": 1024, "width": 768, "heads": 12, "layers": 12},
    "small": {"batch": 2, "words": 32, "vocabulary": 1000, "positions": 64, "width": 128, "heads": 4, "layers": 4},
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                             for part in self.attention(self.ln_1(x)).chunk(3, dim=2))
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, vocabulary, positions, width, heads, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = GPT2(*(figures[name] for name in ("vocabulary", "positions", "width", "heads", "layers"))).to(device).eval()
    return model, torch.randint(0, figures["vocabulary"], (figures["batch"], figures["words"]), device=device)
