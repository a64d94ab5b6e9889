# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A rank of a job over the backend "ucc", which is made by a plugin, as torch_ucc makes it where PyTorch was built without UCC. Here
the plugin communicates by gloo:

    backend_ranks.py

prints what PyTorch calls the backend.
"""
import os

import torch
import torch.distributed as dist

dist.Backend.register_backend("ucc", lambda store, rank, size, timeout: dist.ProcessGroupGloo(store, rank, size, timeout),
                              devices=["cpu"])
dist.init_process_group("ucc")
pair = dist.new_group([0, 1], backend="gloo")
for _ in range(3):
    dist.all_reduce(torch.ones(8))
    dist.all_reduce(torch.ones(8), group=pair, async_op=True).wait()
# At once: torchrun has its ranks write each argument of print by itself, and another rank writes to the same pipe.
os.write(1, f"backends {dist.get_backend()} {dist.get_backend(pair)}\n".encode())
dist.destroy_process_group()
