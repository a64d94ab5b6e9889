# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `import torch` costs: wall time, and CPU time of the program and of its writer, which fight for the same cores."""

from results import table
from runs import BARE, FIRST, HEAP, NOOP_MODE, OURS, Mode, Options, Program, medians, run_once, take_turns

# What the agent keeps between runs: a first run has nothing of it, the others find it.
MODES = (BARE, NOOP_MODE, HEAP, FIRST, OURS)


def measure(machine):
    """{mode: runs}."""
    if not machine.torch_python:
        return {}
    program = Program("import torch", [machine.torch_python, "-c", "import torch"], is_python=True)
    run_once(program, Mode(OURS, machine))
    return take_turns(program, [Mode(name, machine) for name in MODES], Options.rounds)


def section(runs, verdicts):
    if not runs:
        return []
    wall, program, writer = (medians(runs, figure) for figure in ("wall_s", "cpu_s", "writer_cpu_s"))
    verdicts.at_most("`import torch` with heap and Python, added", 350, 1000 * (wall[HEAP] - wall[BARE]), "ms", "{:.0f}",
                     note=f"bare {1000 * wall[BARE]:.0f} ms, no-op {1000 * (wall[NOOP_MODE] - wall[BARE]):+.0f}")
    verdicts.at_most("CPU time of that, the writer's not counted", 350, 1000 * (program[HEAP] - program[BARE]), "ms", "{:.0f}")
    idle = f"no-op {wall[NOOP_MODE] / wall[BARE]:.2f} ×"
    verdicts.at_most("`import torch` with everything, first run", 1.3, wall[FIRST] / wall[BARE], "×", "{:.2f}", note=idle)
    verdicts.at_most("`import torch` with everything, later runs", 1.2, wall[OURS] / wall[BARE], "×", "{:.2f}", note=idle)
    rows = [[mode, f"{wall[mode]:.3f}", f"{wall[mode] / wall[BARE]:.2f}", f"{1000 * (wall[mode] - wall[BARE]):.0f}",
             f"{program[mode]:.3f}", f"{program[mode] / program[BARE]:.2f}", f"{1000 * (program[mode] - program[BARE]):.0f}",
             f"{writer[mode]:.3f}"] for mode in runs]
    return ["## `import torch`", ""] + table(
        ["", "wall s", "× bare", "added ms", "program's CPU s", "× bare", "added CPU ms", "writer's CPU s"], rows)


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
