#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A target that is process 1 of its PID namespace, as in a container without an init: the kernel kills all with it."""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

WAYS = ("return", "exit", "_exit", "quick_exit")
THROWS = r"""
#include <cstdlib>
extern "C" __attribute__((noinline)) void *keep_one() { return std::malloc(48); }
int main()
{
	for (int i = 0; i < 100000; i++)
		if (!keep_one())
			return 1;
	throw 5;
}
"""


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


def end_by_abort(bare_command, command):
    """As without the agent; not by SIGABRT, which can't end process 1. Returns where it is recorded."""
    bare, output = run(alone(*bare_command, LD_PRELOAD="")(scratch("bare"))), scratch()
    result = run(alone(*command)(output))
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")
    assert result.returncode not in (0, 9), f"status {result.returncode}"
    return output


def all_is_reported_after(how):
    counts_bare, counts = (committed.Counts(scratch(name)) for name in ("counts_bare", "counts"))
    output = end_by_abort(*(committed.command(each, 300_000, 1, how) for each in (counts_bare, counts)))
    assert counts.all_there()
    committed.expect_all_reported(output, counts)
    report = leaks(output)
    check_counts(report["events"])
    assert report["recording"]["complete"], report["recording"]
    (process,) = report["processes"]
    expect_equal(process["end"], "vanished", "how it ended, which nobody is there to see")
    assert "it aborted as process 1" in torsh("report", output)


for way in ("abort", "assert", "assert_perror"):
    add_case(f"all_is_reported_after_{way}", all_is_reported_after, way)


@case
def an_assertion_of_any_other_process_ends_it_as_without_the_agent():
    counts_bare, counts, output = committed.Counts(scratch("counts_bare")), committed.Counts(scratch("counts")), scratch()
    bare = run(committed.command(counts_bare, 1000, 1, "assert"))
    result = run(committed.command(counts, 1000, 1, "assert"), agent_environment(output))
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")
    expect_equal(result.returncode, -signal.SIGABRT, "status")
    committed.expect_all_reported(output, counts)
    assert "aborted as process 1" not in torsh("report", output)


@case
def all_is_reported_after_an_exception_that_nobody_catches():
    folder = scratch("program")
    (folder / "throws.cc").write_text(THROWS)
    expect_equal(run(["g++", "-O0", "-o", folder / "throws", folder / "throws.cc"]).returncode, 0, "compiler")
    output = end_by_abort([folder / "throws"], [folder / "throws"])
    expect_equal(total(entries_through(leaks(output)["leaks"], "keep_one"), "blocks"), 100_000, "blocks")


@case
def a_handler_of_the_programs_own_has_its_way_with_an_abort():
    script = ("import os, signal\nsignal.signal(signal.SIGABRT, lambda *_: None)\nimport ctypes\n"
              "libc = ctypes.CDLL(None)\nHANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)\n"
              "leave = HANDLER(lambda number: os._exit(33))\nlibc.signal(6, leave)\nlibc.abort()\n")
    output = scratch()
    expect_equal(run(alone(sys.executable, "-c", script)(output)).returncode, 33, "status")
    report = leaks(output)
    assert report["recording"]["complete"], report["recording"]
    expect_equal([process["end"] for process in report["processes"]], ["exit 33"], "how it ended")


def a_fatal_end(how):
    """The kernel ends the writer at once: what no checkpoint has is lost, and the first line says so; or nothing is there."""
    counts, output = committed.Counts(scratch("counts")), scratch()
    result = run(alone(*committed.command(counts, 1000, 1, how))(output))
    assert result.returncode < 0 or result.returncode > 128, f"status {result.returncode}"
    assert counts.all_there()
    for recording in recordings(output):
        said = run([TORSH, "leaks", recording])
        is_said = said.stdout.startswith(b"Incomplete:") or any(end in said.stderr for end in (b"was killed", b"has no process in it"))
        assert is_said and b"No leaks" not in said.stdout, (said.stdout, said.stderr)


for way in ("segfault", "overflow", "double_free"):
    add_case(f"{way}_is_said_to_have_lost_the_last_seconds", a_fatal_end, way)

main()
