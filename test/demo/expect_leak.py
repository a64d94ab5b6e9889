# SPDX-License-Identifier: Apache-2.0 OR MIT
"""expect_leak.py LEAKS.json SOURCE.c: fails when the leak planted in SOURCE.c is not reported with its file and line."""

import json
import pathlib
import re
import sys

MARK = "the planted leak"
STEPS = 400  # as in train.py: one block a step
BLOCK_BYTES = 4096


def main(report_path, source_path):
    source = pathlib.Path(source_path)
    lines = source.read_text().splitlines()
    planted = next(i for i, line in enumerate(lines) if MARK in line)
    function = next(m[1] for line in reversed(lines[:planted]) if (m := re.match(r".*?(\w+)\(void\)$", line)))
    report = json.loads(pathlib.Path(report_path).read_text())
    for leak in report["leaks"]:
        for frame in leak["stack"]:
            if frame.get("function") == function and pathlib.Path(frame.get("file") or "").name == source.name:
                return judge(leak, frame, planted + 1)
    sys.exit(f"the demo failed: no leak in {function} ({source.name}:{planted + 1}) was reported")


def judge(leak, frame, line):
    found = f"{frame['function']} ({frame['file']}:{frame['line']}): {leak['bytes']} bytes in {leak['blocks']} blocks"
    if frame["line"] != line or leak["blocks"] != STEPS or leak["bytes"] != STEPS * BLOCK_BYTES:
        sys.exit(f"the demo failed: expected line {line}, {STEPS * BLOCK_BYTES} bytes in {STEPS} blocks; found {found}")
    print(f"The planted leak was found: {found}")


main(*sys.argv[1:])
