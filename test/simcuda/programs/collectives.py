#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""collectives.py RANK RANKS MEETING: what a rank does with NCCL, by the library's own functions: each
collective alone, messages in a group, groups of collectives, two communicators, one with a name."""

import ctypes
import os
import pathlib
import sys
import time

FLOAT32, INT64, FLOAT16 = 7, 4, 6
rank, ranks, meeting = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL("libnccl.so.2")


class Unique(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def need(result):
    if result:
        sys.exit(f"error {result}")


def unique(name):
    """The identity that rank 0 makes, the same on all ranks."""
    made, path = Unique(), meeting / name
    if rank == 0:
        need(nccl.ncclGetUniqueId(ctypes.byref(made)))
        path.with_suffix(".new").write_bytes(bytes(made))
        os.rename(path.with_suffix(".new"), path)
    while not path.exists():
        time.sleep(0.01)
    return Unique.from_buffer_copy(path.read_bytes())


def communicator(name):
    made = ctypes.c_void_p()
    need(nccl.ncclCommInitRank(ctypes.byref(made), ranks, unique(name), rank))
    return made


def size(n):
    return ctypes.c_size_t(n)


need(cuda.cuInit(0))
context, stream, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
need(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
need(cuda.cuStreamCreate(ctypes.byref(stream), 1))
need(cuda.cuMemAlloc_v2(ctypes.byref(memory), size(64 << 20)))
world, pair = communicator("world"), communicator("pair")
for i in range(3):
    need(nccl.ncclAllReduce(memory, memory, size(1024 << (i * 4)), FLOAT32, 0, world, stream))
need(nccl.ncclBroadcast(memory, memory, size(77), INT64, 1 % ranks, world, stream))
need(nccl.ncclReduce(memory, memory, size(5), FLOAT16, 0, 0, world, stream))
need(nccl.ncclAllGather(memory, memory, size(33), FLOAT32, world, stream))
need(nccl.ncclAllGather(memory, memory, size(2 << 20), FLOAT32, world, stream))
need(nccl.ncclReduceScatter(memory, memory, size(9), FLOAT16, 0, world, stream))
for i in range(2):
    need(nccl.ncclGroupStart())
    need(nccl.ncclSend(memory, size(100 + i), FLOAT32, (rank + 1) % ranks, pair, stream))
    need(nccl.ncclRecv(memory, size(200 + i), INT64, (rank - 1) % ranks, pair, stream))
    need(nccl.ncclAllReduce(memory, memory, size(16), FLOAT32, 0, world, stream))
    need(nccl.ncclGroupEnd())
need(cuda.cuCtxSynchronize())
need(nccl.ncclCommDestroy(pair))
need(nccl.ncclCommDestroy(world))
