#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What Python keeps on purpose is no leak, and what a program keeps is: rules that are built in hide the first and never the
second.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/kept.py"
AT_LEAST = {"make_classes": 3000 * 900, "import_modules": 300 * 20 * 1800, "run_modules": 300 * 20 * 1800,
            "intern_names": 400_000 * 24}
TIMEOUT_S = 240


@case
def what_a_program_makes_again_and_again_is_reported():
    result, output = record([sys.executable, PROGRAM, scratch("modules")])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    shown, whole = leaks(output), leaks(output, "--no-default-suppressions")
    for function, at_least in AT_LEAST.items():
        found, there = (total(entries_through(report["leaks"], function)) for report in (shown, whole))
        assert there > at_least, f"{function} has kept {there} bytes"
        # Of tables that the interpreter has one of, some of the room was added there.
        assert found > 0.99 * there, f"{function}: {found} of {there} bytes are reported, suppressed {shown['suppressed']}"
    hidden = {entry["rule"] for entry in shown["suppressed"]["by"] if entry["kind"] == "import"}
    assert hidden, "no rule for imports counts for those of the program's own start"


def is_silent(python, *arguments):
    result, output = record([python, *arguments], timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    report = leaks(output)
    innermost = [functions(entry)[:3] for entry in report["leaks"]]
    if innermost and all("" in names for names in innermost):
        raise Skip(f"this interpreter's own functions have no names, which what it keeps is found by: {innermost}")
    expect_equal([(entry["bytes"], functions(entry)) for entry in report["leaks"]], [], "leaks")


@case
def programs_that_do_nothing_have_no_leaks():
    is_silent(sys.executable, "-c", "pass")


for name in ("numpy", "torch"):
    def importing(name=name):
        is_silent(torch_python(), "-c", f"import {name}")

    importing.needs = ["torch"]
    add_case(f"importing_{name}_is_no_leak", importing)

main()
