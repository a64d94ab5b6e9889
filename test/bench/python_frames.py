# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What frames of Python cost: in the stacks of blocks, and in code that allocates nothing."""

from pairs import printed_ns
from results import cell, table
from runs import BARE, NATIVE, OURS, WORKLOADS, Mode, Options, Program, scaled, take_turns

MODES = (BARE, NATIVE, OURS)
LIMITS = {10: 20, 30: 30, 80: 50}  # ns that frames of Python may add, by depth
DEPTHS = (3, *LIMITS)


def measure(machine):
    """{depth: {mode: ns a block}}, and {mode: ns a call} of code that allocates nothing, the lowest of all runs."""
    modes = [Mode(name, machine) for name in MODES]

    def lowest(name, command):
        runs = take_turns(Program(name, [machine.python, *command]), modes, 2 * Options.rounds)
        return {mode: min(map(printed_ns, of_mode)) for mode, of_mode in runs.items()}

    blocks = {depth: lowest(f"python, depth {depth}", [WORKLOADS / "python_depth.py", depth, scaled(60_000)])
              for depth in DEPTHS}
    return blocks, lowest("python, calls", [WORKLOADS / "python_calls.py", 12 if Options.is_smoke else 24])


def section(blocks, calls, verdicts):
    rows = [[f"{depth} frames deep", *(cell(ns.get(mode)) for mode in MODES), cell(ns[OURS] - ns[NATIVE])]
            for depth, ns in blocks.items()]
    rows.append(["calls, nothing allocated", *(cell(calls.get(mode)) for mode in MODES), cell(calls[OURS] - calls[NATIVE])])
    for depth, limit in LIMITS.items():
        ns = blocks[depth]
        verdicts.at_most(f"added by frames of Python, {depth} deep", limit, ns[OURS] - ns[NATIVE], "ns")
    verdicts.at_most("a call of Python that allocates nothing", 1.03, calls[OURS] / calls[BARE], "×", "{:.3f}")
    return ["## Frames of Python: ns per block that a line of Python allocates and frees, lowest of all runs", ""] + table(
        ["", *MODES, "added by frames of Python"], rows)


def sections(machine, verdicts):
    return section(*measure(machine), verdicts)
