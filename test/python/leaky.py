# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Leaks for test/e2e/python/python_frames.py, each of a size of its own, and what doesn't leak."""

import ctypes

import probe

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
kept = []


def keep_bytearrays():
    for _ in range(10):
        kept.append(bytearray(30000))  # line: bytearray


def forget_block():
    libc.malloc(ctypes.c_size_t(31000))  # line: ctypes


def leak_in_extension():
    probe.call(lambda: probe.leak())  # line: extension


def give_back():
    for _ in range(10):
        bytearray(32000)


keep_bytearrays()
forget_block()
leak_in_extension()
give_back()
# What Python itself would free at its end is kept.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
