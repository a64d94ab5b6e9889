#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What happens to the writer does not happen to the target, and the report says what is missing."""

import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

WRITER = BUILD / "torsh-writer"


def holds_file_below(pid, folder):
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if pathlib.Path(os.readlink(fd)).is_relative_to(folder):
                return True
        except OSError:
            pass
    return False


def writer_of(output):
    """Pid of the writer that has a recording below output open, or None."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(WRITER) and holds_file_below(entry.name, output):
                return int(entry.name)
        except OSError:
            pass
    return None


def run_beside(strike, n_blocks=2_000_000, how="return", **variables):
    """Starts the target, strikes its writer once there is one, and lets the target come to its end."""
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = agent_environment(output, **variables)
    with started(committed.command(counts, n_blocks, 1, how), env) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        wait_until(lambda: counts.kept() > 1000, "the first blocks")
        strike(pid)
        process.wait(TIMEOUT_S)
    assert counts.all_there(), "the target did not come to its end"
    expect_equal(counts.kept(), n_blocks, "blocks")
    expect_equal(process.returncode, 9, "status of the target")
    return output, counts


@case
def target_goes_on_when_the_writer_is_killed():
    output, counts = run_beside(lambda pid: os.kill(pid, signal.SIGKILL))
    events = leaks(output)["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    blocks, _ = committed.reported(output)
    assert blocks <= counts.kept()


@case
def a_stopped_writer_goes_on_where_it_was():
    # It is continued only after the target ended: the target may not wait for it without end.
    stopped = []

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)

    try:
        output, counts = run_beside(stop, n_blocks=200_000)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    blocks, _ = committed.reported(output)
    events = leaks(output)["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    # What is missing is counted: each lost block is a dropped event.
    assert counts.kept() - blocks <= events["dropped"], f"{counts.kept() - blocks} blocks lost, {events} said"


@case
def readers_of_the_targets_stderr_do_not_wait_for_the_writer():
    # Where no summary is wanted the writer has no need of it; `$(program 2>&1)` ends when the program does.
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = agent_environment(output)
    with started(committed.command(counts, 100, 1, "wait"), env, stderr=subprocess.PIPE) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        os.kill(pid, signal.SIGSTOP)
        try:
            process.kill()
            expect_equal(process.communicate(timeout=10)[1], b"", "stderr")
        finally:
            os.kill(pid, signal.SIGCONT)


@case
def the_writer_is_nobodys_child():
    script = "import os, subprocess; subprocess.run(['true'])\ntry: os.wait()\nexcept ChildProcessError: print('none')"
    result, output = record([sys.executable, "-c", script])
    expect_equal(result.stdout, b"none\n", "children that the target sees")
    assert recordings(output)


@case
def the_writer_ends_after_its_targets():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 10, 1, "wait"), agent_environment(output)) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        process.kill()
        process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the writer")
    committed.expect_all_reported(output, counts)


@case
def signals_of_the_terminal_do_not_end_the_writer():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 1000, 1, "wait"), agent_environment(output), start_new_session=True) as process:
        wait_until(counts.all_there, "all blocks")
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
    expect_equal(process.returncode, -signal.SIGINT, "status of the target")
    committed.expect_all_reported(output, counts)


main()
