#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""SIGKILL of a parent, of its child, and of both: what each had counted is in its own report, and ends are named."""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403
from family import MEMBER, START, Truth, complete, expect_members, kept  # noqa: E402

STATUS = 128 + signal.SIGKILL


def running(way, output, truth):
    """A starter with a member that waits to be killed."""
    return started([START, way, *truth.member(70, "wait")], agent_environment(output))


def wait_for_member(truth):
    return wait_until(truth.members, "the member")[0]


def kill_some(way, kills_parent, kills_child):
    output, truth = scratch(), Truth(scratch("truth"))
    with running(way, output, truth) as starter:
        member = wait_for_member(truth)
        if kills_parent:
            starter.kill()
            starter.wait()
        if not kills_child:
            # It goes on, and so does its recording, until it is killed too.
            before = wait_until(lambda: goes_on_alone(output, member, starter.pid), "the member in the report")
            expect_equal(ends(before)[member.pid], "running", "end of the member that lives")
            expect_equal(ends(before)[starter.pid], "signal 9", "end of its parent")
        os.kill(member.pid, signal.SIGKILL)
        expect_equal(starter.wait(), -signal.SIGKILL if kills_parent else STATUS, "status of the parent")
    report = complete(output)
    expect_members(report, truth, {member.pid: "signal 9"})
    expect_equal(ends(report)[starter.pid], "signal 9" if kills_parent else f"exit {STATUS}", "end of the parent")
    expect_equal(kept(report, "keep_in_starter"), [(starter.pid, 111)], "the parent's block")
    expect_equal(len(recordings(output)), 1, "recordings")
    check_counts(report["events"])


def ends(report):
    """Of each process's last image."""
    return {process["pid"]: process["end"] for process in report["processes"]}


def goes_on_alone(output, member, parent):
    """The report, as soon as it has the member, and its parent's end."""
    if run([TORSH, "leaks", output, "--json"]).returncode:
        return None
    report = leaks(output)
    programs = {process["pid"]: process["program"] for process in report["processes"]}
    is_there = programs.get(member.pid) == str(MEMBER.resolve())
    return report if is_there and ends(report)[parent] != "running" else None


for way in ("fork", "vfork", "spawn", "clone", "system"):
    add_case(f"child_started_by_{way}_is_killed", kill_some, way, False, True)
    add_case(f"both_are_killed_where_{way}_started_the_child", kill_some, way, True, True)
    add_case(f"parent_is_killed_before_the_child_that_{way}_started", kill_some, way, True, False)


FORK_AND_WAIT = """
import os, signal, sys
read, write = os.pipe()
pids = []
for i in range(8):
    pid = os.fork()
    if not pid:
        # Nothing was done yet that allocates, as far as C goes: it is in the report all the same.
        os.write(write, b'x')
        signal.pause()
    pids.append(pid)
for i in range(8):
    os.read(read, 1)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
for pid in pids:
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == 9
print(*pids)
"""


@case
def forks_that_are_killed_at_once_are_listed():
    result, output = record(["/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable, "-c",
                             FORK_AND_WAIT])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    report = complete(output)
    parent, *forks = report["processes"]
    expect_equal({(fork["pid"], fork["ppid"], fork["end"]) for fork in forks},
                 {(int(pid), parent["pid"], "signal 9") for pid in result.stdout.split()}, "forks")
    for fork in forks:
        assert fork["inherited"]["blocks"] > 0 and fork["inherited"]["bytes"] > 0, fork


def kill_at_random_moments(kills_parent):
    """What was committed before a kill is reported, in the process that counted it: parent and child count apart."""
    for number in range(3 if IS_QUICK else 12):
        output, counts = scratch(f"out{number}"), committed.Counts(scratch(f"counts{number}"))
        other = committed.Counts(scratch(f"other{number}"))
        command = ["sh", "-c", '"$0" "$2" 1099511627776 1 wait & "$0" "$1" 1099511627776 1 wait',
                   committed.PROGRAM, counts.path, other.path]
        with started(command, agent_environment(output)) as shell:
            wait_until(lambda: min(counts.kept(), other.kept()) > 10 * 4 ** (number % 6), "blocks of both")
            first = [pid for pid in children(shell.pid) if str(counts.path) in command_line(pid)]
            second = [pid for pid in children(shell.pid) if str(other.path) in command_line(pid)]
            victims = first + second if not kills_parent else [shell.pid, *first, *second]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
        report = complete(output, "--no-lines")
        for pid, truth in ((first[0], counts), (second[0], other)):
            found = [entry for entry in entries_through(report["leaks"], "keep_block") if entry["pid"] == pid]
            n_kept = truth.kept()
            assert n_kept <= total(found, "blocks") <= n_kept + 1, f"{n_kept} counted, {total(found, 'blocks')} reported"
            expect_equal(ends(report)[pid], "signal 9", "end")


def children(pid):
    """Of a process: by what the kernel lists for its threads."""
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_line(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()


for kills in (False, True):
    add_case(f"two_members_are_killed_at_random_moments{'_with_their_shell' if kills else ''}", kill_at_random_moments, kills)

main()
