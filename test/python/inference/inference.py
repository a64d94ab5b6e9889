# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Programs that only infer, for test/e2e/torch/inference_steps.py:

    inference.py WHAT [REPEATS [LENGTH]]

WHAT: "bursts" are forwards of a model in bursts with pauses between them, "layers" the same of many equal layers and
nothing else, "generate" makes tokens with a transformer and a cache of its keys and values, "recompute" without the cache,
"stages" calls two models in turn, "once" runs each of many operators once. After all of it, the program idles
for two pauses. Prints how long it did not pause before that, in ns.
"""

import sys
import threading
import time

import torch
from torch import nn

PAUSE_S = 0.15
PROMPT = 12
WIDTH, HEADS, LAYERS, WORDS = 32, 4, 4, 64


paused = []


def pause():
    start = time.monotonic_ns()
    threading.Event().wait(PAUSE_S)
    paused.append(time.monotonic_ns() - start)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache):
        heads = self.project(self.norm(x)).unflatten(2, (3 * HEADS, -1)).transpose(1, 2)
        query, key, value = heads.chunk(3, 1)
        if cache is not None:
            key, value = cache.add(self, key, value)
        is_prompt = query.shape[2] > 1
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_prompt)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.wide(x)


class Cache:
    def __init__(self):
        self.of = {}

    def add(self, block, key, value):
        if block in self.of:
            before_key, before_value = self.of[block]
            key, value = torch.cat((before_key, key), 2), torch.cat((before_value, value), 2)
        self.of[block] = key, value
        return key, value


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(256, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, words, first, cache):
        x = self.words(words) + self.places(torch.arange(first, first + words.shape[1]))
        for block in self.blocks:
            x = block(x, cache)
        return self.head(self.norm(x))

    def generate(self, words, n, has_cache=True):
        cache = Cache() if has_cache else None
        new, first = words, 0
        for _ in range(n):
            word = self(new, first, cache)[:, -1].argmax(-1, keepdim=True)
            first = words.shape[1] if has_cache else 0
            words = torch.cat((words, word), 1)
            new = word if has_cache else words
        return words


def in_bursts(repeats, length, call):
    for burst in range(repeats):
        if burst:
            pause()
        inputs = torch.randn(16, 64) * 2 + 1
        for _ in range(length):
            call(inputs)


def bursts(repeats, length):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    in_bursts(repeats, length, lambda inputs: model(inputs).argmax(-1))


def layers(repeats, length):
    model = nn.Sequential(*[layer for _ in range(30) for layer in (nn.Linear(64, 64), nn.ReLU())])
    in_bursts(repeats, length, model)


def generate(repeats, length):
    model = Transformer()
    for _ in range(repeats):
        model.generate(torch.randint(WORDS, (2, PROMPT)), length)


def recompute(repeats, length):
    model = Transformer()
    for _ in range(repeats):
        model.generate(torch.randint(WORDS, (2, PROMPT)), length, False)


class Encoder(nn.Sequential):
    pass


class Decoder(nn.Sequential):
    pass


def stages(repeats, length):
    encoder, decoder = Encoder(nn.Linear(64, 64), nn.ReLU()), Decoder(nn.Linear(64, 8), nn.Sigmoid())
    in_bursts(repeats, length, lambda inputs: decoder(encoder(inputs)))


def once(repeats, length):
    x = torch.rand(16, 16)
    for name in ("sin", "exp", "sqrt", "tanh", "abs", "floor", "cumsum", "sort", "trace", "neg", "cos", "erf", "prod", "det",
                 "inverse", "round", "sigmoid", "relu", "var", "std", "logsumexp"):
        function = getattr(torch, name)
        function(x, 0) if name in ("cumsum", "sort", "prod", "var", "std", "logsumexp") else function(x)


def main():
    what = sys.argv[1]
    repeats, length = (int(number) for number in (sys.argv[2:] + ["3", "40"][len(sys.argv) - 2:]))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    start = time.monotonic_ns()
    with torch.inference_mode():
        globals()[what](repeats, length)
    print(time.monotonic_ns() - start - sum(paused))
    pause()
    pause()


if __name__ == "__main__":
    main()
