# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Greenlets with requests that switch to each other; prints what each allocated and kept, in JSON."""

import ctypes
import json

import greenlet

import torsh

libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]

done, seen = {}, []


def allocate(name, n_bytes):
    done[name]["allocated"] += n_bytes
    return libc.malloc(n_bytes)


def serve(name, n_bytes, keeps):
    done[name] = {"allocated": 0, "kept": n_bytes if keeps else 0}
    with torsh.request(name):
        first = allocate(name, n_bytes)
        main.switch()
        second = allocate(name, 3 * n_bytes)
        main.switch()
        libc.free(second)
        if not keeps:
            libc.free(first)


main = greenlet.getcurrent()
trace = lambda event, arguments: seen.append(event)  # noqa: E731
greenlet.settrace(trace)
served = [greenlet.greenlet(serve) for _ in range(3)]
for i, one in enumerate(served):
    one.switch(f"request {i}", (1 << 20) + 4096 * i, i == 1)
libc.free(libc.malloc(9 << 20))  # nobody's
for _ in range(2):
    for one in served:
        one.switch()
assert seen and greenlet.gettrace() is trace, "the program's own trace function stays, and is called"
print(json.dumps(done))
