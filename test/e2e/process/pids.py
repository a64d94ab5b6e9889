#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pids that come back, and pids of other namespaces: each process is itself, whatever its number."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import MEMBER, START, Truth, complete, images, kept  # noqa: E402

IN_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
# The kernel gives the next pid out. A thread of the writer may have begun in between: then it is tried again, and the child
# that got another pid ends with 4.
AGAIN = """
for size in 501 502 503; do
    status=4
    while [ $status = 4 ]; do
        echo 99 >/proc/sys/kernel/ns_last_pid
        ( read -r pid rest </proc/self/stat; [ "$pid" = 100 ] || exit 4; exec "$0" "$1" $size 3 )
        status=$?
    done
done
true
"""


def need_namespaces():
    need_root()
    need_command("unshare")
    if run([*IN_NAMESPACE, "sh", "-c", "echo 99 >/proc/sys/kernel/ns_last_pid"]).returncode:
        raise Skip("no pid namespace can be made here, or no pid be chosen in it")


def below(env, *command):
    """The variables are set inside: the namespace's first process is not recorded, and the session is within."""
    return ["env", *(f"{name}={value}" for name, value in env.items()), *command]


@case
def a_pid_that_comes_back_is_another_process():
    need_namespaces()
    output, truth = scratch(), Truth(scratch("truth"))
    env = agent_environment(output)
    # When the namespace's first process ends, so does the writer: it waits for the report.
    script = f"{shell_words(*below(env, 'sh', '-c', AGAIN, MEMBER, truth.path))}; {shell_words(TORSH, 'leaks', output)}"
    result = run([*IN_NAMESPACE, "sh", "-c", script])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    members = truth.members()
    expect_equal({member.pid for member in members}, {100}, "pids of the members")
    report = complete(output)
    expect_equal(kept(report, "keep_in_member"), [(100, size) for size in (501, 502, 503)], "blocks of the members")
    expect_equal([process["end"] for process in images(report, 100)], ["exec", "exit 3"] * 3, "ends")
    # Each is below the shell, not below the one that had its pid before.
    lines = [line for line in torsh("report", output, "--tree").splitlines() if "exit 4" not in line]
    depths = [len(line) - len(line.lstrip("│├└─ ")) for line in lines]
    expect_equal(depths, [0] + [3, 6] * 3, f"depths of {lines}")
    for process in images(report, 100):
        expect_equal(process["ppid"], report["processes"][0]["pid"], "parent")
        if process["end"] == "exec":
            assert process["inherited"]["blocks"] > 0, process


@case
def a_namespace_within_a_session_is_followed():
    """Pids in the report are those that its reader sees."""
    need_namespaces()
    truth = Truth(scratch("truth"))
    result, output = record([*IN_NAMESPACE, START, "fork", *truth.member(504, 3)])
    expect_equal(result.returncode, 3, f"status ({result.stderr.decode()})")
    report = complete(output)
    outside, inside = report["processes"][0], report["processes"][-1]
    expect_equal(truth.members()[0].ppid, 1, "the starter's pid within")
    expect_equal(kept(report, "keep_in_member"), [(inside["pid"], 504)], "the member's block")
    starter = next(process for process in report["processes"] if process["program"] == str(START.resolve()))
    assert starter["pid"] not in (1, inside["pid"]), report["processes"]
    expect_equal((inside["ppid"], starter["ppid"]), (starter["pid"], outside["pid"]), "parents")
    expect_equal((starter["end"], inside["end"], outside["end"]), ("exit 3",) * 3, "ends")


main()
