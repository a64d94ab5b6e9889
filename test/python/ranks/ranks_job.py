# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A training of several ranks over gloo, one of which may be late:

    ranks_job.py FOLDER WORLD STEPS [KIND RANK]

starts the ranks, which meet in a file of FOLDER: a port that is free now may be another's in a moment. KIND is what
RANK does beside the training in each step. FOLDER/RANK.json gets when each backward pass began, by CLOCK_MONOTONIC in ns:
its end is the only collective of a step.
"""
import gc
import json
import mmap
import os
import subprocess
import sys
import time

LATE_S = 0.03


def until_late(work):
    """Works for as long, again and again, whatever one piece takes on this machine."""
    end = time.perf_counter() + LATE_S
    while time.perf_counter() < end:
        work()


def compute_alike(rounds=400000):
    """As much on each rank, whatever it takes: some 10 ms where a CPU is free."""
    for _ in range(rounds):
        pass


def crowd(others=6):
    """From here on the rank has one CPU, on which others run all the time, until it ends."""
    cpu = {max(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, cpu)
    spin = f"import os\nos.sched_setaffinity(0, {cpu})\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return [subprocess.Popen([sys.executable, "-c", spin], env={**bare, "TORSH_PROFILER_ENABLED": "0"}) for _ in range(others)]


def touch_pages(bytes_=b"1" * (4 << 20)):
    with mmap.mmap(-1, len(bytes_), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        area.madvise(mmap.MADV_NOHUGEPAGE)  # else a few faults bring all of it
        area.write(bytes_)


def lateness(kind, torch):
    """What a late rank does in a step; None: it loads data slowly instead, or nothing."""
    small, large = torch.ones(64, 64), torch.ones(900, 900)

    def collect():
        held = [[] for _ in range(1000)]
        for item in held:
            item.append(held)
        del item, held
        gc.collect()
    return {
        "sleep": lambda: time.sleep(LATE_S),
        "gc": lambda: until_late(collect),
        "more_compute": lambda: until_late(lambda: torch.mm(small, small)),
        "slow_compute": None,
        "allocate": lambda: until_late(lambda: [bytearray(700) for _ in range(1000)]),
        "faults": lambda: until_late(touch_pages),
    }.get(kind), large


def batches(torch, steps, is_slow):
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return steps * 16

        def __getitem__(self, at):
            if is_slow and at % 16 == 0:
                time.sleep(LATE_S)
            return torch.ones(64)
    return torch.utils.data.DataLoader(Rows(), batch_size=16)


def train(folder, rank, steps, kind):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    late, large = lateness(kind, torch)
    if kind in ("crowded", "even"):
        late = compute_alike
    crowding = crowd() if kind == "crowded" else []
    gc.disable()  # an automatic collection would be another rank's lateness
    began, small = [], torch.ones(10, 10)
    for batch in batches(torch, steps, kind == "data"):
        optimizer.zero_grad()
        if late:
            late()
        once = large if kind == "slow_compute" else small
        torch.mm(once, once)  # on all ranks, with the same number of operators
        loss = model(batch).sum()
        began.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        loss.backward()
        optimizer.step()
    dist.barrier()
    with open(f"{folder}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(began, file)
    with open("/proc/self/schedstat", encoding="utf-8") as stat, open(f"{folder}/{rank}.waited", "w", encoding="utf-8") as file:
        file.write(stat.read().split()[1])  # ns
    for other in crowding:
        other.kill()
        other.wait()
    dist.destroy_process_group()


def main():
    folder, world, steps, *late = sys.argv[1:]
    if "RANK" in os.environ:
        rank = int(os.environ["RANK"])
        others = "even" if late and late[0] == "crowded" else None
        return train(folder, rank, int(steps), late[0] if late and int(late[1]) == rank else others)
    ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:]],
                              env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": world,
                                   "OMP_NUM_THREADS": "1"}) for rank in range(int(world))]
    return max([rank.wait() for rank in ranks])


if __name__ == "__main__":
    sys.exit(main())
