# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests that wait for each other on one thread, allocate known blocks and use the processor for known times; prints what
each did, in JSON. test/e2e/python/requests_tasks.py compares.

    interleaved.py [tasks]     tasks: without torsh, as tasks of asyncio with names
"""

import asyncio
import contextvars
import ctypes
import functools
import json
import sys
import time

IS_OF_TASKS = sys.argv[1:] == ["tasks"]
if not IS_OF_TASKS:
    import torsh

libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
libc.realloc.restype, libc.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]

BLOCK = 1 << 20  # larger than all that Python itself allocates here
done = {}
leaked = []
mark = contextvars.ContextVar("mark", default=None)


def burn(seconds):
    """Returns how much of the thread's processor time it took."""
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < seconds * 1e9:
        pass
    return time.thread_time_ns() - begin


def allocate(mine, n_bytes):
    block = libc.malloc(n_bytes)
    mine["allocated"] += n_bytes
    return block


async def work(mine, turns, n_bytes, seconds, sleep):
    blocks = []
    for turn in range(turns):
        blocks.append(allocate(mine, n_bytes))
        mine["cpu_ns"] += burn(seconds)
        mark.set((mine["name"], turn))
        await sleep(0)
        assert mark.get() == (mine["name"], turn), "contexts are as without the agent"
    return blocks


async def child(mine, n_bytes):
    await asyncio.sleep(0)
    block = allocate(mine, n_bytes)
    await asyncio.sleep(0)
    libc.free(block)


def on_a_thread(mine, n_bytes):
    mine["cpu_ns"] += burn(0.02)
    libc.free(allocate(mine, n_bytes))


async def serve(name, number, leaks):
    """Each allocates another size, so that one that got a block of another one is seen."""
    mine = done[name + str(number)] = {"name": name, "allocated": 0, "kept": 0, "cpu_ns": 0, "begin": time.monotonic_ns()}
    size = BLOCK + 4096 * number
    blocks = await work(mine, 3 + number % 3, size, 0.01, asyncio.sleep)
    if not IS_OF_TASKS:
        await asyncio.gather(child(mine, 2 * size), child(mine, 3 * size))
        call = functools.partial(contextvars.copy_context().run, on_a_thread, mine, 4 * size)  # asyncio.to_thread is of 3.9
        await asyncio.get_running_loop().run_in_executor(None, call)
    blocks[0] = libc.realloc(blocks[0], size + 8192)
    mine["allocated"] += size + 8192
    await asyncio.sleep(0)
    if leaks:
        leaked.append(blocks.pop())
        mine["kept"] = size
    for block in blocks:
        libc.free(block)
    mine["took"] = time.monotonic_ns() - mine["begin"]


async def route(name, number, leaks=False):
    with torsh.request(name, TRACE % (number + 1)):
        await serve(name, number, leaks)


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e%04x-00f067aa0ba902b7-01"


async def main():
    if IS_OF_TASKS:
        tasks = [asyncio.create_task(serve("clean", n, False), name=f"clean{n}") for n in range(5)]
        tasks += [asyncio.create_task(serve("leaks", n, True), name=f"leaks{n}") for n in range(5, 10)]
        await asyncio.gather(*tasks)
        return
    wrapped = torsh.request("GET /decorated")(serve)
    await asyncio.gather(*(route("GET /clean", n) for n in range(5)), *(route("GET /leaks", n, True) for n in range(5, 10)),
                         *(wrapped("GET /decorated", n, False) for n in range(10, 13)))


asyncio.run(main())
for one in done.values():
    one["process_cpu_ns"] = time.process_time_ns()
print(json.dumps(done), flush=True)
