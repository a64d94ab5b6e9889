#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processes that Python starts, its own ways: each is in the one report, with its leaks at the line of Python."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import Truth, complete, expect_times  # noqa: E402
import pythons  # noqa: E402

FAMILY = pythons.SOURCES / "family.py"
LINE = next(i for i, line in enumerate(FAMILY.read_text().splitlines(), 1) if line.endswith("# line: leak"))
# way: leaks, and the end of the process that has them.
WAYS = {
    "fork": (1, "exit 0"),
    "forkserver": (1, "exit 0"),
    "spawn": (1, "exit 0"),
    "fork_pool": (10, "exit 0"),
    "spawn_pool": (10, "exit 0"),
    "subprocess": (1, "exit 0"),
    "daemon": (1, "exit 4"),
    "posix_spawn": (1, "exit 0"),
    "execve": (1, "exit 0"),
}


def a_python():
    """Not the launcher of a version manager: that would be a process more."""
    found = [python for python in pythons.find_all() if python.minor >= 9]
    if not found:
        raise Skip("there is no CPython on this machine")
    return found[len(found) // 2]


def python_leaks(report):
    """Blocks and bytes that family.py leaked at its line, by pid."""
    found = {}
    for entry in report["leaks"]:
        lines = [(frame["file"], frame["line"]) for frame in entry["stack"] if frame.get("language") == "python"]
        if lines and lines[0][1] == LINE and lines[0][0] in (str(FAMILY), "<string>"):
            add_block(found, entry["pid"], entry["blocks"], entry["bytes"])
    return found


def add_block(sums, pid, n_blocks, n_bytes):
    blocks, size = sums.get(pid, (0, 0))
    sums[pid] = (blocks + n_blocks, size + n_bytes)


def expect_family(result, output, truth, n_leaks, end):
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    expect_equal(len(recordings(output)), 1, "recordings")
    report = complete(output, "--no-lines")
    check_counts(report["events"])
    members = truth.members()
    expect_equal(len(members), n_leaks, "leaks that the program counted")
    expected = {}
    for member in members:
        add_block(expected, member.pid, 1, member.size)
    expect_equal(python_leaks(report), expected, "blocks and bytes at their line, by pid")
    ends = {process["pid"]: process["end"] for process in report["processes"]}
    expect_equal({ends[member.pid] for member in members}, {end}, "ends")
    pids = set(ends)
    for process in report["processes"][1:]:
        assert process["ppid"] in pids or process["pid"] == report["processes"][0]["pid"], process
    expect_times(report)
    return report


def started(way, n_leaks, end):
    python, truth = a_python(), Truth(scratch("truth"))
    result, output = record([python.path, FAMILY, way, truth.path])
    report = expect_family(result, output, truth, n_leaks, end)
    parents = {process["pid"]: process["ppid"] for process in report["processes"]}
    if way in ("fork", "spawn", "subprocess", "posix_spawn", "fork_pool", "spawn_pool"):
        for member in truth.members():
            expect_equal((parents[member.pid], member.ppid), (member.ppid, report["processes"][0]["pid"]), "parents")


for name, row in WAYS.items():
    add_case(f"started_by_{name}", started, name, *row)


@case
def a_virtual_environment_leads_to_its_interpreter():
    python, truth, folder = a_python(), Truth(scratch("truth")), scratch("environment")
    for copies in ("--symlinks", "--copies"):
        if run([python.path, "-m", "venv", "--without-pip", copies, folder / copies]).returncode:
            raise Skip(f"{python.path} makes no virtual environments")
        interpreter = folder / copies / "bin/python"
        (folder / copies / "script").write_text(f"#!{interpreter}\nexec(open({str(FAMILY)!r}).read())\n")
        (folder / copies / "script").chmod(0o755)
        for command in ([interpreter, FAMILY], ["sh", "-c", f'{folder}/{copies}/bin/python {FAMILY} "$0" "$1"; true']):
            truth = Truth(scratch("truth"))
            result, output = record([*command, "fork", truth.path])
            expect_family(result, output, truth, 1, "exit 0")


@case
def below_wrappers():
    python = a_python()
    for name, command in {
        "env": ["env", "-i", "sh", "-c", f'{python.path} {FAMILY} "$0" "$1"; true'],
        "timeout": ["timeout", "60", python.path, FAMILY],
        "nice": ["nice", python.path, FAMILY],
        "two": ["timeout", "60", "env", "-i", "nice", python.path, FAMILY],
    }.items():
        truth = Truth(scratch("truth"))
        result, output = record([*command, "fork", truth.path], scratch(name))
        expect_family(result, output, truth, 1, "exit 0")


main()
