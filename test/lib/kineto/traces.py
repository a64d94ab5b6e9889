# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Traces as PyTorch's profiler (Kineto) writes them, of several ranks, made up from a seed: streams that overlap, kernels of NCCL
with what PyTorch says of them, copies, launches, synchronisations, annotations and what else such traces have. Each step ends
with collectives that all ranks leave together, and one rank may enter late.

Kernels take 1 us or more: HTA's rounding gives shorter ones a negative length, and its sums then depend on the order in which
its sort leaves equal starts.

    traces.py FOLDER WORLD STEPS KERNELS

writes them with operators around the launches, and prints how many events they have.
"""

import gzip
import json
import pathlib
import random
import sys

COMPUTE, COPIES, NCCL = 7, 24, 20  # streams
KERNELS = ["ampere_sgemm_128x64_nn", "void at::native::vectorized_elementwise_kernel<4, \"add\">(int, T)", "triton_poi_fused_\u00e9_0",
           "void cudnn::bn_fw_tr_1C11<float>(Sync)", "flash_fwd_kernel(Flash_fwd_params)"]
COLLECTIVES = {"allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
               "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}
SIZES = {"Float": 4, "BFloat16": 2}


class Rank:
    """The events of one rank; times are us of its own clock."""

    def __init__(self, seed, rank, start_us, is_whole):
        self.random, self.rank, self.is_whole = random.Random(f"{seed} {rank}"), rank, is_whole
        self.events, self.correlation, self.start_us = [], 1000, start_us
        self.free_at = {COMPUTE: 0.0, COPIES: 0.0, NCCL: 0.0}
        self.collectives, self.computed = [], []  # (name, group, bytes, start, end), (start, end)

    def at(self, us):
        us += self.start_us
        return round(us) if self.is_whole else round(us, 3)

    def length(self, us):
        return round(us) if self.is_whole else round(us, 3)

    def put(self, name, category, at, us, **arguments):
        event = {"ph": "X", "cat": category, "name": name, "pid": 100 + self.rank, "tid": 7, "ts": self.at(at), "dur": self.length(us)}
        if arguments:
            event["args"] = {key.replace("_", " ") if key[0].isupper() else key: value for key, value in arguments.items()}
        self.events.append(event)
        return event["ts"] - self.start_us, event["ts"] - self.start_us + event["dur"]

    def launch(self, name, category, stream, host_at, us, not_before=0.0, runtime="cudaLaunchKernel", is_linked=True, **arguments):
        """Puts a launch and its kernel, which begins when its stream is free. Returns when it began and ended."""
        self.correlation += 1
        if is_linked:
            self.put(runtime, "cuda_runtime", host_at, 4, correlation=self.correlation)
        begin = max(host_at + 6, self.free_at[stream] + self.random.choice([1, 2, 45]), not_before)
        span = self.put(name, category, begin, us, device=0, stream=stream, correlation=self.correlation, **arguments)
        # Some kernels of a stream overlap, as graphs show them.
        self.free_at[stream] = span[1] - (us / 2 if self.random.random() < 0.02 else 0)
        return span

    def compute(self, host_at, us):
        name = self.random.choice(KERNELS)
        span = self.launch(name, "kernel", COMPUTE, host_at, us, is_linked=self.random.random() > 0.01)
        if "Sync" not in name:
            self.computed.append(span)

    def copy(self, host_at):
        kind, runtime = self.random.choice([("Memcpy HtoD (Pinned -> Device)", "cudaMemcpyAsync"), ("Memset (Device)", "cudaMemsetAsync")])
        self.launch(kind, "gpu_memcpy" if "cpy" in kind else "gpu_memset", COPIES, host_at, self.random.uniform(3, 60), runtime=runtime)

    def collect(self, sequence, host_at, begin, end, name, elements, kind, world):
        """A collective that is entered and left at these times."""
        arguments = {"Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "Group size": world, "dtype": kind,
                     "Process Group Name": "0", "Process Group Ranks": str(list(range(world))), "Seq": sequence}
        self.correlation += 1
        self.put("cudaLaunchKernelExC", "cuda_runtime", host_at, 5, correlation=self.correlation)
        self.put(COLLECTIVES[name], "kernel", begin, end - begin, device=0, stream=NCCL, correlation=self.correlation)
        self.events[-1]["args"].update(arguments)
        event = self.events[-1]
        start = event["ts"] - self.start_us
        self.collectives.append((name, elements * SIZES[kind], start, start + event["dur"]))

    def clutter(self, at):
        """What other events such traces have."""
        self.put("aten::mm", "cpu_op", at, 20, **{"External id": 5, "Input Dims": [[2, [3]], []], "Concrete Inputs": ["\\\"", "{"]})
        self.put("cudaStreamSynchronize", "cuda_runtime", at + 3, 2, correlation=self.correlation + 1_000_000)
        self.put("Stream Sync", "cuda_sync", at + 3, 2, stream=COMPUTE, correlation=self.correlation + 1_000_000)
        self.put("Context Sync", "cuda_sync", at + 3, 2, stream=-1, correlation=self.correlation + 1_000_001)
        self.put("## forward ##", "gpu_user_annotation", at, 15)
        self.events.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": self.at(at), "args": {"Bytes": -512}})
        self.events.append({"ph": "s", "id": 5, "pid": 1, "tid": 1, "ts": self.at(at), "cat": "ac2g", "name": "ac2g"})
        self.put("PyTorch Profiler (0)", "Trace", at - 50, 9)


def make_ranks(seed, world=3, steps=4, kernels=40, is_whole=False, late=None, late_us=2000.0, has_operators=False):
    """Ranks on clocks of their own; `late` computes longer in each step. has_operators: three around each launch, as usual."""
    common = random.Random(seed)
    ranks = [Rank(seed, i, 4_458_676_524_648 + 10_000_000 * i, is_whole) for i in range(world)]
    now, sequence = 100.0, 0
    for step in range(steps):
        for rank in ranks:
            rank.step_at, host = now, now
            for _ in range(kernels):
                host += rank.random.uniform(2, 25)
                if has_operators:
                    for name in ("aten::linear", "aten::addmm", "aten::mm"):
                        rank.put(name, "cpu_op", host - 2, 9, **{"External id": rank.correlation, "Ev Idx": len(rank.events),
                                 "Input Dims": [[64, 512], [512, 512], []], "Input type": ["float", "float", "Scalar"]})
                rank.compute(host, 1 + rank.random.expovariate(1 / 30))
                if rank.random.random() < 0.1:
                    rank.copy(host)
            rank.clutter(now + 1)
            if rank.rank == late:
                rank.compute(host, late_us)
            rank.host = host
        for _ in range(3):
            sequence += 1
            name, kind, elements = common.choice(list(COLLECTIVES)), common.choice(list(SIZES)), common.choice([1 << 12, 3 << 18])
            transfer = common.uniform(80, 400)
            begins = [max(rank.free_at[NCCL], rank.free_at[COMPUTE] - rank.random.uniform(0, 60), rank.host + 30) + 3 for rank in ranks]
            end = max(begins) + transfer
            for rank, begin in zip(ranks, begins):
                rank.collect(sequence, rank.host, begin, end, name, elements, kind, world)
                rank.free_at[NCCL] = end
                rank.host += 40
        now = end + 50
        for rank in ranks:
            rank.put(f"ProfilerStep#{step + 10}", "user_annotation", rank.step_at, now - rank.step_at - 10)
    return ranks


def write_trace(path, rank, world, events=None, head=None):
    """Writes a trace as Kineto does; `head` replaces what stands before its events."""
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank.rank, "world_size": world},
            "deviceProperties": [{"id": 0, "name": "made up", "totalGlobalMem": 1 << 34}]} if head is None else head
    text = json.dumps({**head, "traceEvents": rank.events if events is None else events, "traceName": str(path)}, indent=1)
    with (gzip.open(path, "wt", compresslevel=3) if path.suffix == ".gz" else open(path, "w")) as file:
        file.write(text)
    return path


def write_traces(folder, ranks):
    return [write_trace(folder / f"rank{rank.rank}.json.gz", rank, len(ranks)) for rank in ranks]


if __name__ == "__main__":
    made = make_ranks("by hand", *map(int, sys.argv[2:5]), has_operators=True)
    write_traces(pathlib.Path(sys.argv[1]), made)
    print(sum(len(rank.events) for rank in made))
