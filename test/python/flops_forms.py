# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
flops_forms.py [NAME...]: as flops_programs.py, of recurrent layers, attention, convolutions and transformers in every form:
in training, without gradients, in inference mode, under autocast; with masks, groups, other layouts of memory.
"""
import itertools
import threading

import torch
from flops_programs import count_all, heads, learn
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}
MODES = ("trained", "evaluated", "without_gradients", "in_inference_mode", "by_autocast")


def forms(*tables):
    """A program of each row of the tables' product, which is a part of its name."""
    def add(function):
        for row in itertools.product(*tables):
            name = "_".join([function.__name__, *(str(part) for part in row)])
            PROGRAMS[name] = lambda row=row: function(*row)
        return function
    return add


def go(mode, model, *inputs):
    is_module = isinstance(model, nn.Module)
    if is_module and mode not in ("trained", "by_autocast"):
        model.eval()
    if mode == "by_autocast":
        # Some CPUs' oneDNN refuses an LSTM of such numbers instead of leaving it to PyTorch.
        has_kernels = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.backends.mkldnn.flags(enabled=has_kernels):
            learn(model, *inputs)
    elif mode in ("trained", "evaluated"):
        learn(model, *inputs)
    else:
        with torch.inference_mode() if mode == "in_inference_mode" else torch.no_grad():
            model(*inputs)


RECURRENT = {"plain": {}, "bidirectional": {"bidirectional": True}, "batch_first": {"batch_first": True}, "unbiased": {"bias": False},
             "dropped": {"dropout": 0.3}}


@forms(("LSTM", "GRU", "RNN"), RECURRENT, MODES)
def recurrent(kind, options, mode):
    go(mode, getattr(nn, kind)(6, 8, 2, **RECURRENT[options]), torch.randn(5, 3, 6))


@forms(MODES)
def recurrent_projected(mode):
    go(mode, nn.LSTM(6, 8, 2, proj_size=4, bidirectional=True), torch.randn(5, 3, 6))


@forms(("weights", "none"), ("open", "causal", "padded"), MODES)
def attention_module(wanted, mask, mode):
    model = nn.MultiheadAttention(16, 4, batch_first=True)
    model.train(mode in ("trained", "by_autocast"))
    options = {"open": {}, "padded": {"key_padding_mask": torch.tensor([[False] * 5 + [True] * 2] * 2)},
               "causal": {"attn_mask": nn.Transformer.generate_square_subsequent_mask(7), "is_causal": True}}[mask]
    go(mode, lambda x: model(x, x, x, need_weights=wanted == "weights", **options)[0], torch.randn(2, 7, 16))


PRODUCTS = {"open": {}, "causal": {"is_causal": True}, "masked": {"attn_mask": torch.zeros(16, 16)}, "dropped": {"dropout_p": 0.2},
            "chosen": {"attn_mask": torch.ones(16, 16, dtype=torch.bool).tril()}, "scaled": {"scale": 0.3}}


@forms(PRODUCTS, MODES)
def attention_product(options, mode):
    go(mode, lambda *x: F.scaled_dot_product_attention(*x, **PRODUCTS[options]), *(x.detach() for x in heads(16, 32)))


@forms((1, 2, 3), ("", "Transpose"), (1, 2, 8), ("contiguous", "channels_last"), MODES)
def convolution(n, kind, groups, layout, mode):
    model, x = getattr(nn, f"Conv{kind}{n}d")(8, 16, 3, groups=groups, stride=2, padding=1), torch.randn(2, 8, *[9] * n)
    if layout == "channels_last" and n > 1:
        memory_format = torch.channels_last if n == 2 else torch.channels_last_3d
        model, x = model.to(memory_format=memory_format), x.to(memory_format=memory_format)
    go(mode, model, x)


@forms(("encoder", "decoder", "both"), MODES)
def transformer(part, mode):
    options = {"batch_first": True}
    model = {"encoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, **options), 2),
             "decoder": lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, **options), 2),
             "both": lambda: nn.Transformer(16, 4, 1, 1, 32, **options)}[part]()
    go(mode, model, torch.randn(2, 10, 16), *([] if part == "encoder" else [torch.randn(2, 7, 16)]))


SUMS = {"bhqd,bhkd->bhqk": ((2, 4, 5, 8), (2, 4, 6, 8)), "bij,bj->bi": ((2, 3, 4), (2, 4)), "i,i->": ((4,), (4,)),
        "ij,ij->i": ((3, 4), (3, 4)), "bnd,de->bne": ((2, 3, 4), (4, 5))}


@forms(SUMS, MODES)
def einsum(equation, mode):
    go(mode, lambda *x: torch.einsum(equation, *x), *(torch.randn(shape) for shape in SUMS[equation]))


@forms(("started",))
def thread(_):
    """The counter counts what its own thread does."""
    a = torch.randn(8, 8)
    started = threading.Thread(target=lambda: a @ a)
    started.start()
    started.join()


if __name__ == "__main__":
    count_all(PROGRAMS)
