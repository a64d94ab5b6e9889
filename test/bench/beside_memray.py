# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Python programs beside memray: what both add to the time, and whether both saw the same, in two ways of looking: the C
heap as it is, and each object of Python's own allocators.
"""

import json

from results import added_ratio, cell, table
from runs import (BARE, MEMRAY, MEMRAY_OBJECTS, MEMRAY_OUTPUT, OURS, OURS_OBJECTS, OUTPUT, TORSH, WORK, WORKLOADS, Mode,
                  Options, Program, medians, output_of, run_once, scaled, take_turns)

# ours, theirs, in words, how many times less we may add
WAYS = ((OURS, MEMRAY, "the C heap, memray --native", 12),
        (OURS_OBJECTS, MEMRAY_OBJECTS, "each object, memray --native --trace-python-allocators", 8))
# Counting takes memray as long as measuring; what these have more than an import is seen in the others.
UNCOUNTED = ("torch MLP", "torch CNN")


def python_programs(machine):
    python, torch = machine.python, machine.torch_python

    def workload(name, interpreter, script, *arguments):
        return Program(name, [interpreter, WORKLOADS / script, *arguments], is_python=True)

    programs = [workload("json", python, "json_round_trip.py", scaled(200)),
                workload("sqlite", python, "sqlite_queries.py", scaled(80)),
                workload("regex", python, "regex_scan.py", scaled(150)),
                workload("classes", python, "objects.py", scaled(120))]
    if machine.numpy_python:
        programs.append(workload("numpy", machine.numpy_python, "arrays.py", scaled(60)))
    if torch:
        programs += [workload("import torch", torch, "import_torch.py"),
                     workload("torch MLP", torch, "train.py", scaled(100)),
                     workload("torch CNN", torch, "cnn.py", scaled(40))]
    return programs


# ---- what was seen ----------------------------------------------------------------------------------------------------

def blocks_of_memray(python, machine):
    """Blocks given out, the calls of mmap left out: we count those as mappings."""
    path = WORK / "memray.json"
    output_of(["env", f"PYTHONPATH={machine.memray_path(python)}", python, "-m", "memray", "stats", "--json", "-f", "-o",
               path, MEMRAY_OUTPUT], timeout_s=600)
    by_call = json.loads(path.read_text())["allocator_type_distribution"]
    return sum(n for call, n in by_call.items() if call != "MMAP")


def count_blocks(program, name, machine):
    """Blocks that the program was given in one run, or None."""
    mode = Mode(name, machine)
    if not mode.is_possible(program) or not run_once(program, mode):
        return None
    if name in (MEMRAY, MEMRAY_OBJECTS):
        return blocks_of_memray(program.command[0], machine)
    return json.loads(output_of([TORSH, "report", OUTPUT, "--json", "--limit", "1", "--no-lines"]))["heap"]["allocations"]


def count_inside(program, machine):
    """
    Blocks by mode, without those of a program that does nothing: memray begins when the interpreter has started, and
    ends before it tidies up.
    """
    nothing = Program("nothing", [program.command[0], "-c", "pass"], is_python=True)
    counts = {}
    for name in (name for ours, peer, _, _ in WAYS for name in (ours, peer)):
        whole, start = (count_blocks(each, name, machine) for each in (program, nothing))
        counts[name] = whole - start if whole and start is not None else None
    return counts


def measure(machine):
    """[(program, {mode: median wall s}, {mode: median CPU s, with the writer}, {mode: blocks})]."""
    modes = [Mode(name, machine) for name in (BARE, OURS, MEMRAY, OURS_OBJECTS, MEMRAY_OBJECTS)]
    rows = []
    for program in python_programs(machine):
        runs = take_turns(program, modes, Options.rounds)
        counts = count_inside(program, machine) if program.name not in UNCOUNTED else {}
        rows.append((program, medians(runs, "wall_s"), medians(runs, "total_cpu_s"), counts))
    return rows


# ---- what is written --------------------------------------------------------------------------------------------------

def row_of(program, walls, cpu, counts, ours, peer):
    bare, added = walls[BARE], {name: walls.get(name) and 1000 * (walls[name] - walls[BARE]) for name in (ours, peer)}
    seen = [counts.get(name) for name in (ours, peer)]
    more = 100 * (seen[0] / seen[1] - 1) if all(seen) else None
    return [program.name, f"{bare:.3f}", *(cell(walls.get(name) and walls[name] / bare, "{:.2f}") for name in (ours, peer)),
            *(cell(added[name], "{:.0f}") for name in (ours, peer)), *(cell(cpu.get(name), "{:.2f}") for name in (BARE, ours, peer)),
            *(cell(n, "{:,}") for n in seen), cell(more, "{:+.1f} %")]


def section(rows, verdicts):
    lines = ["## Beside memray", "",
             "Times are of the whole command. Blocks are without those of `python -c pass`, which memray sees only in part,",
             "and without mappings.", ""]
    for ours, peer, words, target in WAYS:
        ratio, n = added_ratio([walls for _, walls, _, _ in rows], peer, ours)
        verdicts.at_least(f"added wall time below memray's, {words}, geometric mean of {n} programs", target, ratio, "×")
        heading = ["program", "bare s", "torsh", "memray", "added ms: torsh", "memray", "CPU s: bare", "torsh with its writer",
                   "memray", "blocks: torsh", "memray",
                   "torsh saw"]
        lines += [f"### {words[0].upper()}{words[1:]}", "", *table(heading, [row_of(*row, ours, peer) for row in rows])]
    return lines


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
