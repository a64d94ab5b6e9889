# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A rank of a job that torchrun started: collectives and messages over gloo, in two groups, synchronous and not.

    gloo_ranks.py FOLDER

FOLDER gets for each rank what it did, in its own words: group, kind, name, bytes in and out, peer, and the time that it
spent in wait() itself.
"""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

done = []


def wrote(group, kind, name, in_bytes, out_bytes, peer=None, waits_ns=None):
    done.append({"group": group.group_name, "kind": kind, "name": name, "in_bytes": in_bytes, "out_bytes": out_bytes, "peer": peer,
                 "wait_ns": waits_ns})


def timed_wait(work):
    begin = time.monotonic_ns()
    work.wait()
    return time.monotonic_ns() - begin


def collectives(rank, group, size, rounds):
    for n in range(1, rounds + 1):
        dist.all_reduce(torch.ones(n * 100), group=group)
        wrote(group, "collective", "allreduce", n * 400, n * 400)
        if rank == 3 and n == 2:
            time.sleep(0.2)  # the straggler, which the others wait for
        work = dist.all_reduce(torch.ones(n, dtype=torch.float64), group=group, async_op=True)
        wrote(group, "collective", "allreduce", n * 8, n * 8, waits_ns=timed_wait(work))
        dist.all_gather([torch.zeros(n, dtype=torch.int8) for _ in range(size)], torch.zeros(n, dtype=torch.int8), group=group)
        wrote(group, "collective", "allgather", n, n * size)
        dist.barrier(group=group)
        wrote(group, "collective", "barrier", 0, 0)


def messages(rank, size, world):
    for n in range(1, 4):
        work = dist.isend(torch.ones(n * 5), (rank + 1) % size, tag=7)
        wrote(world, "send", "send", n * 20, 0, (rank + 1) % size)
        dist.recv(torch.zeros(n * 5), (rank - 1) % size, tag=7)
        wrote(world, "receive", "recv", 0, n * 20, (rank - 1) % size)
        work.wait()


def main():
    folder = pathlib.Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    collectives(rank, dist.group.WORLD, size, 3)
    collectives(rank, halves[rank // 2], 2, 2)
    messages(rank, size, dist.group.WORLD)
    dist.barrier()
    wrote(dist.group.WORLD, "collective", "barrier", 0, 0)
    (folder / f"done-{rank}.json").write_text(json.dumps({"pid": os.getpid(), "done": done}))
    dist.destroy_process_group()


main()
