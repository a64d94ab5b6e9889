# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whole programs: what the agent adds to them beside heaptrack, and how many bytes their events take."""

import json
import subprocess

from results import added_ratio, cell, table
from runs import (BARE, BENCH, FULL, NOOP_MODE, OURS, RAW, TORSH, WORK, WORKLOADS, Mode, Options, Program, medians, output_of,
                  progress, run_once, scaled, take_turns)


def compile_program():
    source, preprocessed = BENCH / "compiled.cc", BENCH / "compiled.ii"
    includes = ("algorithm", "functional", "iostream", "map", "memory", "regex", "string", "unordered_map", "vector")
    source.write_text("".join(f"#include <{name}>\n" for name in includes)
                      + "std::map<std::string, std::vector<std::function<int(int)>>> m;\n"
                      + "bool f(const std::string &s) { return std::regex_match(s, std::regex(\"a+b\")); }\n")
    subprocess.run(["g++", "-std=c++17", "-E", source, "-o", preprocessed], check=True)
    # The compiler proper: heaptrack does not follow the driver's children.
    compiler = output_of(["g++", "-print-prog-name=cc1plus"]).strip()
    return [compiler, "-quiet", "-fpreprocessed", "-O1", "-std=c++17", preprocessed, "-o", "/dev/null"]


def whole_programs(machine, times=1):
    """The programs; with other times those that repeat themselves run so much longer."""
    def rounds(n):
        return scaled(times * n)

    own_malloc = {"PYTHONMALLOC": "malloc"}
    python, torch = machine.python, machine.torch_python
    programs = [
        Program("python objects, every object a malloc", [python, WORKLOADS / "objects.py", rounds(120)], own_malloc, True),
        Program("python json", [python, WORKLOADS / "json_round_trip.py", rounds(200)], {}, True),
        Program("python json, every object a malloc", [python, WORKLOADS / "json_round_trip.py", rounds(120)],
                own_malloc, True),
        Program("python sqlite", [python, WORKLOADS / "sqlite_queries.py", rounds(80)], {}, True),
        Program("python sqlite, every object a malloc", [python, WORKLOADS / "sqlite_queries.py", rounds(80)],
                own_malloc, True),
        Program("cc1plus -O1", compile_program()),
        Program("perl", ["perl", WORKLOADS / "hashes.pl", rounds(200)]),
        Program("C++, 1 thread", [BENCH / "containers", 1, rounds(5000)]),
        Program("C++, 2 threads", [BENCH / "containers", 2, rounds(5000)]),
    ]
    if torch:
        programs += [
            Program("import torch", [torch, WORKLOADS / "import_torch.py"], {}, True),
            Program("torch training", [torch, WORKLOADS / "train.py", rounds(500)], {}, True),
        ]
    return programs


# ---- time ---------------------------------------------------------------------------------------------------------------

def measure_programs(machine):
    """[(program, {mode: median wall s}, {mode: median CPU s, with the writer}, median lag s)]."""
    modes = [Mode(name, machine) for name in (BARE, NOOP_MODE, OURS, RAW, FULL)]
    rows = []
    for program in whole_programs(machine):
        runs = take_turns(program, modes, Options.rounds)
        rows.append((program, medians(runs, "wall_s"), medians(runs, "total_cpu_s"), medians(runs, "lag_s").get(OURS)))
    return rows


def program_section(rows, verdicts):
    modes = (NOOP_MODE, OURS, RAW, FULL)
    text = []
    for program, wall, cpu, lag in rows:
        bare = wall[BARE]
        ratios = [cell(wall.get(mode) and wall[mode] / bare, "{:.2f}") for mode in modes]
        added = [cell(wall.get(mode) and 1000 * (wall[mode] - bare), "{:.0f}") for mode in modes[1:]]
        spent = [cell(cpu.get(mode), "{:.2f}") for mode in (BARE, *modes[1:])]
        text.append([program.name, f"{bare:.3f}", *ratios, *added, *spent, cell(lag and 1000 * lag, "{:.0f}")])
    for peer, target, words in ((RAW, 8, "heaptrack's record mode"), (FULL, 12, "heaptrack's full mode")):
        ratio, n = added_ratio([wall for _, wall, _, _ in rows], peer)
        verdicts.at_least(f"added wall time below {words}, geometric mean of {n} programs", target, ratio, "×")
    heading = ["program", "bare s", *modes, *(f"added ms: {mode}" for mode in modes[1:]),
               *(f"CPU s: {mode}" for mode in (BARE, *modes[1:])), "writer done after ms"]
    words = ["Added times below 1 % of the bare program count as 1 % in the means. `every object a malloc` is",
             "`PYTHONMALLOC=malloc`. CPU seconds are of all processes, the writer among them.", ""]
    return ["## Whole programs: wall time as a multiple of bare, and milliseconds added", "", *words, *table(heading, text)]


def sections(machine, verdicts):
    return program_section(measure_programs(machine), verdicts)


# ---- bytes --------------------------------------------------------------------------------------------------------------

def measure_bytes(machine):
    """Per program: events, bytes an event on the ring and in a full recording."""
    mode, rows = Mode(OURS, machine), []
    for program in whole_programs(machine):
        if run_once(program, mode, {"TORSH_PROFILER_RECORD": "full", "TORSH_PROFILER_MAX_SIZE": "0"}) is None:
            continue
        report = json.loads(output_of([TORSH, "leaks", WORK / "out", "--json", "--limit", "1", "--no-lines"]))
        events, on_disk = report["events"], sum(path.stat().st_size for path in (WORK / "out").rglob("*.torsh"))
        if not events["delivered"]:
            continue
        rows.append((program.name, events["delivered"], events["ring_bytes"] / events["delivered"],
                     on_disk / events["delivered"], events["dropped"]))
        progress(f"weighed: {program.name}")
    return rows


def bytes_section(rows, verdicts):
    text = [[name, f"{events:,}", f"{ring:.2f}", f"{disk:.2f}", f"{dropped:,}"] for name, events, ring, disk, dropped in rows]
    worst_ring = max((row[2] for row in rows), default=None)
    worst_disk = max((row[3] for row in rows), default=None)
    verdicts.at_most("bytes an event on the ring, worst program", 8, worst_ring, "B", "{:.2f}")
    verdicts.at_most("bytes an event in a full recording, worst program", 2.5, worst_disk, "B", "{:.2f}")
    return ["## Bytes an event", ""] + table(["program", "events", "ring", "full recording", "dropped"], text)


def bytes_sections(machine, verdicts):
    return bytes_section(measure_bytes(machine), verdicts)
