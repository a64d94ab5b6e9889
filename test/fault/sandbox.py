#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that take system calls from themselves, on pain of death: they end as they do without the agent."""

import errno
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target, snapshot  # noqa: E402

N_KEPT = 5
N_TOUCHED_BYTES = 64 << 20
# way: its status, and blocks of the child that are recorded
WAYS = {"exit": (11, 0), "leave": (12, 0), "allocate": (13, 0), "fork": (14, 0), "harmless": (14, 1), "exec": (18, 0), "thread": (15, 0), "beside": (17, 0)}


def live(how, way, status, n_of_child):
    # Only the writer sees a filter that the agent did not see, and it cannot decide whether that is
    # harmless.
    is_seen = how != "past"
    command = [PROGRAMS / "sandbox", how, way]
    expect_equal(run(command).returncode, status, "status without the agent")
    result, output = record(command, env={"TORSH_PROFILER_RING": "64K"})
    expect_equal((result.returncode, result.stdout, result.stderr), (status, b"", b""), "status and output")
    report = leaks(output)
    for name, n in {"keep_in_sandbox": N_KEPT, "keep_in_child": n_of_child if is_seen else 0}.items():
        expect_equal(total(entries_through(report["leaks"], name), "blocks"), n, f"blocks of {name}")
    check_counts(report["events"])
    is_reported = "children from then on are not recorded" in torsh("report", output)
    # A refused call ends nobody: the child tries, and is counted.
    expect_equal(is_reported, (way != "harmless" and how != "errno") or not is_seen, "the report has what is not recorded")
    # The peak memory cannot be read afterwards, and no filter keeps the writer from reading it
    # before.
    for process in filter(lambda process: process["followed"] and process["end"].startswith("exit"), report["processes"]):
        source = read_report("peak", output, "--pid", str(process["pid"]))["rss_peak_source"]
        assert "when it exited" in source, source


def become_strict(how):
    command = [PROGRAMS / "sandbox", how, "strict"]
    expect_equal(run(command).returncode, 16, "status without the agent")
    result, output = record(command)
    expect_equal(result.returncode, 16, "status")
    report = leaks(output)
    expect_equal(total(entries_through(report["leaks"], "keep_in_sandbox"), "blocks"), N_KEPT, "blocks of before")
    events = report["events"]
    expect_equal(events["dropped"], 2000, "events that could not be stamped any more")
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "events produced")


@case
def a_program_that_it_becomes_is_listed():
    result, output = record([PROGRAMS / "sandbox", "prctl", "become"])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"still here\n", b""), "status and output")
    listed = [(process["program"].split("/")[-1], "(seccomp)" in process["reason"]) for process in leaks(output)["processes"]
              if not process["followed"]]
    expect_equal(listed, [("echo", True)], "programs that were not followed")


def watched_bytes(pid):
    processes = read_report("report", snapshot(pid))["processes"]
    return next(process["rss_peak_bytes"] or 0 for process in processes if process["pid"] == pid)


def go_on(how, is_known):
    """The writer has seen the filters, by reads of the memory that was touched before and after
    them."""
    with Target([PROGRAMS / "sandbox", how, "on"]) as target:
        for n_rounds in (1, 2):
            expect_equal(target.process.stdout.read(1), b".", "before the filters, then behind them")
            wait_until(lambda: watched_bytes(target.pid) >= n_rounds * N_TOUCHED_BYTES, "the writer's look at the process")
            target.process.stdin.write(b".")
            target.process.stdin.flush()
        expect_equal(target.process.wait(TIMEOUT_S), 14, "status")
        report = leaks(target.output)
    # The child of the first program, and that of the one that it becomes.
    expect_equal(total(entries_through(report["leaks"], "keep_in_child"), "blocks"), 2 if is_known else 0, "blocks of children")
    listed = [process["program"].split("/")[-1] for process in report["processes"] if not process["followed"]]
    expect_equal(listed, [] if is_known else ["exe"], "programs that were not followed")


for form, known in {"prctl": True, "syscall": True, "together": True, "past": False, "both": False, "refused": False,
                    "apart": False}.items():
    add_case(f"goes_on_behind_a_harmless_filter_by_{form}" if known else f"notices_an_unknown_filter_{form}", go_on, form, known)

for how in ("prctl", "syscall", "errno", "trap", "past"):
    for name, (code, n_blocks) in WAYS.items():
        add_case(f"under_a_filter_by_{how}_{name}", live, how, name, code, n_blocks)
    if how in ("prctl", "syscall"):
        add_case(f"in_strict_mode_by_{how}", become_strict, how)


def announce(disposition):
    def run_refused(command, environment):
        # The agent comes with the program only, which has the disposition by inheritance.
        words = [PROGRAMS / "announced", "env", *(f"{name}={value}" for name, value in environment.items()), *command]
        return run(words, clean_environment(), preexec_fn=lambda: signal.signal(signal.SIGCHLD, disposition))

    output, program = scratch("recording"), [PROGRAMS / "announced"]
    bare = run_refused(program, {})
    expect_equal(bare.stdout, f"pending 0, blocked 0, wait {errno.ECHILD}\n".encode(), "output without the agent")
    result = run_refused(program, agent_environment(output))
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), f"outcome ({result.stderr.decode()})")
    expect_equal(total(entries_through(leaks(output)["leaks"], "keep_some"), "blocks"), N_KEPT, "blocks")


add_case("the_writer_starts_where_each_child_has_a_signal", announce, signal.SIG_DFL)
add_case("the_writer_starts_where_that_signal_is_ignored", announce, signal.SIG_IGN)


if __name__ == "__main__":
    main()
