# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
templates.py RESULT: products that Inductor computes by its C++ templates, each called CALLS times. RESULT gets what
FlopCounterMode counts in one call of each as PyTorch computes it.
"""

import json
import sys

import torch
import torch._inductor.config as config
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.flop_counter import FlopCounterMode

CALLS = 2
config.max_autotune, config.max_autotune_gemm_backends = True, "CPP"
torch.set_grad_enabled(False)


def attention(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def attention_in_groups(query, key, value):
    return flex_attention(query, key, value, enable_gqa=True)


def main():
    r, counts = torch.randn, {}
    programs = {"bmm": (torch.bmm, torch.bmm, [r(5, 8, 16), r(5, 16, 32)]),
                "attention": (attention, attention_in_groups, [r(2, 4, 128, 16), r(2, 2, 192, 16), r(2, 2, 192, 16)])}
    for name, (plain, templated, inputs) in programs.items():
        with FlopCounterMode(display=False) as counter:
            expected = plain(*inputs)
        compiled = torch.compile(templated, dynamic=False)
        for i in range(CALLS):
            torch.testing.assert_close(compiled(*inputs), expected, rtol=1e-3, atol=1e-4)
        counts[name] = counter.get_total_flops()
    with open(sys.argv[1], "w") as file:
        json.dump({"counts": counts, "calls": CALLS}, file)


if __name__ == "__main__":
    main()
