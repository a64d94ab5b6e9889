#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Exports of stacks, by what reads them: what `go tool pprof` sums up for each line, and what is in a file of speedscope,
are the sums of the reports.
"""

import collections
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402
from schema import expect_fits_file  # noqa: E402

SPEEDSCOPE = ROOT / "test/lib/readers/speedscope.json"
ROW = re.compile(r"\s*(-?[\d.]+)(?:B|bytes)?\s+\S+%\s+\S+%\s+(-?[\d.]+)(?:B|bytes)?\s+\S+%\s+(.*?)(?: \((?:partial-)?inline\))?$")
PYTHON = """
class Keeper:
    def grow(self, n):
        self.kept = [bytearray(100_000 + i) for i in range(n)]
        return self

kept = [Keeper().grow(n) for n in (1, 2, 3)]
import os
os._exit(0)
"""


def native():
    return [PROGRAMS / "entries"]


def nested():
    """C++: functions that are inlined, and names with blanks."""
    return [PROGRAMS / "exceptions"]


def python():
    return [sys.executable, "-c", PYTHON]


def several():
    return [PROGRAMS / "lifecycle", "fork"]


def label(frame):
    """A frame as exports name it, and its place."""
    if "cut" in frame:
        return f"[cut: {frame['cut']}]"
    name = frame["function"]
    if not name:
        module = frame["module"]
        name = f"{pathlib.Path(module).name}+{frame['module_offset']}" if module else frame["address"]
    place = f"{frame['file']}:{frame['line']}" if frame["line"] else frame["file"]
    return f"{name} {place}" if place else name


def as_pprof_has_it(line):
    """Its paths are cleaned: "./x" is "x"."""
    return line.replace(" ./", " ")


def sums(entries, field):
    """What is held directly below each line, and below it with what it calls, however often it is in the stack."""
    own, below = collections.Counter(), collections.Counter()
    for entry in entries:
        lines = [as_pprof_has_it(label(frame)) for frame in entry["stack"]]
        own[lines[0]] += entry[field]
        for line in set(lines):
            below[line] += entry[field]
    return {line: (own[line], below[line]) for line in below if below[line]}


def ask_pprof(profile, sample):
    """The same, by the tool. It would shorten paths below a folder that is called as the current one is."""
    result = run(["go", "tool", "pprof", "-symbolize=none", "-top", "-lines", "-unit=bytes", "-nodecount=10000000", "-nodefraction=0",
                  "-edgefraction=0", f"-sample_index={sample}", profile], cwd=scratch("no-source-is-here"))
    expect_equal(result.returncode, 0, f"status of pprof\n{result.stderr.decode()}\n")
    head, _, rows = result.stdout.decode().partition("cum%\n")
    found = {}
    for row in rows.splitlines():
        own, below, line = ROW.match(row).groups()
        found[line] = (int(own), int(below))
    return {line: pair for line, pair in found.items() if pair[1]}, head


def reports_of(output):
    """Weight: entries of the matching report, stack by stack; each process has its own peak: one moment for all."""
    return {"leaked": leaks(output, "--depth", "0")["leaks"], "peak": peak(output, "--depth", "0")["holders"]}


def check_pprof(command):
    need_command("go")
    _, output = record(command())
    profile = exported(output, "heap.pb.gz", "--format", "pprof")
    for weight, entries in reports_of(output).items():
        assert entries, f"the program has no {weight} memory"
        for kind, field in (("space", "bytes"), ("objects", "blocks")):
            found, head = ask_pprof(profile, f"{weight}_{kind}")
            expected = sums(entries, field)
            differing = {line: (found.get(line), expected.get(line)) for line in found | expected
                         if found.get(line) != expected.get(line)}
            expect_equal(differing, {}, f"{weight}_{kind} of lines, here and there")
            assert f"Type: {weight}_{kind}" in head, head
            assert f"File: {pathlib.Path(command()[0]).resolve().name}" in head, head


def read_speedscope(output):
    file = json.loads(exported(output, "heap.json", "--format", "speedscope").read_text())
    expect_fits_file(SPEEDSCOPE, file)
    return file


def check_speedscope(command):
    _, output = record(command())
    file = read_speedscope(output)
    frames = file["shared"]["frames"]
    keys = [(frame["name"], frame.get("file"), frame.get("line")) for frame in frames]
    expect_equal(len(set(keys)), len(keys), "frames that differ")
    profiles = {profile["name"]: profile for profile in file["profiles"]}
    expect_equal(list(profiles), ["leaked", "peak", "allocated", "temporary"], "profiles")
    assert file["activeProfileIndex"] < len(file["profiles"])
    for profile in profiles.values():
        expect_equal(len(profile["weights"]), len(profile["samples"]), "weights and samples")
        expect_equal((profile["startValue"], profile["endValue"]), (0, sum(profile["weights"])), "values")
        expect_equal(profile["unit"], "bytes", "unit")
    for weight, entries in reports_of(output).items():
        stacks, expected = collections.Counter(), collections.Counter()
        for sample, n_bytes in zip(profiles[weight]["samples"], profiles[weight]["weights"]):
            process, *inner = [frames[i] for i in sample]
            lines = [f"{frame['name']} {frame['file']}:{frame['line']}" if "line" in frame else
                     f"{frame['name']} {frame['file']}" if "file" in frame else frame["name"] for frame in inner]
            stacks[(process["name"], *lines)] += n_bytes
        programs = {process["pid"]: pathlib.Path(process["program"]).name for process in leaks(output)["processes"]}
        for entry in entries:
            root = f"{programs[entry['pid']]} ({entry['pid']})"
            expected[(root, *(label(frame) for frame in reversed(entry["stack"])))] += entry["bytes"]
        expect_equal(stacks, expected, f"{weight} bytes of each stack, root first")


for program in (native, nested, python, several):
    add_case(f"pprof_sums_up_what_the_reports_say_of_{program.__name__}", check_pprof, program)
    add_case(f"speedscope_has_the_stacks_of_the_reports_of_{program.__name__}", check_speedscope, program)


main()
