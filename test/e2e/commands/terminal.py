#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What commands print on a terminal: no line is wider, colours and a pager only there, and only if they are wanted."""

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import struct
import sys
import termios
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SYNTHETIC = BUILD / "test/synthetic"
SIZES = ((80, 24), (160, 50))
TABLES = (["cpu", "--off"], ["ops"], ["ops", "--group", "shape"], ["steps"], ["steps", "--all"], ["modules"], ["tensors"], ["regions"],
          ["kernels"], ["report"], ["report", "--verbose"], ["peak"])
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CONTROLS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def synthetic():
    recording = shared("terminal") / "synthetic.torsh"
    if not recording.exists():
        result = run([SYNTHETIC, recording, "400", "2", "1"])
        expect_equal(result.returncode, 0, f"status of synthetic: {result.stderr.decode()}")
    return recording


def on_terminal(arguments, columns=80, rows=24, **variables):
    """What the command writes to a terminal of that size as standard output, and its status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = dict(clean_environment(), TERM="xterm", **variables)
    with started([TORSH, *arguments], env, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        pieces = []
        with contextlib.suppress(OSError):  # EIO: all that had it open have ended
            while piece := os.read(ours, 65536):
                pieces.append(piece)
        os.close(ours)
        return b"".join(pieces).decode().replace("\r\n", "\n"), process.wait(TIMEOUT_S)


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in line)


def no_line_is_wider_than_the_terminal(columns, rows):
    for arguments in TABLES:
        text, status = on_terminal([*arguments, synthetic()], columns, rows, TORSH_PAGER="cat")
        expect_equal(status, 0, f"status of {arguments}")
        assert COLOURS.search(text), f"{arguments}: no colours on a terminal"
        wide = [line for line in CONTROLS.sub("", text).splitlines() if columns_of(line) > columns]
        expect_equal(wide, [], f"lines of {arguments} that {columns} columns don't hold")


for size in SIZES:
    add_case(f"no_line_is_wider_than_{size[0]}_columns", no_line_is_wider_than_the_terminal, *size)


def the_report_is_one_screen(columns):
    text, status = on_terminal(["report", synthetic()], columns, 50, TORSH_PAGER="sed s/^/paged:/")
    expect_equal(status, 0, "status")
    lines = CONTROLS.sub("", text).splitlines()
    assert len(lines) <= 50 and "paged:" not in text, f"{len(lines)} rows"
    for name in ("MEMORY", "TIME", "FINDINGS", "Next:"):
        assert any(line.startswith(name) for line in lines), f"no {name} in\n{text}"


for width in (80, 160):
    add_case(f"the_report_is_one_screen_of_{width}_columns", the_report_is_one_screen, width)


@case
def colours_are_for_terminals_that_want_them():
    recording = synthetic()
    assert not COLOURS.search(torsh("ops", recording)), "colours in a pipe"
    assert COLOURS.search(torsh("ops", "--color=always", recording)), "--color=always in a pipe"
    for arguments, variables in ((["--color=never"], {}), ([], {"NO_COLOR": "1"})):
        text, _ = on_terminal(["ops", *arguments, recording], TORSH_PAGER="cat", **variables)
        assert not COLOURS.search(text), f"colours with {arguments} {variables}"
    text, _ = on_terminal(["ops", "--color=always", recording], TORSH_PAGER="cat", NO_COLOR="1")
    assert COLOURS.search(text), "--color=always is overridden by NO_COLOR"
    torsh("ops", "--color=blue", recording, expect=2)


@case
def diff_takes_the_options_of_the_terminal():
    recording = synthetic()
    text, status = on_terminal(["diff", recording, recording], 40, 24, TORSH_PAGER="cat")
    expect_equal(status, 0, "status")
    assert COLOURS.search(text), "no colours on a terminal"
    for wide in ("--width=40", "--width=40 --no-pager --color=never"):
        lines = torsh("diff", *wide.split(), recording, recording, "--", recording).splitlines()
        expect_equal([line for line in lines if columns_of(line) > 40 and " " in line.strip()[:40]], [], f"lines with {wide}")
    assert COLOURS.search(torsh("diff", "--color=always", recording, recording)), "--color=always in a pipe"
    torsh("diff", "--width=x", recording, recording, expect=2)


# What each command that reads a recording takes besides --pid and --rank.
TERMINAL, TABLE, STACKS = ("--color", "--width", "--no-pager"), ("--json", "--limit"), ("--depth", "--min-bytes", "--sort", "--stacks")
TAKES = {"open": TERMINAL, "report": TERMINAL + TABLE + STACKS, "leaks": TERMINAL + TABLE + STACKS, "peak": TERMINAL + TABLE + STACKS,
         **{command: TERMINAL + TABLE for command in ("ops", "blas", "requests", "steps", "cpu", "modules", "kernels", "tensors", "regions", "diff", "validate", "check")},
         "html": (), "serve": ()}


@case
def every_command_takes_the_common_options():
    for command, options in TAKES.items():
        text = torsh(command, "--help")
        expect_equal([option for option in ("--pid", "--rank", *options) if option not in text], [], f"what torsh {command} lacks")
        if not options:
            expect_equal([option for option in TERMINAL + TABLE if option in text], [], f"what torsh {command} doesn't obey")


@case
def open_takes_the_options_of_the_terminal():
    text, status = on_terminal(["open", synthetic()], 40, 24, TORSH_PAGER="cat")
    assert status == 0 and COLOURS.search(text), text
    assert COLOURS.search(torsh("open", "--color=always", synthetic())), "--color=always in a pipe"
    lines = torsh("open", "--width=40", "--no-pager", synthetic()).splitlines()
    expect_equal([line for line in lines if columns_of(line) > 40 and " " in line.strip()[:40]], [], "lines")


@case
def html_takes_only_what_it_obeys():
    for option in ("--json", "--limit=1", "--sort=bytes", "--depth=1", "--stacks=native", "--width=80", "--verbose"):
        torsh("html", option, synthetic(), "-o", "-", expect=2)


@case
def a_pipe_has_whole_names_unless_a_width_is_given():
    recording = synthetic()
    whole, narrow = torsh("ops", recording), torsh("ops", "--width", "40", recording)
    for operator in read_report("ops", recording, "--limit", "5", "--merge-nested")["ops"]:
        assert operator["name"] in whole, f"{operator['name']} is not in\n{whole}"
    expect_equal([line for line in narrow.splitlines() if columns_of(line) > 40], [], "lines of --width 40")


@case
def the_pager_shows_what_is_longer_than_the_screen():
    recording, pager = synthetic(), "sed s/^/paged:/"
    text, status = on_terminal(["steps", "--all", recording], rows=10, TORSH_PAGER=pager)
    expect_equal(status, 0, "status")
    assert all(line.startswith("paged:") for line in text.splitlines()), text[:500]
    for arguments, rows in ((["steps", recording], 200), (["steps", "--all", "--no-pager", recording], 10)):
        text, _ = on_terminal(arguments, rows=rows, TORSH_PAGER=pager)
        assert "paged:" not in text, f"{arguments} went to the pager with {rows} rows"
    assert "paged:" not in torsh("steps", "--all", recording), "a pager for a pipe"


@case
def a_pager_that_is_dead_or_missing_is_no_error():
    for pager in ("true", "head -n 1", "/nowhere/pager", ""):
        text, status = on_terminal(["steps", "--all", synthetic()], rows=10, TORSH_PAGER=pager)
        expect_equal(status, 0, f"status with the pager {pager!r}")
        if pager in ("/nowhere/pager", ""):
            assert "median" in text, f"nothing was printed: {text!r}"


main()
