# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CPU seconds and memory of the commands that read a recording: of a program that imports torch, and of a process with
a million stacks that hold memory."""

import os
import subprocess

from results import table
from runs import BUILD, OURS, TORSH, WORK, Mode, Options, Program, run_once, scaled

STACKS = 2_000_000  # half of them hold blocks
COMMANDS = ("report", "leaks", "peak", "ops", "steps", "html", "diff")
EXPORTS = ("speedscope", "pprof", "folded", "profile", "sqlite", "chrome", "perfetto", "json", "csv")
LIMITS = {"report": (0.3, 100), "leaks": (0.3, 100), "peak": (0.3, 100), "ops": (0.3, 100), "speedscope": (5, 20),
          "pprof": (5, 20), "sqlite": (5, 20)}  # of the import of torch: s, MiB
LIMITS_MANY = {"report": (3, 500), "leaks": (3, 500), "peak": (3, 500)}


def _command(name, recording, output):
    if name in EXPORTS:
        return [TORSH, "export", recording, "--format", name, "-o", output]
    return [TORSH, name, recording] + {"html": ["-o", output], "diff": [recording]}.get(name, [])


def _run(command):
    """CPU seconds and MiB of one run; None where it fails: the recording has no timeline."""
    started = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024) if not started.returncode else None


def _read(recording):
    """By command: CPU seconds and MiB of the fastest of three runs."""
    figures, output = {}, WORK / "read"
    for name in (*COMMANDS, *EXPORTS):
        runs = []
        for _ in range(min(3, Options.rounds)):
            runs.append(_run(_command(name, recording, output)))
            output.unlink(missing_ok=True)
        if all(runs):
            figures[name] = min(runs)
    return figures


def _import_of_torch(machine):
    program = Program("import torch", [machine.torch_python, "-c", "import torch"], is_python=True)
    if run_once(program, Mode(OURS, machine)) is None:
        return None
    (recording,) = (WORK / "out").rglob("*.torsh")
    return recording


def measure(machine):
    """By what was recorded: figures of each command."""
    figures, many = {}, WORK / "many.torsh"
    WORK.mkdir(parents=True, exist_ok=True)
    recording = _import_of_torch(machine) if machine.torch_python else None
    if recording:
        figures["import torch"] = _read(recording)
    subprocess.run([BUILD / "test/many_sites", many, str(scaled(STACKS))], check=True, stdout=subprocess.DEVNULL)
    figures["a million stacks"] = _read(many)
    many.unlink()
    return figures


def section(figures, verdicts):
    for recorded, limits in (("import torch", LIMITS), ("a million stacks", LIMITS_MANY)):
        for name, (seconds, memory) in limits.items():
            if name in figures.get(recorded, ()):
                verdicts.at_most(f"{name} of {recorded}", seconds, figures[recorded][name][0], "s", "{:.2f}")
                verdicts.at_most("memory of that", memory, figures[recorded][name][1], "MiB", "{:.0f}")
    rows = [[name, *(text for of in figures.values() for text in
                     ((f"{of[name][0]:.2f}", f"{of[name][1]:.0f}") if name in of else ("–", "–")))]
            for name in (*COMMANDS, *EXPORTS)]
    return ["## CPU seconds and memory of reading commands", ""] + table(
        ["command", *(head for of in figures for head in (f"{of}, s", "MiB"))], rows)


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
