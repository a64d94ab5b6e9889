# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long a program waits while the writer finds out which of its blocks are lost, for what is read of its memory."""

import json
import statistics
import subprocess
import sys

from results import table
from runs import OUTPUT, OURS, TORSH, Mode, Options, Program, run_once, scaled

FIXED_MS, MS_A_GIB = 150, 1000
GIB = 1 << 30


def programs(machine):
    python = sys.executable
    yield Program("`true`", ["/bin/true"])
    yield Program("`python -c pass`", [python, "-c", "pass"], is_python=True)
    yield Program("a million dicts", [python, "-c", f"kept = [{{'n': i}} for i in range({scaled(1_000_000)})]"], is_python=True)
    yield Program("1 GiB in blocks of 4 KiB", [python, "-c", f"kept = [bytearray(4096) for _ in range({scaled(1 << 18)})]"], is_python=True)
    if machine.torch_python:
        yield Program("`import torch`", [machine.torch_python, "-c", "import torch"], is_python=True)


def last_verdicts():
    """(ms for which it waited, bytes that were read) of the recording's largest process."""
    dump = subprocess.run([TORSH, "dump", OUTPUT], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = [json.loads(line)["verdicts"] for line in dump.splitlines() if line.startswith('{"verdicts"')]
    return max(((of["stopped_ns"] / 1e6, of["read_bytes"]) for of in found if not of.get("reason")), default=None, key=lambda one: one[1])


def measure(machine):
    """{program: (median ms, bytes)}"""
    measured = {}
    for program in programs(machine):
        runs = [last_verdicts() for _ in range(Options.rounds) if run_once(program, Mode(OURS, machine))]
        runs = [run for run in runs if run]
        if runs:
            measured[program.name] = (statistics.median(ms for ms, _ in runs), statistics.median(n for _, n in runs))
    return measured


def allowed_ms(n_bytes):
    return FIXED_MS + MS_A_GIB * n_bytes / GIB


def section(measured, verdicts):
    for name, (ms, n_bytes) in measured.items():
        verdicts.at_most(f"verdicts at the exit of {name}, of {FIXED_MS} ms + 1 s a GiB", 1, ms / allowed_ms(n_bytes), "×", "{:.2f}",
                         note=f"{ms:.0f} ms, {n_bytes / (1 << 20):.0f} MiB read")
    rows = [[name, f"{ms:.1f}", f"{n_bytes / (1 << 20):.1f}", f"{allowed_ms(n_bytes):.0f}"] for name, (ms, n_bytes) in measured.items()]
    return ["## Verdicts at the exit", ""] + table(["", "waits ms", "MiB read", "at most ms"], rows) if rows else []


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
