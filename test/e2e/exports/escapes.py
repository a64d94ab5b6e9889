#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Whatever programs, files, functions, operators and ranges are called: no command prints what a terminal obeys, and JSON has
the names whole.
"""

import contextlib
import os
import pathlib
import pty
import re
import sys
import tty

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SYNTHETIC = BUILD / "test/synthetic"
ESCAPES = BUILD / "test/escapes"
ADDED = "\033]0;owned\007\033[31m\x9b41m\u202e\r\x7f"
SHOWN = "?]0;owned??[31m?41m???"
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
READERS = {
    "report": [[], ["--no-timeline"]],
    "leaks": [[], ["--growth"], ["--device", "cuda:0"], ["--merge", "none"]],
    "peak": [[], ["--device", "all"]],
    "ops": [[], ["--group", "module"], ["--group", "stack"], ["--group", "shape"], ["--group", "phase"]],
    "steps": [[]],
    "modules": [[]],
    "kernels": [[], ["--counters"]],
    "tensors": [[]],
    "whatif": [[]],
    "rss": [[], ["--at", "end"]],
    "ranks": [[]],
    "regions": [[]],
    "dump": [[]],
    "check": [["--max-leak", "1"], ["--max-peak", "1", "--max-device-peak", "1", "--max-device-time", "1us"]],
}
EXPORTS = ("folded", "csv", "json", "chrome", "speedscope", "profile", "memory", "perfetto", "pprof", "html")


def with_escapes(recording, name):
    copy = scratch(name) / "copy.torsh"
    result = run([ESCAPES, recording, copy])
    expect_equal(result.returncode, 0, f"status of escapes: {result.stderr.decode()}")
    assert int(result.stdout) > 10, f"only {result.stdout} texts in {recording}"
    return copy


def synthetic(name):
    """Operators, modules, kernels, ranges, stacks and leaks of two ranks."""
    recording = scratch(f"{name}-plain") / "synthetic.torsh"
    result = run([SYNTHETIC, recording, "400", "2", "2"])
    expect_equal(result.returncode, 0, f"status of synthetic: {result.stderr.decode()}")
    return recording


def old(name):
    return pathlib.Path(__file__).resolve().parents[1] / f"recordings/{name}.torsh"


def expect_harmless(text, what):
    found = OBEYED.search(text)
    assert not found, f"{what} printed {found[0]!r} in {text[max(0, found.start() - 60):found.end() + 20]!r}"


def read_all(recording):
    """How often the added text was shown, over all commands; none of them printed what a terminal obeys."""
    n_shown = 0
    for command, forms in READERS.items():
        for arguments in forms:
            for form in ([], ["--json"]):
                result = run([TORSH, command, recording, *arguments, *form])
                what = f"torsh {command} {' '.join([*arguments, *form])}"
                # Not every format suits every recording; the message about that may contain names,
                # too.
                assert result.returncode in ((1, 2) if command == "check" else (0, 2)), f"{what}: status {result.returncode}"
                expect_harmless(result.stdout.decode(), what)
                expect_harmless(result.stderr.decode(), what)
                n_shown += result.stdout.count(SHOWN.encode())
    return n_shown


def commands_print_nothing_that_a_terminal_obeys(recording):
    n_shown = read_all(with_escapes(recording, "escaped"))
    assert n_shown > 10, f"names were shown {n_shown} times"


add_case("commands_print_nothing_that_a_terminal_obeys_of_operators",
         lambda: commands_print_nothing_that_a_terminal_obeys(synthetic("escapes")))
for kept in ("format-1/entries-folded", "format-2/lifecycle-full"):
    add_case("commands_print_nothing_that_a_terminal_obeys_of_" + re.sub("[-/]", "_", kept),
             lambda kept=kept: commands_print_nothing_that_a_terminal_obeys(old(kept)))


def run_on_terminal(command):
    """What a terminal is given that is its standard output, and the status."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with started(command, clean_environment(), stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        pieces = []
        with contextlib.suppress(OSError):  # EIO: all that had it open have ended
            while piece := os.read(ours, 65536):
                pieces.append(piece)
        os.close(ours)
        return b"".join(pieces).decode(), process.wait(TIMEOUT_S)


@case
def exports_give_a_terminal_nothing_that_it_obeys():
    """Files and pipes get the names whole: a program reads those."""
    recording, n_shown = with_escapes(synthetic("export"), "escaped"), 0
    for name in EXPORTS:
        for place in ([], ["-o", "/dev/stdout"]):
            text, status = run_on_terminal([TORSH, "export", recording, "--format", name, *place])
            assert status in (0, 2), f"export of {name}: status {status}"
            expect_harmless(text.replace("\r\n", "\n"), f"torsh export --format {name} {' '.join(place)}")
            n_shown += text.count("owned")
    assert n_shown > 100, f"names were shown {n_shown} times"
    assert ADDED in torsh("export", recording, "--format", "csv"), "what a pipe gets"


@case
def json_has_names_whole():
    plain = synthetic("whole")
    names = {operator["name"] for operator in read_report("ops", plain, "--limit", "0")["ops"]}
    found = {operator["name"] for operator in
             read_report("ops", with_escapes(plain, "escaped"), "--limit", "0")["ops"]}
    expect_equal(found, {name + ADDED for name in names}, "names of operators")


@case
def a_running_program_with_a_name_of_escapes_is_listed_harmlessly():
    """What live commands and the summary print of a program, its file and its arguments."""
    folder = scratch("programs")
    program = folder / f"obeys{ADDED.replace('/', '')}"
    program.symlink_to(PROGRAMS / "obeys")
    output = scratch()
    env = agent_environment(output, TORSH_PROFILER_SUMMARY="1")
    with started([program], env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"a")
        process.stdin.flush()
        expect_equal(process.stdout.read(1), b".", "the program's answer")
        for command in (["list"], ["top", "--once", process.pid]):
            expect_harmless(torsh(*command), f"torsh {command[0]}")
        process.stdin.close()
        output_text = process.stderr.read().decode()
        assert "torsh" in output_text, f"no summary in {output_text!r}"
        expect_harmless(output_text, "the summary")
    expect_harmless(torsh("report", output), "torsh report")


@case
def settings_are_complained_of_harmlessly():
    """What the agent prints itself."""
    result, _ = record([PROGRAMS / "regions"], scratch(ADDED.replace("\0", "").replace("/", "")),
                       env={"TORSH_PROFILER_RECORD": ADDED, f"TORSH_PROFILER_{ADDED}": "1"})
    output_text = result.stderr.decode()
    assert output_text.count("torsh:") >= 2 and "owned" in output_text, f"no complaint in {output_text!r}"
    expect_harmless(output_text, "the agent")


@case
def what_is_no_utf8_is_shown_as_question_marks():
    """Messages hold what the user gave, whatever it is."""
    result = subprocess.run([os.fsencode(TORSH), b"report", b"/nowhere/\xff\x9b31m\xc3"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    expect_equal(result.returncode, 2, "status")
    assert b"/nowhere/??31m?" in result.stderr, result.stderr
    expect_harmless(result.stderr.decode(), "the message")


main()
