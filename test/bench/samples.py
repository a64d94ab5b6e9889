# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a sample of the processor costs, how much slower samples make programs, beside other samplers, and what waits and BLAS cost."""

import pathlib
import re
import shutil
import subprocess

from pairs import printed_ns
from results import cell, table
from runs import (BARE, BENCH, BLAS, NOOP_MODE, ONE_SAMPLE, SAMPLES_1000, SAMPLES_99, WAITS, WORK, WORKLOADS, Mode, Options, Program,
                  environment_python, progress, scaled, take_turns)

DEPTHS, SIGNALS = (10, 30, 80), 10_000
BURNS, BURNS_OF_PYTHON = 120_000, 20_000
RATES = {99: (SAMPLES_99, 1), 1000: (SAMPLES_1000, 5)}  # what of the time may be added, in percent


# ---- one sample ---------------------------------------------------------------------------------------------------------

def printed(run):
    """{"agent": ns, "empty": ns} of a signal, whose handler is the agent's, or does nothing."""
    return {name: float(ns) for name, ns in re.findall(r"^(agent|empty) ([\d.]+)$", run.text, re.M)}


def measure_handler(machine):
    """{what: {"agent": ns, "empty": ns}} of the thread's processor time, each the lowest; "agent" is missing without /proc/self/timers."""
    programs = {}
    for depth in DEPTHS:
        programs[f"native, {depth} deep, the stack of the sample before"] = [BENCH / "sample", "handler", depth, scaled(SIGNALS)]
        programs[f"native, {depth} deep, another stack"] = [BENCH / "sample", "changing", depth, scaled(SIGNALS)]
        programs[f"Python, {depth} deep"] = [machine.python, WORKLOADS / "sample_python.py", depth, scaled(SIGNALS)]
    found = {}
    for name, command in programs.items():
        runs = [printed(run) for run in take_turns(Program(name, command), [Mode(ONE_SAMPLE, machine)], Options.rounds)[ONE_SAMPLE]]
        found[name] = {key: min(run[key] for run in runs) for key in runs[0]}
    return found


def handler_section(costs, verdicts):
    added = {name: ns["agent"] - ns["empty"] if "agent" in ns else None for name, ns in costs.items()}
    known = {name: ns for name, ns in added.items() if ns is not None}
    worst = max(known, key=known.get) if known else None
    verdicts.at_most("CPU time of a sample, the most of depths, Python and changing stacks", 2, known[worst] / 1000 if worst else None, "µs", "{:.2f}",
                     note=worst)
    return ["## A sample of the processor: ns of the thread's CPU time, lowest of all runs", "",
            "Signals that the program sends itself, as the agent's timer does: without what the kernel takes for one, which the column of an "
            "empty handler has.", ""] + table(["", "signal with a sample", "with an empty handler", "the sample"], [
                [name, cell(ns.get("agent"), "{:.0f}"), cell(ns["empty"], "{:.0f}"), cell(added[name], "{:.0f}")] for name, ns in costs.items()])


# ---- beside other samplers ----------------------------------------------------------------------------------------------

class Peer(Mode):
    """Another sampler: program in {} and its rate."""

    def __init__(self, name, machine, words, is_of_python=False):
        super().__init__(name, machine)
        self.words, self.is_of_python = words, is_of_python

    def is_possible(self, program):
        return not self.is_of_python or program.is_python

    def command(self, program):
        return [*map(str, self.words), *program.command]


def peers(machine, hz):
    """The samplers that are here, and what is said of the others."""
    folder = environment_python("samplers")
    spy = pathlib.Path(folder).parent / "py-spy" if folder else None
    known = {
        "perf record -g": ("perf", ["perf", "record", "-q", "-F", hz, "-g", "-o", WORK / "perf.data", "--"], False),
        "py-spy record": (spy, [spy, "record", "-r", hz, "-d", 600, "-f", "raw", "-o", WORK / "spy", "--"], True),
        "samply record": ("samply", ["samply", "record", "--save-only", "-r", hz, "-o", WORK / "samply.json", "--"], False),
    }
    found, lacking = [], []
    for name, (program, words, is_of_python) in known.items():
        if not program or not shutil.which(program):
            lacking.append(f"{name}: not installed")
            continue
        WORK.mkdir(parents=True, exist_ok=True)
        trial = subprocess.run([*map(str, words), machine.python, "-c", "sum(range(10**7))"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if trial.returncode:
            lacking.append(f"{name}: {(trial.stdout.strip().splitlines() or ['it fails'])[-1]}")
        else:
            found.append(Peer(name, machine, words, is_of_python))
    return found, lacking


def wall_ns(run):
    return float(re.search(r"^wall ([\d.]+)$", run.text, re.M)[1])


def measure_rates(machine):
    """{(program, hz): {mode: percent added to the lowest time, of time and of processor time}}, and what can't be compared."""
    programs = [Program("native, 30 deep", [BENCH / "sample", "burn", 30, scaled(BURNS)]),
                Program("Python, 20 deep", [machine.python, WORKLOADS / "burn.py", scaled(BURNS_OF_PYTHON)], is_python=True)]
    found, lacking = {}, set()
    for hz, (mode, _) in RATES.items():
        others, missing = peers(machine, hz)
        lacking |= set(missing)
        for program in programs:
            runs = take_turns(program, [Mode(BARE, machine), Mode(mode, machine), *others], Options.rounds)
            least = {name: (min(map(wall_ns, of_mode)), min(map(printed_ns, of_mode))) for name, of_mode in runs.items()}
            found[program.name, hz] = {name: [100 * (ns / bare - 1) for ns, bare in zip(both, least[BARE])] for name, both in least.items()}
    return found, sorted(lacking)


def rates_section(added, lacking, verdicts):
    rows = []
    for (program, hz), of_mode in added.items():
        mode, limit = RATES[hz]
        verdicts.at_most(f"CPU time that {hz} samples a second add, {program}", limit, of_mode[mode][1], "%", "{:.2f}")
        rows += [[program, str(hz), name, *(cell(value, "{:+.2f} %") for value in values)] for name, values in of_mode.items() if name != BARE]
    said = ["Not compared: " + "; ".join(lacking) + ".", ""] if lacking else []
    return ["## Samples of the processor: what is added to the lowest time of all runs", "",
            "Timers of processor time are looked at in the kernel's ticks: where these are 250 a second, 1000 Hz are 242 samples a second.", ""] + said + table(
                ["program", "Hz asked for", "", "time", "its CPU time"], rows)


# ---- waits and BLAS -----------------------------------------------------------------------------------------------------

def measure_waits(machine):
    """{call: {mode: ns}}: the lowest."""
    runs, found = take_turns(Program("waits", [BENCH / "waits", scaled(1_000_000)]), [Mode(name, machine) for name in (BARE, NOOP_MODE, WAITS)], Options.rounds), {}
    for mode, of_mode in runs.items():
        for run in of_mode:
            for name, ns in re.findall(r"^(.*) ([\d.]+)$", run.text, re.M):
                of_call = found.setdefault(name, {})
                of_call[mode] = min(float(ns), of_call.get(mode, float("inf")))
    return found


def measure_blas(machine):
    """{mode: ns of a product of matrices of 8 by 8}, or None without numpy."""
    if not machine.numpy_python:
        return None
    runs = take_turns(Program("numpy.dot", [machine.numpy_python, WORKLOADS / "gemms.py", scaled(200_000)]), [Mode(name, machine) for name in (BARE, BLAS)],
                      Options.rounds)
    return {mode: min(map(printed_ns, of_mode)) for mode, of_mode in runs.items()}


def calls_section(waits, blas):
    rows = [[name, *(cell(ns.get(mode)) for mode in (BARE, NOOP_MODE, WAITS)), cell(ns[WAITS] - ns[BARE])] for name, ns in waits.items()]
    if blas:
        rows.append(["numpy.dot of 8 by 8 (blas)", cell(blas[BARE]), "–", cell(blas[BLAS]), cell(blas[BLAS] - blas[BARE])])
    return ["## Calls that may wait, and calls of BLAS: ns of CPU time, lowest of all runs", ""] + table(
        ["", BARE, NOOP_MODE, "torsh", "added"], rows)


def sections(machine, verdicts):
    costs = measure_handler(machine)
    added, lacking = measure_rates(machine)
    progress("samples: " + ", ".join(lacking) if lacking else "samples: all samplers are here")
    return (handler_section(costs, verdicts) + rates_section(added, lacking, verdicts)
            + calls_section(measure_waits(machine), measure_blas(machine)))
