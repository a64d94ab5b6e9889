# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The ends of a language model: rows of a table of tokens, which computes nothing, and logits, which are most of the FLOPs."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 64, "words": 128, "vocabulary": 32000, "width": 512, "inner": 2048},
    "small": {"batch": 4, "words": 32, "vocabulary": 2000, "width": 128, "inner": 512},
}


class EmbeddingProjection(nn.Module):
    def __init__(self, vocabulary, width, inner):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.logits = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.norm(self.embed(tokens))
        return self.logits(self.down(nn.functional.gelu(self.up(x))))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = EmbeddingProjection(figures["vocabulary"], figures["width"], figures["inner"]).to(device).eval()
    return model, torch.randint(0, figures["vocabulary"], (figures["batch"], figures["words"]), device=device)
