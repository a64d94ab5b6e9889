# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CPU seconds and memory of the commands that read a recording, and what exports write: of the demo, and of a process
with a million stacks that hold memory."""

import os
import subprocess

from results import table
from runs import BUILD, ROOT, TORSH, WORK, Options, scaled, usage_of

STACKS = 2_000_000  # half of them hold blocks
COMMANDS = ("report", "report --json", "leaks", "peak", "peak --json", "ops", "steps", "html", "diff")
EXPORTS = ("speedscope", "pprof", "folded", "profile", "sqlite", "chrome", "perfetto", "json", "csv")
DEMO = "the demo"
LIMITS = {"report": (0.3, 100), "leaks": (0.3, 100), "peak": (0.3, 100), "ops": (0.3, 100),  # of the demo: s, MiB
          "html": (6, 300), "diff": (3, 200)}
LIMITS_EXPORTED = {"speedscope": (5, 20), "pprof": (5, 20), "sqlite": (5, 20)}  # of the demo: s, MiB of the file
LIMITS_MEMORY = {"report --json": 200, "peak --json": 200, "speedscope": 200, "pprof": 200, "folded": 200, "sqlite": 200}  # of the demo: MiB
LIMITS_MANY = {"report": (3, 500), "leaks": (3, 500), "peak": (3, 500)}


def _command(name, recording, output):
    if name in EXPORTS:
        return [TORSH, "export", recording, "--format", name, "-o", output]
    return [TORSH, *name.split(), recording] + {"html": ["-o", output], "diff": [recording]}.get(name, [])


def _run(command, output):
    """CPU seconds, MiB and MiB written by one run; None where it fails: the recording has no timeline."""
    cpu, _, memory, status = usage_of(command)
    written = output.stat().st_size / 1048576 if output.exists() else None
    output.unlink(missing_ok=True)
    return (cpu, memory, written) if not status else None


def _read(recording):
    """By command: CPU seconds, MiB and MiB written, of the fastest of three runs."""
    figures, output = {}, WORK / "read"
    for name in (*COMMANDS, *EXPORTS):
        runs = [_run(_command(name, recording, output), output) for _ in range(min(3, Options.rounds))]
        if all(runs):
            figures[name] = min(runs)
    return figures


def _demo(machine):
    """Its recording, made anew."""
    environment = {**os.environ, "BUILD": os.path.relpath(BUILD, ROOT), "PYTHON": str(machine.torch_python)}
    subprocess.run([ROOT / "test/demo/run"], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (recording,) = (BUILD / "demo").glob("*.torsh")
    return recording


def measure(machine):
    """By what was recorded: figures of each command."""
    figures, many = {}, WORK / "many.torsh"
    WORK.mkdir(parents=True, exist_ok=True)
    if machine.torch_python:
        figures[DEMO] = _read(_demo(machine))
    subprocess.run([BUILD / "test/many_sites", many, str(scaled(STACKS))], check=True, stdout=subprocess.DEVNULL)
    figures["a million stacks"] = _read(many)
    many.unlink()
    return figures


def section(figures, verdicts):
    for recorded, limits in ((DEMO, LIMITS), ("a million stacks", LIMITS_MANY)):
        for name, (seconds, memory) in limits.items():
            if name in figures.get(recorded, ()):
                verdicts.at_most(f"{name} of {recorded}", seconds, figures[recorded][name][0], "s", "{:.2f}")
                verdicts.at_most("memory of that", memory, figures[recorded][name][1], "MiB", "{:.0f}")
    for name, (seconds, size) in LIMITS_EXPORTED.items():
        if name in figures.get(DEMO, ()):
            verdicts.at_most(f"{DEMO} to {name}", seconds, figures[DEMO][name][0], "s", "{:.2f}")
            verdicts.at_most("the file of that", size, figures[DEMO][name][2], "MiB", "{:.1f}")
    for name, memory in LIMITS_MEMORY.items():
        if name in figures.get(DEMO, ()):
            verdicts.at_most(f"memory of {name} of {DEMO}", memory, figures[DEMO][name][1], "MiB", "{:.0f}")
    rows = [[name, *(text for of in figures.values() for text in _cells(of.get(name)))] for name in (*COMMANDS, *EXPORTS)]
    return ["## CPU seconds and memory of reading commands", ""] + table(
        ["command", *(head for of in figures for head in (f"{of}, s", "MiB", "MiB written"))], rows)


def _cells(figures):
    if not figures:
        return "–", "–", "–"
    seconds, memory, written = figures
    return f"{seconds:.2f}", f"{memory:.0f}", "–" if written is None else f"{written:.2f}"


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
