#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processes and threads that begin and end in many ways: same status, and exactly what each of them kept."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

OTHER = PROGRAMS / "operators"

# way: {function that keeps: (blocks, bytes)}, over all processes of the session
KEPT = {
    "fork": {"keep_in_parent": (4, 4 * 300), "keep_in_child": (3, 3 * 400)},
    "fork_with_threads": {"keep_in_child": (50, 50 * 400), "keep_in_thread": (4, 4 * 500)},
    "fork_of_fork": {"keep_in_child": (2, 2 * 400)},
    "vfork_and_exit": {"keep_in_parent": (5, 5 * 300)},
    "vfork_and_exec": {"keep_in_parent": (5, 5 * 300), "shop::leak_new()": (1, 2001)},
    "spawn": {"keep_in_parent": (5, 5 * 300), "shop::leak_new()": (1, 2001)},
    "exec_without_environment": {"shop::leak_new()": (1, 2001)},
    "shell": {"keep_in_parent": (5, 5 * 300)},
    "at_exit": {"keep_at_exit": (1, 600)},
    "threads_with_destructors": {},
    "hundred_threads": {"align_hundred": (10000, 10000 * 501)},
    "terminated": {"keep_in_parent": (5, 5 * 300)},
    "with_closed_streams": {"keep_in_parent": (5, 5 * 300)},
}
# The same of what was alive when a process became another program: no leak.
AT_EXEC = {"exec_without_environment": {"keep_in_parent": (5, 5 * 300)}}
KEEPERS = sorted({name for kept in KEPT.values() for name in kept} | {"run_with_destructors", "free_of_thread"})


def check_kept(report, kept):
    for name in KEEPERS:
        found = entries_through(report["leaks"], name)
        expect_equal((total(found, "blocks"), total(found)), kept.get(name, (0, 0)), f"blocks and bytes of {name}")


def live(way):
    command = [PROGRAMS / "lifecycle", way, OTHER]
    bare = run(command)
    result, output = record(command)
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    report = leaks(output)
    check_kept(report, KEPT[way])
    check_kept(leaks(output, "--at-exec"), AT_EXEC.get(way, {}))
    check_counts(report["events"])


for name in KEPT:
    add_case(name, live, name)


@case
def a_child_has_its_own_row():
    _, output = record([PROGRAMS / "lifecycle", "fork", OTHER])
    report = leaks(output)
    by_pid = {process["pid"]: process for process in report["processes"]}
    expect_equal(len(by_pid), 2, "processes")
    child = next(p for p in by_pid.values() if p["ppid"] in by_pid)
    expect_equal(child["leaked_bytes"] if not entries_through(report["leaks"], "main") else 1200, 1200, "bytes of the child")
    for entry in entries_through(report["leaks"], "keep_in_child"):
        expect_equal(entry["pid"], child["pid"], "process of the child's blocks")


@case
def a_process_title_over_the_environment_changes_no_settings_of_children():
    command = [PROGRAMS / "lifecycle", "overwritten_environment", need_command("env")]
    settings = {"TORSH_PROFILER_RECORD": "full", "TORSH_PROFILER_RING": "256K"}
    result, _ = record(command, env=settings)
    expect_equal(result.returncode, 0, "status")
    found = result.stdout.decode().splitlines()
    expect_equal([line for line in found if line.startswith("x")], [], "garbage in the child's environment")
    for name, value in settings.items():
        assert f"{name}={value}" in found, f"the child has no {name}={value}"


@case
def ranks_are_those_that_the_launcher_gave():
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"):
        _, output = record([PROGRAMS / "lifecycle", "fork", OTHER], env={name: "3"})
        expect_equal([process["rank"] for process in leaks(output)["processes"]], [3, 3], f"ranks by {name}")
    expect_equal(leaks(output, "--rank", "3")["leaked_blocks"], leaks(output)["leaked_blocks"], "blocks of rank 3")
    torsh("leaks", output, "--rank", "4", expect=2)
    _, output = record([OTHER])
    expect_equal([process["rank"] for process in leaks(output)["processes"]], [None], "rank without a launcher")


@case
def the_tree_shows_who_started_whom():
    inner = f"{OTHER}; {OTHER}"
    _, output = record(["env", "-i", "sh", "-c", f"{OTHER}; sh -c '{inner}'; true"])
    report = leaks(output)
    lines = torsh("report", output, "--tree").splitlines()
    expect_equal(len(lines), len(report["processes"]), "lines")
    depths = [len(line) - len(line.lstrip("│├└─ ")) for line in lines]
    # env became the shell by exec: that is below it. The shell started one program and another shell, that one two.
    expect_equal(depths, [0, 3, 6, 6, 9, 9], "depths")
    names = [line.lstrip("│├└─ ").split()[0] for line in lines]
    expect_equal([name == OTHER.name for name in names], [False, False, True, False, True, True], f"programs of {names}")
    expect_equal(sorted(re.search(r"\(pid (\d+)", line)[1] for line in lines),
                 sorted(str(process["pid"]) for process in report["processes"]), "pids")


@case
def children_are_not_followed_when_configured():
    result, output = record([PROGRAMS / "lifecycle", "spawn", OTHER], env={"TORSH_PROFILER_FOLLOW": "0"})
    expect_equal(result.returncode, 0, "status")
    report = leaks(output)
    expect_equal(len(report["processes"]), 1, "processes")
    assert not entries_through(report["leaks"], "shop::leak_new()")


@case
def what_was_alive_at_an_exec_is_no_leak():
    _, output = record([PROGRAMS / "lifecycle", "exec_without_environment", OTHER])
    report = leaks(output)
    before, after = report["processes"]
    expect_equal((before["pid"], before["end"], after["end"]), (after["pid"], "exec", "exit 0"), "images of the process")
    expect_equal((before["leaked_blocks"], after["at_exec_blocks"]), (0, 0), "blocks counted for the wrong end")
    assert before["at_exec_bytes"] >= 5 * 300 and before["at_exec_blocks"] >= 5, before
    expect_equal(report["at_exec"], {"bytes": before["at_exec_bytes"], "blocks": before["at_exec_blocks"]}, "sums")
    at_exec = leaks(output, "--at-exec")
    expect_equal(bytes_at_end(at_exec) - at_exec["at_exec"]["bytes"], before["at_exec_bytes"],
                 "bytes that --at-exec shows and leaves out")
    assert "5 blocks" in torsh("leaks", output, "--at-exec")
    for command in ("leaks", "report"):
        assert "alive when a process became another program" in torsh(command, output), command
    torsh("check", output, "--max-leak", str(after["leaked_bytes"]))


@case
def ends_are_named():
    for way, end in (("terminated", "15"), ("at_exit", "25")):
        _, output = record([PROGRAMS / "lifecycle", way, OTHER])
        process = leaks(output)["processes"][0]
        assert end in process["end"] or "TERM" in process["end"], f"{way}: {process['end']!r}"


main()
