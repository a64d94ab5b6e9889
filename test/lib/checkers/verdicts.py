# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Classes of the blocks of a program's lines at its end: ours, LeakSanitizer's and memcheck's, {line: {class: [blocks, bytes]}}."""

import collections
import re
import xml.etree.ElementTree as ElementTree

from harness import *  # noqa: F403
from schema import expect_fits

CLASSES = ("lost", "indirect", "possible", "reachable")
FLAGS = ["-std=c++17", "-g", "-O1", "-fno-inline", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread", f"-I{ROOT}"]
KINDS_OF_MEMCHECK = {"Leak_DefinitelyLost": "lost", "Leak_IndirectlyLost": "indirect", "Leak_PossiblyLost": "possible",
                     "Leak_StillReachable": "reachable"}


def add(lines, line, kind, blocks, size):
    if blocks:
        of = lines[line].setdefault(kind, [0, 0])
        of[0] += blocks
        of[1] += size


def report_of(command, **variables):
    result, output = record(command, env=variables)
    expect_equal(result.returncode, 0, f"status of {command} ({result.stderr})")
    report = leaks(output)
    expect_fits("leaks", report)
    return report


def ours(source, command, **variables):
    """By the innermost line in the source; what has none of these is left out."""
    report = report_of(command, **variables)
    expect_equal(report["reachability"], {"judged": True, "reason": None}, f"whether {command} was judged")
    return by_line(source, report)


def by_line(source, report):
    lines = collections.defaultdict(dict)
    for leak in report["leaks"]:
        line = next((frame["line"] for frame in leak["stack"] if (frame.get("file") or "").endswith(source.name)), None)
        if line is None:
            continue
        expect_equal([sum(of[what] for of in leak["classes"].values()) for what in ("blocks", "bytes")],
                     [leak["blocks"], leak["bytes"]], "sum of a leak's classes")
        for kind in CLASSES:
            add(lines, line, kind, leak["classes"][kind]["blocks"], leak["classes"][kind]["bytes"])
    return dict(lines)


def with_lsan(source, folder):
    program = folder / source.stem
    compiled = run([need_command("g++"), *FLAGS, "-fsanitize=leak", "-o", program, source, "-ldl"])
    if compiled.returncode:
        raise Skip(f"g++ has no LeakSanitizer: {compiled.stderr.decode()[-200:]}")
    return program


def of_lsan(source, command):
    """It reports only what is lost. None: it failed while it searched."""
    options = "exitcode=0:allocator_may_return_null=1"
    text = run(command, dict(clean_environment(), LSAN_OPTIONS=options)).stderr.decode()
    if "LeakSanitizer has encountered a fatal error" in text:
        if "Tracer caught signal" in text:
            return None
        raise Skip("LeakSanitizer can't use ptrace here")
    lines = collections.defaultdict(dict)
    for kind, size, n, stack in re.findall(
            r"^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:\n((?: +#.*\n)+)", text, re.M):
        found = re.search(re.escape(source.name) + r":(\d+)", stack)
        if found:
            add(lines, int(found.group(1)), "lost" if kind == "Direct" else "indirect", int(n), int(size))
    return dict(lines)


def of_memcheck(source, command, out):
    result = run([need_command("valgrind"), "--leak-check=full", "--show-leak-kinds=all", "--xml=yes", f"--xml-file={out}",
                  "--leak-check-heuristics=all", "--num-callers=30", *command], clean_environment())
    expect_equal(result.returncode, 0, f"status of {command} with Valgrind ({result.stderr})")
    lines = collections.defaultdict(dict)
    for error in ElementTree.parse(out).getroot().iter("error"):
        what, kind = error.find("xwhat"), error.find("kind").text
        line = next((int(frame.findtext("line")) for frame in error.iter("frame") if frame.findtext("file") == source.name), None)
        if line is None or what is None or kind not in KINDS_OF_MEMCHECK:
            continue
        # What is lost with a block is among its bytes, and has an entry of its own.
        direct = re.search(r"\(([\d,]+) direct", what.findtext("text"))
        add(lines, line, KINDS_OF_MEMCHECK[kind], int(what.findtext("leakedblocks")),
            int(direct.group(1).replace(",", "") if direct else what.findtext("leakedbytes")))
    return dict(lines)


def totals(lines, kinds=CLASSES):
    """{class: [blocks, bytes]} of all lines."""
    return {kind: [sum(of.get(kind, (0, 0))[i] for of in lines.values()) for i in (0, 1)] for kind in kinds}


def only(lines, kinds):
    """The lines that have blocks of these classes, with these alone."""
    found = {line: {kind: of[kind] for kind in kinds if kind in of} for line, of in lines.items()}
    return {line: of for line, of in found.items() if of}


def as_text(classes):
    """What a table shows of {class: [blocks, bytes]}."""
    return ", ".join(f"{n} {kind} ({size:,} B)" for kind, (n, size) in classes.items() if n) or "none"
