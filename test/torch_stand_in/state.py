# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
state.py: a thread takes over states of others; prints what it has after each, to stderr how often that made libtorch
make its lists of observers anew.
"""
import sys

import torch

library = torch._library
made_anew = torch.ctypes.c_int.in_dll(library, "stand_in_made_anew")
before, times = made_anew.value, []
for n_own, is_enabled in ((0, 1), (0, 1), (0, 0), (0, 0), (0, 1), (2, 1), (2, 1), (1, 1), (0, 1), (0, 1)):
    library.stand_in_take_over(n_own, is_enabled)
    print(library.stand_in_state())
    times.append(made_anew.value - before)
print(times, file=sys.stderr)
