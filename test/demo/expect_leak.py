# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
expect_leak.py LEAKS.json GROWTH.json SOURCE.c: fails when the leak planted in SOURCE.c is not reported with its file and
line, and as what grows by one block a step.
"""

import json
import pathlib
import re
import sys

MARK = "the planted leak"
STEPS = 400  # as in train.py: one block a step
BLOCK_BYTES = 65536


def is_planted(frame, function, source):
    return frame.get("function") == function and pathlib.Path(frame.get("file") or "").name == source.name


def expect_growth(path, function, source):
    found = [grown for grown in json.loads(pathlib.Path(path).read_text())["growth"]
             if any(is_planted(frame, function, source) for frame in grown["stack"])]
    blocks = sum(grown["blocks_per_step"] for grown in found)
    if abs(blocks - 1) > 0.02:
        sys.exit(f"the demo failed: {function} leaks one block a step, and {blocks:.3g} were reported")
    print(f"and so was its growth: {sum(grown['bytes_per_step'] for grown in found):.0f} bytes a step")


def main(report_path, growth_path, source_path):
    source = pathlib.Path(source_path)
    lines = source.read_text().splitlines()
    planted = next(i for i, line in enumerate(lines) if MARK in line)
    function = next(m[1] for line in reversed(lines[:planted]) if (m := re.match(r".*?(\w+)\(void\)$", line)))
    report = json.loads(pathlib.Path(report_path).read_text())
    # The interpreter calls it from more than one place of its own: several stacks.
    found = [(leak, frame) for leak in report["leaks"] for frame in leak["stack"] if is_planted(frame, function, source)]
    if not found:
        sys.exit(f"the demo failed: no leak in {function} ({source.name}:{planted + 1}) was reported")
    blocks, n_bytes = (sum(leak[what] for leak, _ in found) for what in ("blocks", "bytes"))
    printed = ", ".join(sorted({f"{frame['function']} ({frame['file']}:{frame['line']})" for _, frame in found}))
    if any(frame["line"] != planted + 1 for _, frame in found) or (blocks, n_bytes) != (STEPS, STEPS * BLOCK_BYTES):
        sys.exit(f"the demo failed: expected line {planted + 1}, {STEPS * BLOCK_BYTES} bytes in {STEPS} blocks; "
                 f"found {printed}, {n_bytes} bytes in {blocks} blocks")
    print(f"The planted leak was found: {printed}, {n_bytes} bytes in {blocks} blocks")
    expect_growth(growth_path, function, source)


main(*sys.argv[1:])
