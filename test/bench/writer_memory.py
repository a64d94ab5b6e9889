# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Memory of the writer: one process that imports PyTorch, and four of them at once in one session."""

import os
import subprocess

from launch_memory import wait_for_all
from results import table
from runs import AGENT, OUTPUT, WORK, adopt_orphans

PROGRAM = """
import subprocess, sys
for child in [subprocess.Popen([sys.executable, "-c", "import torch"]) for _ in range({n})]:
    child.wait()
"""
MANY = 4
TARGET_MIB, TARGET_RATIO = 150, 1.3


def _run(python, n):
    """MiB of the writer at most."""
    subprocess.run(["rm", "-rf", OUTPUT], check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(AGENT), "TORSH_PROFILER_OUTPUT": str(OUTPUT), "TORSH_PROFILER_SUMMARY": "0"}
    program = subprocess.Popen([python, "-c", PROGRAM.format(n=n)], env=env, stdout=subprocess.DEVNULL)
    _, of_writer = wait_for_all(program.pid)
    program.returncode = 0  # it was waited for
    return of_writer


def measure(machine):
    """{processes: MiB}; None without PyTorch."""
    if not machine.torch_python:
        return None
    adopt_orphans()
    return {n: _run(machine.torch_python, n) for n in (1, MANY)}


def section(measured, verdicts):
    one, many = (measured[1], measured[MANY]) if measured else (None, None)
    verdicts.at_most("memory of the writer, one process that imports PyTorch", TARGET_MIB, one, "MiB", "{:.0f}")
    verdicts.at_most(f"memory of the writer, {MANY} such processes at once beside one", TARGET_RATIO,
                     many / one if measured else None, "×", "{:.2f}")
    if not measured:
        return []
    rows = [[str(n), f"{mib:.0f}"] for n, mib in measured.items()]
    return ["## Memory of the writer: processes that import PyTorch at once", ""] + table(["processes", "MiB"], rows)


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
