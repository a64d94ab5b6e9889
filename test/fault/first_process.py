#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A target that is process 1 of its PID namespace, as in a container without an init: the kernel kills all with it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

WAYS = ("return", "exit", "_exit", "quick_exit")


def alone(*command, **more):
    """The command as process 1; the agent is only in it, not in what makes the namespace."""
    unshare = need_command("unshare")
    variables = [f"{name}={value}" for name, value in agent_environment("@", **more).items() if name.startswith(("LD_", "TORSH_"))]
    made = [unshare, "-Urpf", "--mount-proc"]
    if run([*made, "true"]).returncode != 0:
        raise Skip("no PID namespace can be made here")
    return lambda output: [*made, "env", *(v.replace("@", str(output)) for v in variables), *command]


def end_as(how, n_blocks):
    counts = committed.Counts(scratch("counts"))
    output = scratch()
    result = run(alone(*committed.command(counts, n_blocks, 1, how))(output))
    expected = {"return": 9, "exit": 8, "_exit": 5, "quick_exit": 7}[how]
    expect_equal(result.returncode, expected, f"status ({result.stderr!r})")
    assert counts.all_there()
    committed.expect_all_reported(output, counts)
    report = leaks(output)
    check_counts(report["events"])
    assert report["recording"]["complete"], report["recording"]
    (process,) = report["processes"]
    expect_equal(process["end"], f"exit {expected}", "how it ended")


for way in WAYS:
    add_case(f"all_is_reported_after_{way}", end_as, way, 300_000)


@case
def a_run_of_milliseconds_is_whole():
    for i in range(5):
        end_as("return", 10)


@case
def its_exports_are_written():
    counts, output = committed.Counts(scratch("counts")), scratch()
    command = alone(*committed.command(counts, 1000), TORSH_PROFILER_EXPORT_FORMAT="folded")(output)
    expect_equal(run(command).returncode, 9, "status")
    exported = recordings(output)[0].with_suffix(".folded").read_text()
    assert "keep_block" in exported, exported[:300]


@case
def so_it_is_for_a_program_that_it_becomes():
    counts, output = committed.Counts(scratch("counts")), scratch()
    expect_equal(run(alone("env", *committed.command(counts, 1000))(output)).returncode, 9, "status")
    committed.expect_all_reported(output, counts)


@case
def a_process_that_runs_on_is_said_to():
    counts, output = committed.Counts(scratch("counts")), scratch()
    script = (f"import os, signal\nif not os.fork():\n    signal.pause()\n"
              f"import subprocess; subprocess.run({[str(part) for part in committed.command(counts, 1000)]!r})")
    expect_equal(run(alone(sys.executable, "-c", script)(output)).returncode, 0, "status")
    recording = leaks(output)["recording"]
    assert not recording["complete"] and any("PID namespace" in reason for reason in recording["reasons"]), recording
    committed.expect_all_reported(output, counts)


def a_fatal_end(how):
    """The kernel ends the writer at once: what no checkpoint has is lost, and the first line says so; or nothing is there."""
    counts, output = committed.Counts(scratch("counts")), scratch()
    result = run(alone(*committed.command(counts, 1000, 1, how))(output))
    assert result.returncode < 0 or result.returncode > 128, f"status {result.returncode}"
    assert counts.all_there()
    for recording in recordings(output):
        said = run([TORSH, "leaks", recording])
        is_said = said.stdout.startswith(b"Incomplete:") or b"its writer was killed" in said.stderr
        assert is_said and b"No leaks" not in said.stdout, (said.stdout, said.stderr)


for way in ("segfault", "abort"):
    add_case(f"{way}_is_said_to_have_lost_the_last_seconds", a_fatal_end, way)

main()
