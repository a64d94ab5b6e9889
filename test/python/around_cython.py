# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Python calls Cython calls Python: writes down the Python lines that the interpreter itself has at
each leak. Functions of Cython are native ones: they have no frame."""

import json
import os
import sys

import between

truth = {}


def leak():
    frame, frames = sys._getframe(), []
    size = 50000 + len(truth)
    truth[size] = frames
    while frame:
        code = frame.f_code
        name = code.co_qualname if hasattr(code, "co_qualname") else code.co_name
        frames.append([name, code.co_filename, frame.f_lineno if frames else LEAK_LINE])
        frame = frame.f_back
    between.leak(size)  # line: leak


def inner():
    leak()
    between.call(lambda: leak())


def outer(n):
    if n:
        return between.call(lambda: outer(n - 1))
    between.Caller().call(inner)
    for _ in between.generate(leak):
        leak()
    sorted(range(2), key=lambda _: between.call(leak) or 0)


LEAK_LINE = next(i for i, line in enumerate(open(__file__), 1) if line.endswith("# line: leak\n"))
between.call(leak)
outer(3)
with open(sys.argv[1], "w") as file:
    json.dump(list(truth.items()), file)
os._exit(0)
