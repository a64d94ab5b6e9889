# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A language model of two layers of LSTM, whose logits use the table of tokens again."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 32, "words": 64, "vocabulary": 10000, "width": 512},
    "small": {"batch": 4, "words": 8, "vocabulary": 1000, "width": 64},
}


class LSTMLanguageModel(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.logits = nn.Linear(width, vocabulary)
        self.logits.weight = self.embed.weight

    def forward(self, tokens):
        return self.logits(self.lstm(self.embed(tokens))[0])


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = LSTMLanguageModel(figures["vocabulary"], figures["width"]).to(device).eval()
    return model, torch.randint(0, figures["vocabulary"], (figures["batch"], figures["words"]), device=device)
