# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the begin and the end of processes and threads cost: one process, a shell's tree of short ones, workers of a
DataLoader, and threads."""

import statistics

from pairs import printed_ns
from results import cell, table
from runs import BARE, BENCH, NOOP_MODE, OURS, WORKLOADS, Mode, Options, Program, medians, scaled, take_turns

MODES = (BARE, NOOP_MODE, OURS)
N_SHORT, N_THREADS, N_SAMPLES = 1000, 20_000, 800


def run_modes(machine, name, command, rounds):
    return take_turns(Program(name, command), [Mode(mode, machine) for mode in MODES], rounds)


def times_ms(runs, n=1):
    """{mode: median ms of wall time, of CPU time of the program, of the writer's} for each of n."""
    found = [medians(runs, figure) for figure in ("wall_s", "cpu_s", "writer_cpu_s")]
    return {mode: [1000 / n * of[mode] for of in found] for mode in runs}


def times_table(first, found):
    return table([first, "wall", "program's CPU", "writer's CPU"],
                 [[mode, *(f"{value:.2f}" for value in ms)] for mode, ms in found.items()])


def process_sections(machine, verdicts):
    one = times_ms(run_modes(machine, "python -c pass", [machine.python, "-c", "pass"], 3 if Options.is_smoke else 31))
    verdicts.at_most("start and exit of `python -c pass`, added", 3, one[OURS][0] - one[BARE][0], "ms", "{:.2f}",
                     note=f"bare {one[BARE][0]:.1f} ms")
    n = scaled(N_SHORT)
    loop = f"i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i + 1)); done"
    tree = times_ms(run_modes(machine, "short processes", ["/bin/sh", "-c", loop], Options.rounds), n)
    verdicts.at_most("a tree of 1,000 short processes, added for each", 1.5, tree[OURS][0] - tree[BARE][0], "ms", "{:.2f}",
                     note=f"bare {tree[BARE][0]:.2f} ms")
    return (["## Start and exit: ms", ""] + times_table("`python -c pass`", one)
            + ["## A tree of 1,000 short processes: ms for each", ""] + times_table("`/bin/true`, started by a shell", tree))


def thread_sections(machine, verdicts):
    runs = run_modes(machine, "threads", [BENCH / "threads", scaled(N_THREADS)], Options.rounds)
    us = {mode: statistics.median(map(printed_ns, of_mode)) for mode, of_mode in runs.items()}
    verdicts.at_most("creation and end of a thread, added", 20, us[OURS] - us[BARE], "µs")
    return ["## Creation and end of a thread that uses one block: µs", ""] + table(
        list(us), [[cell(value) for value in us.values()]])


def loader_sections(machine, verdicts):
    if not machine.torch_python:
        return []
    # Nothing of it is a target of speed that a few percent decide: fewer rounds.
    runs = run_modes(machine, "DataLoader", [machine.torch_python, WORKLOADS / "loader.py", scaled(N_SAMPLES)], min(3, Options.rounds))
    wall, cpu, writer = (medians(runs, figure) for figure in ("wall_s", "cpu_s", "writer_cpu_s"))
    epochs = {mode: statistics.median(float(run.text.split()[-1]) for run in of_mode) for mode, of_mode in runs.items()}
    verdicts.at_most("a DataLoader with 16 workers, the whole run", 1.1, wall[OURS] / wall[BARE], "×", "{:.2f}")
    verdicts.at_most("a DataLoader with 16 workers, its epochs alone", 1.1, epochs[OURS] / epochs[BARE], "×", "{:.2f}")
    rows = [[mode, *(f"{of[mode]:.2f}" for of in (wall, epochs, cpu, writer))] for mode in runs]
    return ["## A DataLoader with 16 workers, two epochs: s", ""] + table(
        ["", "whole run", "epochs", "CPU time of all processes", "writer's CPU time"], rows)
