# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs on the agent's private jemalloc (TORSH_PROFILER_ALLOCATOR=jemalloc) beside the C library's malloc, without a
recording."""

from results import geometric_mean, table
from runs import BARE, JEMALLOC, WORKLOADS, Mode, Options, Program, scaled, take_turns

NOISE = 0.02  # of the CPU time: two runs of the bare program differ by as much


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
    verdicts.at_most(f"CPU time on torsh's jemalloc of that on glibc's malloc, the slowest of {len(rows)} programs",
                     1 + NOISE, max(ratios, default=None), "×", "{:.2f}")
    text = [[name, f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}"] for name, bare, ours in rows]
    text.append(["geometric mean", "", "", f"{geometric_mean(ratios):.2f}"])
    return ["## Programs on torsh's jemalloc, nothing recorded: CPU seconds, lowest", ""] + table(
        ["program", "glibc's malloc", "torsh's jemalloc", "ratio"], text)
