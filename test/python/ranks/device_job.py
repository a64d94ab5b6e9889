# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A training of two ranks over NCCL, on simulated CUDA libraries, in which one has a slow device:

    device_job.py FOLDER STEPS SLOW

starts the ranks; the kernels that multiply matrices take SLOW_NS on rank SLOW (-1: on none) and FAST_NS elsewhere. Simulated
ranks don't wait for each other in a collective: its kernel lasts as long as it would if they did, and the ranks meet after each
step. FOLDER/RANK.jsonl gets the simulation's log.
"""
import os
import subprocess
import sys

SLOW_NS, FAST_NS, TRANSFER_NS = 20000000, 1000000, 5000000
PRODUCTS = 2  # of a step, before its collective


def train(folder, rank, steps):
    import torch
    import torch.distributed as dist

    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=2)
    weights = torch.ones(64, 64, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.01)
    inputs = torch.ones(64, 64, device="cuda")
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.mm(inputs, weights).sum()
        loss.backward()
        dist.all_reduce(weights.grad)
        optimizer.step()
        torch.cuda.synchronize()
        store.set(f"step {step} of {rank}", "done")
        store.wait([f"step {step} of {1 - rank}"])
    dist.destroy_process_group()


def main():
    folder, steps, slow = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if "RANK" in os.environ:
        return train(folder, int(os.environ["RANK"]), steps)
    ranks = []
    for rank in range(2):
        product_ns = SLOW_NS if rank == slow else FAST_NS
        transfer_ns = TRANSFER_NS + (PRODUCTS * (SLOW_NS - FAST_NS) if slow >= 0 and rank != slow else 0)
        ranks.append(subprocess.Popen([sys.executable, "-W", "ignore", __file__, *sys.argv[1:]], env={
            **os.environ, "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1",
            "SIMCUDA_LOG": f"{folder}/{rank}.jsonl",
            "SIMCUDA_KERNELS": f"*gemm*={product_ns},*AllReduce*={transfer_ns}"}))
    return max([rank.wait() for rank in ranks])


if __name__ == "__main__":
    sys.exit(main())
