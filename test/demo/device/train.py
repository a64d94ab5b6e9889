# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Trains a small transformer on a CUDA device for three steps; what it computes doesn't matter."""

import torch

LAYERS, BATCH, WORDS, WIDTH, STEPS = 4, 2, 16, 32, 3


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        weights = torch.softmax(x @ x.transpose(1, 2), -1)
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(weights @ x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(100, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, 100)

    def forward(self, words):
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(STEPS):
    words = torch.zeros(BATCH, WORDS, dtype=torch.long).cuda()
    optimizer.zero_grad()
    model(words).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(f"trained {STEPS} steps on {torch.cuda.get_device_name()}")
