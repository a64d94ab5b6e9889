#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every way to start a process: all of them are in one report, each with its parent, its end, and what it kept."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import START, Truth, complete, expect_members, images, kept  # noqa: E402

STATUS = 33
SIZE = 1234
NOBODY, ITSELF, FORK, STARTER = "nobody", "itself", "a fork", "the starter"
# way: which process became the member, which one owns the block of a fork, and whether the shell of a child is
# between.
WAYS = {
    "exec": (ITSELF, NOBODY, False),
    "fexecve": (ITSELF, NOBODY, False),
    "execveat": (ITSELF, NOBODY, False),
    "fork": (FORK, FORK, False),
    "raw_fork": (FORK, FORK, False),
    "clone3": (FORK, FORK, False),
    "clone": (FORK, FORK, False),
    "clone_of_memory": (NOBODY, STARTER, False),
    "vfork": (NOBODY, NOBODY, False),
    "spawn": (NOBODY, NOBODY, False),
    "spawnp": (NOBODY, NOBODY, False),
    "system": (NOBODY, NOBODY, True),
    "popen": (NOBODY, NOBODY, True),
    "wordexp": (NOBODY, NOBODY, True),
}


def start(way):
    """The same status and output as without us; returns the report, what was alive at execs, and the truth."""
    bare = run([START, way, *Truth(scratch("bare")).member(SIZE, STATUS)])
    truth = Truth(scratch("truth"))
    result, output = record([START, way, *truth.member(SIZE, STATUS)])
    if result.returncode == 77:
        raise Skip(f"this kernel has no {way}")
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    report = complete(output)
    check_counts(report["events"])
    return report, leaks(output, "--at-exec"), truth


def started(way, becoming, forks_block, has_shell):
    report, at_exec, truth = start(way)
    expect_members(report, truth)
    member, starter = truth.members()[0], report["processes"][0]
    starter_at, other = (at_exec, report) if becoming == ITSELF else (report, at_exec)
    expect_equal(kept(starter_at, "keep_in_starter"), [(starter["pid"], 111)], "the starter's block")
    expect_equal(kept(other, "keep_in_starter"), [], "the starter's block elsewhere")
    owner = {FORK: [(member.pid, 222)], STARTER: [(starter["pid"], 222)], NOBODY: []}[forks_block]
    expect_equal(kept(at_exec if forks_block == FORK else report, "keep_in_fork"), owner, "the fork's block")
    if has_shell:
        chain = {process["pid"]: process["ppid"] for process in report["processes"]}
        at = member.pid
        while at in chain and at != starter["pid"]:
            at = chain[at]
        expect_equal(at, starter["pid"], f"where {chain} leads from {member.pid}")
        return
    if becoming != ITSELF:
        expect_equal(member.ppid, starter["pid"], "the member's parent")
    expect_equal({process["ppid"] for process in images(report, member.pid)},
                 {starter["ppid"] if becoming == ITSELF else starter["pid"]}, "its parent in the report")
    expect_equal([process["end"] for process in images(report, member.pid)],
                 ["exec"] * (becoming in (ITSELF, FORK)) + [f"exit {STATUS}"], "what the member was")


for name, row in WAYS.items():
    add_case(f"started_by_{name}", started, name, *row)


@case
def an_exec_that_fails_is_none():
    for way, end in (("failing_exec", 17), ("failing_vfork", 18)):
        result, output = record([START, way, "program"], scratch(way))
        expect_equal(result.returncode, end, f"status of {way}")
        report = leaks(output)
        ends = ["exit 17", "exit 17"] if way == "failing_exec" else ["exit 18"]
        expect_equal([process["end"] for process in report["processes"]], ends, f"ends of {way}")
        expect_equal(report["at_exec"], {"bytes": 0, "blocks": 0}, f"alive at an exec of {way}")
        expect_equal([size for _, size in kept(report, "keep_in_fork")], [222] * (way == "failing_exec"), "fork's block")


@case
def a_daemon_that_closed_every_descriptor_is_followed():
    report, at_exec, truth = start("daemon")
    expect_members(report, truth)
    member = truth.members()[0]
    starter, between = report["processes"][:2]
    expect_equal([process["ppid"] for process in images(report, member.pid)], [between["pid"]] * 2, "the daemon's parent")
    expect_equal((between["ppid"], between["end"], starter["end"]), (starter["pid"], "exit 0", "exit 0"), "its ancestors")
    expect_equal(kept(at_exec, "keep_in_fork"), [(member.pid, 222)], "what it kept before its exec")


@case
def a_process_that_outlives_its_parent_is_followed():
    report, at_exec, truth = start("outliving")
    expect_members(report, truth)
    member, starter = truth.members()[0], report["processes"][0]
    assert member.ppid != starter["pid"]
    expect_equal([process["ppid"] for process in images(report, member.pid)], [starter["pid"]] * 2, "its parent")
    expect_equal(starter["end"], "exit 19", "end of the parent")
    expect_equal(kept(at_exec, "keep_in_fork"), [(member.pid, 222)], "what it kept before its exec")


def wrapped(*command):
    """A wrapper around members: one session, whatever the wrapper does with the environment."""
    truth = Truth(scratch("truth"))
    bare = run([part(Truth(scratch("bare"))) if callable(part) else part for part in command])
    result, output = record([part(truth) if callable(part) else part for part in command])
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    expect_equal(len(recordings(output)), 1, "recordings")
    report = complete(output)
    expect_members(report, truth)
    pids = {process["pid"] for process in report["processes"]}
    for member in truth.members():
        # As a shell's parent is one, the chain leads to the first process.
        at, ppids = member.pid, {process["pid"]: process["ppid"] for process in report["processes"]}
        while ppids[at] in pids:
            at = ppids[at]
        expect_equal(at, report["processes"][0]["pid"], f"where the parents of {member} lead")
    return report, truth


def member(size, status):
    return lambda truth: shell_words(*truth.member(size, status))


def members(*lines):
    return lambda truth: "; ".join(line(truth) for line in lines)


TWO = members(member(501, 3), member(502, 4))
WRAPPERS = {
    "env_without_environment": (["env", "-i", "sh", "-c", TWO], 2),
    "shell": (["sh", "-c", TWO], 2),
    "shell_in_the_background": (["sh", "-c", lambda truth: f"{member(501, 3)(truth)} & {member(502, 4)(truth)}; wait"], 2),
    "pipe": (["sh", "-c", lambda truth: f"{member(501, 3)(truth)} | {member(502, 4)(truth)}"], 2),
    "timeout": (["timeout", "60", "sh", "-c", TWO], 2),
    "nice": (["nice", "-n", "1", "sh", "-c", TWO], 2),
    "nohup_setsid": (["setsid", "--wait", "nohup", "sh", "-c", TWO], 2),
    "xargs": (["sh", "-c", lambda truth: f"printf '501 3\\n502 4\\n' | xargs -L1 {shell_words(*truth.member('', '')[:2])}"], 2),
    "find": (["find", "/dev/null", "-exec", "sh", "-c", TWO, ";"], 2),
}


def wrapper(command, n_members):
    need_command(command[0])
    _, truth = wrapped(*command)
    expect_equal(len(truth.members()), n_members, "members")


for name, row in WRAPPERS.items():
    add_case(f"below_{name}", wrapper, *row)


@case
def a_filter_records_what_matches_and_nothing_else():
    """env and the shells between are inert, and what they start is followed all the same."""
    truth = Truth(scratch("truth"))
    _, output = record(["env", "-i", "sh", "-c", TWO(truth)], env={"TORSH_PROFILER_FILTER": "member"})
    reports = [complete(recording) for recording in recordings(output)]
    expect_equal({process["program"] for report in reports for process in report["processes"]},
                 {str((PROGRAMS / "member").resolve())}, "programs")
    found = sorted(block for report in reports for block in kept(report, "keep_in_member"))
    expect_equal(found, [(one.pid, one.size) for one in truth.members()], "blocks of the members")


main()
