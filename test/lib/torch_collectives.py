# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Two processes that do collectives over gloo, each under torch.profiler:

    torch_collectives.py FOLDER [RANK]

Without RANK it starts both, one after the other has a process group there. FOLDER gets for each rank what it did, in its
own words, and torch.profiler's trace.
"""
import json
import os
import pathlib
import subprocess
import sys

WORLD = 2


def start(folder):
    command = [sys.executable, __file__, folder]
    return max([child.wait() for child in [subprocess.Popen([*command, str(rank)]) for rank in range(WORLD)]])


def communicate(torch, dist, groups):
    """Yields what each collective is, its numbers of elements in and out, their type, and its group."""
    first, mine = groups
    dist.all_reduce(torch.ones(3, 7))
    yield "allreduce", 21, 21, "Float", first
    dist.broadcast(torch.zeros(5, dtype=torch.int64), 0)
    yield "broadcast", 5, 5, "Long", first
    dist.all_gather([torch.zeros(2, 2), torch.zeros(2, 2)], torch.ones(2, 2), group=mine)
    yield "allgather", 4, 8, "Float", mine
    dist.all_to_all_single(torch.zeros(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64), group=mine)
    yield "alltoall_base", 6, 6, "Double", mine
    dist.reduce(torch.ones(9, dtype=torch.int32), 1)
    yield "reduce", 9, 9, "Int", first
    try:
        dist.reduce_scatter(torch.zeros(4), [torch.ones(4), torch.ones(4)])
    except RuntimeError:
        pass  # gloo has it in some versions
    yield "reduce_scatter", 8, 4, "Float", first
    dist.barrier(group=mine)
    yield "barrier", 0, 0, None, mine


def main():
    folder, *rank = sys.argv[1:]
    if not rank:
        return start(folder)
    import torch
    import torch.distributed as dist

    os.environ.update(RANK=rank[0], WORLD_SIZE=str(WORLD))
    # They meet in a file: a port that is free now may be another's in a moment.
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=int(rank[0]), world_size=WORLD)
    groups = dist.group.WORLD, dist.new_group(list(range(WORLD)))
    torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        with torch.profiler.record_function("the window"):
            done = [[*what, [group.group_name, getattr(group, "group_desc", None)]]
                    for *what, group in communicate(torch, dist, groups)]
    profiler.export_chrome_trace(str(pathlib.Path(folder) / f"trace-{rank[0]}.json"))
    (pathlib.Path(folder) / f"done-{rank[0]}.json").write_text(json.dumps({"pid": os.getpid(), "done": done}))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
