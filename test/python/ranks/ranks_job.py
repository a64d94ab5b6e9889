# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A training of several ranks over gloo, one of which may be late:

    ranks_job.py FOLDER WORLD STEPS [KIND RANK [GROUP]]

starts the ranks, which meet in a file of FOLDER: a port that is free now may be another's in a moment. KIND is what
RANK does beside the training in each step. FOLDER/RANK.json gets when each backward pass began, by CLOCK_MONOTONIC in ns:
its end is the only collective of a step. FOLDER/RANK.waited gets how long the rank's threads were runnable without a CPU.
GROUP is the folder of a control group with a quota of CPU time, for RANK alone: "throttled" has it in its steps, "outside"
before and after them, where it sleeps. FOLDER/RANK.throttled gets its cpu.stat.
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


def stay_on_cpu(cpu, niceness=0):
    """All threads of the process, and what they start."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cpu})
        os.setpriority(os.PRIO_PROCESS, int(thread), os.getpriority(os.PRIO_PROCESS, int(thread)) + niceness)


def crowd(others=2, niceness=10):
    """
    From here on the rank has one CPU, on which others run all the time, with more weight, until it ends: whatever else the
    machine does, it has less of that CPU than the other ranks of theirs.
    """
    cpu = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, [{cpu}])\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    spinning = [subprocess.Popen([sys.executable, "-c", spin], env={**bare, "TORSH_PROFILER_ENABLED": "0"})
                for _ in range(others)]
    stay_on_cpu(cpu, niceness)
    return spinning


def waited_ns():
    """That the process's threads were runnable without a CPU; those that ended are not in it."""
    sum_ns = 0
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/schedstat", encoding="utf-8") as file:
            sum_ns += int(file.read().split()[1])
    return sum_ns


def set_quota(group, quota_us, period_us=20000):
    """None: no quota."""
    if os.path.exists(f"{group}/cpu.max"):
        with open(f"{group}/cpu.max", "w", encoding="utf-8") as file:
            file.write(f"{quota_us or 'max'} {period_us}")
        return
    with open(f"{group}/cpu.cfs_period_us", "w", encoding="utf-8") as file:
        file.write(str(period_us))
    with open(f"{group}/cpu.cfs_quota_us", "w", encoding="utf-8") as file:
        file.write(str(quota_us or -1))


def throttling_us(group):
    with open(f"{group}/cpu.stat", encoding="utf-8") as file:
        stat = dict(line.split() for line in file)
    return int(stat["throttled_time"]) // 1000 if "throttled_time" in stat else int(stat["throttled_usec"])


def be_throttled(group, time_us=2000000):
    """Computes with a quota until it was throttled for so long."""
    before_us = throttling_us(group)
    set_quota(group, 1000)
    while throttling_us(group) < before_us + time_us:
        compute_alike(10000)
    set_quota(group, None)


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
        "outside": lambda: time.sleep(LATE_S),
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


def write_truth(folder, rank, began, group):
    with open(f"{folder}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(began, file)
    with open(f"{folder}/{rank}.waited", "w", encoding="utf-8") as file:
        file.write(str(waited_ns()))
    if group:
        set_quota(group, None)
        with open(f"{group}/cpu.stat", encoding="utf-8") as stat, open(f"{folder}/{rank}.throttled", "w", encoding="utf-8") as file:
            file.write(stat.read())


def train(folder, rank, steps, kind, group, crowds):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if kind == "outside":
        be_throttled(group)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    late, large = lateness(kind, torch)
    crowding = []
    if kind in ("crowded", "throttled", "even"):
        late = compute_alike
    if kind == "crowded":
        crowding = crowd()
    if kind == "even" and crowds:
        stay_on_cpu(min(os.sched_getaffinity(0)))
    if kind == "throttled" and group:
        set_quota(group, 1000)
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
    if kind == "outside":
        be_throttled(group)
    write_truth(folder, rank, began, group)
    for other in crowding:
        other.kill()
        other.wait()
    dist.destroy_process_group()


def enter_group(late, rank):
    """What stands before the command of a rank."""
    if len(late) < 3 or int(late[1]) != rank:
        return []
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', late[2]]


def main():
    folder, world, steps, *late = sys.argv[1:]
    if "RANK" in os.environ:
        rank = int(os.environ["RANK"])
        is_late = bool(late) and int(late[1]) == rank
        others = "even" if late and late[0] in ("crowded", "throttled") else None
        return train(folder, rank, int(steps), late[0] if is_late else others, late[2] if is_late and late[2:] else None,
                     "crowded" in late)
    ranks = [subprocess.Popen([*enter_group(late, rank), sys.executable, __file__, *sys.argv[1:]],
                              env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": world,
                                   "OMP_NUM_THREADS": "1"}) for rank in range(int(world))]
    return max([rank.wait() for rank in ranks])


if __name__ == "__main__":
    sys.exit(main())
