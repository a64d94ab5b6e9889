# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Small objects that make pymalloc's arenas grow, far more than the interpreter's start did."""

import mmap
import os

N = 200_000
kept = []


def grow():
    for i in range(N):
        kept.append([i])  # line: arenas


grow()
mapped = mmap.mmap(-1, 16 << 20)  # line: mapped
os._exit(0)
