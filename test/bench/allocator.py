# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs on the agent's private jemalloc (TORSH_PROFILER_ALLOCATOR=jemalloc) beside the C library's malloc, without a
recording."""

from programs import whole_programs
from results import geometric_mean, table
from runs import BARE, JEMALLOC, WORKLOADS, Mode, Options, Program, scaled, take_turns

NOISE = 0.02  # of the CPU time: two runs of the bare program differ by as much

TIMES = 2  # so long that the start of the agent, a millisecond or two, is within that


def measure(machine, programs):
    """[(program, {mode: lowest CPU s})]."""
    modes, rows = [Mode(name, machine) for name in (BARE, JEMALLOC)], []
    for program in [*programs, Program("python regex", [machine.python, WORKLOADS / "regex_scan.py", scaled(400)], {}, True)]:
        runs = take_turns(program, modes, Options.rounds)
        rows.append((program, {name: min(run.cpu_s for run in of_mode) for name, of_mode in runs.items() if of_mode}))
    return rows


def section(rows, verdicts):
    rows = [(program.name, cpu[BARE], cpu[JEMALLOC]) for program, cpu in rows if JEMALLOC in cpu]
    ratios = [ours / bare for _, bare, ours in rows]
    for (name, _, _), ratio in zip(rows, ratios):
        verdicts.at_most(f"{name} on torsh's jemalloc, CPU time of that on glibc's malloc", 1 + NOISE, ratio, "×", "{:.2f}")
    text = [[name, f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}"] for name, bare, ours in rows]
    text.append(["geometric mean", "", "", f"{geometric_mean(ratios):.2f}"])
    return [f"## {len(rows)} programs on torsh's jemalloc, nothing recorded: CPU seconds, lowest", "",
            "Two runs of a bare program differ by up to 2 %, which the targets allow.", ""] + table(
                ["program", "glibc's malloc", "torsh's jemalloc", "ratio"], text)


def sections(machine, verdicts):
    return section(measure(machine, whole_programs(machine, TIMES)), verdicts)
