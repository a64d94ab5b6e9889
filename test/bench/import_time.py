# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `import torch` costs: wall time, and CPU time of the program and of its writer, which fight for the same cores."""

import statistics

from results import table
from runs import BARE, HEAP, NOOP_MODE, OURS, Mode, Options, Program, take_turns

MODES = (BARE, NOOP_MODE, HEAP, OURS)


def measure(machine):
    """{mode: runs}."""
    if not machine.torch_python:
        return {}
    program = Program("import torch", [machine.torch_python, "-c", "import torch"], is_python=True)
    return take_turns(program, [Mode(name, machine) for name in MODES], Options.rounds)


def _medians(runs, figure):
    return {mode: statistics.median(getattr(run, figure) for run in of_mode) for mode, of_mode in runs.items()}


def section(runs, verdicts):
    if not runs:
        return []
    wall, program, both = (_medians(runs, figure) for figure in ("wall_s", "cpu_s", "total_cpu_s"))
    verdicts.at_most("`import torch` with heap and Python, added", 350, 1000 * (wall[HEAP] - wall[BARE]), "ms", "{:.0f}")
    verdicts.at_most("`import torch` with everything", 1.3, wall[OURS] / wall[BARE], "×", "{:.2f}")
    rows = [[mode, f"{wall[mode]:.3f}", f"{wall[mode] / wall[BARE]:.2f}", f"{1000 * (wall[mode] - wall[BARE]):.0f}",
             f"{program[mode]:.3f}", f"{1000 * (program[mode] - program[BARE]):.0f}", f"{both[mode] - program[mode]:.3f}"]
            for mode in runs]
    return ["## `import torch`", ""] + table(
        ["", "wall s", "× bare", "added ms", "program's CPU s", "added CPU ms", "writer's CPU s"], rows)
