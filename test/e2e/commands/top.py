#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh top, a frame at a time and on a terminal."""

import fcntl
import pathlib
import pty
import re
import select
import struct
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target  # noqa: E402


@case
def top_prints_a_frame():
    with Target(RANK="7") as target:
        target.send("aab")
        lines = torsh("top", "--once", "--interval", "10", target.pid).splitlines()
        assert "1 session, 1 process" in lines[0], lines
        row = next(line.split() for line in lines if line.endswith("obeys"))
        expect_equal((row[0], row[1]), (str(target.pid), "7"), "pid and rank")
        held = next(line for line in lines if "keep_first" in line)
        line = OBEYS_LINES["malloc(FIRST_BYTES)"]
        assert re.match(rf"\s*19.6 KiB\s+20\s+[\d.]+%  keep_first  \S*obeys.c:{line}$", held), held
        target.end()


def source_lines(path, *parts):
    lines = path.read_text().splitlines()
    return {part: next(i for i, line in enumerate(lines, 1) if part in line) for part in parts}


OBEYS_LINES = source_lines(ROOT / "test/programs/process/obeys.c", "malloc(FIRST_BYTES)")


@case
def top_needs_a_terminal_and_reports_it():
    result = run([TORSH, "top"])
    expect_equal(result.returncode, 2, "status")
    assert b"--once" in result.stderr, result.stderr


class Terminal:
    """A program on a terminal of its own, and what it has drawn there so far."""

    def __init__(self, command, term="xterm", size=(30, 110)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(str(command[0]), [str(part) for part in command], dict(clean_environment(), TERM=term))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.seen = ""

    def read(self):
        if select.select([self.fd], [], [], 0.05)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return False
        return True

    def wait_for(self, *words):
        def is_there():
            self.read()
            # Without what moves the cursor and colours.
            text = re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\(B|[=>])", " ", self.seen)
            return all(re.search(word, text) for word in words)
        wait_until(is_there, f"{words} in {self.seen[-2000:]!r}")

    def press(self, keys):
        self.seen = ""
        os.write(self.fd, keys.encode())

    def end(self):
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@case
def top_is_drawn_on_a_terminal():
    with Target() as target:
        target.send("aab")
        terminal = Terminal([TORSH, "top", "--interval", "100", target.pid])
        terminal.wait_for(rf"\b{target.pid}\b", "obeys", r"19\.6 KiB\s+20\b.*keep_first", "q quit", "sorted by live")
        # What changes is drawn anew.
        target.send("a")
        terminal.wait_for(r"29\.3 KiB|29\.3")
        terminal.press("s")
        terminal.wait_for("peak")
        terminal.press("p")
        terminal.wait_for("view is held")
        terminal.press("q")
        expect_equal(terminal.end(), 0, "status of torsh top")
        target.end()


@case
def top_ends_when_its_session_does():
    with Target() as target:
        target.send("a")
        terminal = Terminal([TORSH, "top", "--interval", "50", target.pid])
        terminal.wait_for("obeys")
        target.end()
        terminal.wait_for("has ended")
        expect_equal(terminal.end(), 0, "status of torsh top")


@case
def a_terminal_that_cannot_be_drawn_on_is_refused():
    terminal = Terminal([TORSH, "top"], term="no-such-terminal")
    terminal.wait_for("can't be drawn on")
    expect_equal(terminal.end(), 2, "status of torsh top")


main()
