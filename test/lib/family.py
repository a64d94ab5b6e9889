# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The programs test/programs/process/start.c and member.c, and Python's like: the members' own
output, and reports."""

import collections

from harness import PROGRAMS, add_case, entries_through, expect_equal, leaks, wait_until  # noqa: F401

START, MEMBER = PROGRAMS / "start", PROGRAMS / "member"
Member = collections.namedtuple("Member", "pid ppid size end")


class Truth:
    """The file in which each member writes its pid, its parent's, what it keeps and how it is going to end."""

    def __init__(self, folder):
        self.path = folder / "members"
        self.path.touch()
        # A member may run as another user.
        self.path.chmod(0o666)

    def members(self):
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return sorted(Member(int(pid), int(ppid), int(size), end) for pid, ppid, size, end in lines)

    def member(self, size, end):
        """The command of one."""
        return [MEMBER, self.path, size, end]


def complete(output, *arguments):
    """The report of a session that goes on without the process that began it, when all of it has ended."""
    def report():
        found = leaks(output, *arguments)
        return found if found["recording"]["complete"] else None
    return wait_until(report, "the end of the session")


def kept(report, function, size=None):
    """(pid, bytes) of each block that a function kept."""
    return sorted((entry["pid"], entry["bytes"] // entry["blocks"]) for entry in entries_through(report["leaks"], function)
                  for _ in range(entry["blocks"]))


def images(report, pid):
    """All that a process was, in order: it has a row for each program."""
    return [process for process in report["processes"] if process["pid"] == pid]


def expect_members(report, truth, ends=None):
    """Each member is there by its pid, ended as it announced, and what it kept is its own."""
    members = truth.members()
    expect_equal(kept(report, "keep_in_member"), [(member.pid, member.size) for member in members],
                 "pids and sizes of what members kept")
    for member in members:
        found = [image for image in images(report, member.pid) if image["followed"]][-1]
        end = (ends or {}).get(member.pid, f"exit {member.end}")
        expect_equal((found["program"], found["end"]), (str(MEMBER.resolve()), end), f"program and end of {member}")
        expect_equal(found["arguments"][1:], [str(truth.path), str(member.size), member.end], f"arguments of {member}")
    expect_times(report)


def expect_times(report):
    for process in report["processes"]:
        if process["end_ns"] is not None:
            assert process["start_ns"] <= process["end_ns"], process
