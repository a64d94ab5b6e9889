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
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported, memory_of  # noqa: E402
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
    profile = exported(output, "heap.pb.gz", "--format", "pprof", "--all")
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


def read_speedscope(output, *arguments):
    file = json.loads(exported(output, "heap.json", "--format", "speedscope", *arguments).read_text())
    expect_fits_file(SPEEDSCOPE, file)
    return file


def check_speedscope(command):
    _, output = record(command())
    file = read_speedscope(output, "--all")
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


IMPORTING = """
import decimal, email.message, xml.dom.minidom

def grow(n):
    return [bytearray(1000 + i) for i in range(n)]

kept = [grow(2000), [bytearray(i) for i in range(200)]]
import os
os._exit(0)
"""
SMALL, IMPORTS = "(below 0.1 %)", "(import of "


def sums_of_folded(output, weight, *arguments):
    """Bytes, and those of what was merged, by name."""
    named, whole = collections.Counter(), 0
    for line in torsh("export", output, "--format", "folded", "--what", weight, *arguments).splitlines():
        stack, number = line.rsplit(" ", 1)
        whole += int(number)
        named[stack.rsplit(";", 1)[1]] += int(number)
    return whole, {name: number for name, number in named.items() if name.startswith("(")}


def sums_of_speedscope(output, *arguments):
    file = read_speedscope(output, *arguments)
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    merged = {profile["name"]: collections.Counter() for profile in file["profiles"]}
    for profile in file["profiles"]:
        for sample, number in zip(profile["samples"], profile["weights"]):
            if frames[sample[-1]].startswith("("):
                merged[profile["name"]][frames[sample[-1]]] += number
    return {profile["name"]: (sum(profile["weights"]), dict(merged[profile["name"]])) for profile in file["profiles"]}


def sums_of_sqlite(output, *arguments):
    database = sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite", *arguments))
    merged = dict(database.execute("select merged, sum(bytes) from peak_allocations where merged is not null group by merged"))
    return database.execute("select sum(bytes), sum(blocks), count(*) from peak_allocations").fetchone(), merged


@case
def what_is_merged_keeps_its_sums():
    """Each format has the sums of --all, and what is merged is the same in all of them."""
    _, output = record([sys.executable, "-I", "-c", IMPORTING])
    whole, few = sums_of_speedscope(output, "--all"), sums_of_speedscope(output)
    expect_equal({name: merged for name, (_, merged) in whole.items() if merged}, {}, "what --all merges")
    for weight, (number, merged) in few.items():
        expect_equal(number, whole[weight][0], f"{weight} bytes of speedscope")
        expect_equal(sums_of_folded(output, weight, "--all"), (number, {}), f"{weight} bytes, all folded")
        expect_equal(sums_of_folded(output, weight)[0], number, f"{weight} bytes folded")
    expect_equal(few["peak"][0], peak(output)["peak_bytes"], "the peak")
    for package in ("decimal", "email", "xml"):
        assert f"{IMPORTS}{package})" in few["peak"][1], few["peak"]
    assert few["peak"][1][SMALL], few["peak"]
    # The user's own memory is neither.
    text = torsh("export", output, "--format", "folded", "--what", "peak")
    grown = [int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if "grow (<string>:5)" in line]
    assert sum(grown) >= sum(1000 + i for i in range(2000)), text
    assert "<frozen" not in text and "_find_and_load" not in text and len(text.splitlines()) < 200, text
    sums, merged = sums_of_sqlite(output)
    all_sums, all_merged = sums_of_sqlite(output, "--all")
    expect_equal((sums[:2], all_merged), (all_sums[:2], {}), "sums of sqlite")
    assert sums[2] * 5 < all_sums[2], (sums, all_sums)
    expect_equal(merged, sums_of_folded(output, "peak")[1], "what sqlite and folded merge")


@case
def pprof_reads_what_is_merged():
    need_command("go")
    _, output = record([sys.executable, "-I", "-c", IMPORTING])
    for weight, (number, merged) in sums_of_speedscope(output).items():
        profile = exported(output, "heap.pb.gz", "--format", "pprof")
        found, _ = ask_pprof(profile, f"{weight}_space")
        expect_equal(sum(own for own, _ in found.values()), number, f"{weight} bytes")
        for name, expected in merged.items():
            expect_equal(found[name][0], expected, f"{weight} bytes of {name}")


@case
def exports_and_json_take_little_more_memory_than_the_leaks():
    """Stacks are merged packed; as lists of samples and of sites they took half as much again."""
    recording, n_sites = scratch("recording") / "many.torsh", 300000
    expect_equal(run([PROGRAMS.parent / "many_sites", recording, str(n_sites)]).returncode, 0, "status of many_sites")
    leaks = memory_of("leaks", recording)
    for form in ("pprof", "speedscope", "folded"):
        memory = memory_of("export", recording, "--format", form, "-o", scratch("written") / f"many.{form}")
        assert memory < 1.25 * leaks, f"{memory} KiB for {form}, {leaks} KiB for the leaks"
    # A database names all sites before it has the first row.
    memory = memory_of("export", recording, "--format", "sqlite", "-o", scratch("written") / "many.sqlite")
    assert memory * 1024 < 360 * n_sites, f"{memory} KiB for a database of {n_sites} sites"
    memory = memory_of("peak", recording, "--json")
    assert memory < 0.9 * leaks, f"{memory} KiB for the peak, {leaks} KiB for the leaks"


for program in (native, nested, python, several):
    add_case(f"pprof_sums_up_what_the_reports_say_of_{program.__name__}", check_pprof, program)
    add_case(f"speedscope_has_the_stacks_of_the_reports_of_{program.__name__}", check_speedscope, program)


main()
