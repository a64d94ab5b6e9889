#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
real_nccl.py LIBRARY: the vendor's libnccl itself finds its profiler plugin, makes it a communicator and
reports a collective of the program's, without any device: its own functions for that are called by the
addresses that its symbol table has. Prints the mask of events that the plugin asked for.
"""

import ctypes
import pathlib
import re
import subprocess
import sys

ROOM = 64 << 20  # for a communicator of zeroes: more than any version's
LIBRARY = str(pathlib.Path(sys.argv[1]).resolve())
nccl = ctypes.CDLL(LIBRARY)
base = min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if line.rstrip().endswith(LIBRARY))
symbols = {}
for line in subprocess.run(["readelf", "-sW", LIBRARY], capture_output=True, text=True, check=True).stdout.splitlines():
    found = re.match(r"\s*\d+: ([0-9a-f]+)\s+\S+ (FUNC|OBJECT)\s+\S+\s+\S+\s+\d+ (\S+)$", line)
    if found:
        symbols[found[3]] = base + int(found[1], 16)


class Info(ctypes.Structure):
    """ncclInfo, as far as the reports read it."""
    _fields_ = [("function", ctypes.c_int), ("name", ctypes.c_char_p), ("from", ctypes.c_void_p), ("to", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("datatype", ctypes.c_int), ("operation", ctypes.c_int), ("root", ctypes.c_int),
                ("communicator", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("more", ctypes.c_char * 4096)]


def call(name, *arguments):
    result = ctypes.CFUNCTYPE(ctypes.c_int)(symbols[name])(*arguments)
    if result:
        sys.exit(f"{name}: {result}")


communicator = ctypes.create_string_buffer(ROOM)
info = Info(function=4, name=b"AllReduce", count=1234, datatype=7, root=0, communicator=ctypes.addressof(communicator), stream=0x77)
call("_Z22ncclProfilerPluginInitP8ncclComm", communicator)
print(ctypes.c_int.from_address(symbols["ncclProfilerEventMask"]).value)
call("_Z30ncclProfilerStartGroupApiEventP8ncclInfob", ctypes.byref(info), ctypes.c_bool(False))
call("_Z29ncclProfilerStartCollApiEventP8ncclInfob", ctypes.byref(info), ctypes.c_bool(False))
call("_Z28ncclProfilerStopCollApiEventv")
call("_Z29ncclProfilerStopGroupApiEventv")
call("_Z26ncclProfilerPluginFinalizeP8ncclComm", communicator)
