#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A target that is process 1 of its PID namespace, as in a container without an init: the kernel kills all with it."""

import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

CUT_OFF = (r"Incomplete: the writer was killed \(the kernel does that when process 1 of a PID namespace, here the first process, "
           r"ends\), and nothing is known of what came later than .* after the start")
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


def counts_and_output():
    return committed.Counts(scratch("counts")), scratch()


def expect_whole(output, counts, end):
    """The program came to its end, and nothing of it is missing."""
    assert counts.all_there()
    committed.expect_all_reported(output, counts)
    report = leaks(output)
    check_counts(report["events"])
    assert report["recording"]["complete"], report["recording"]
    expect_equal([process["end"] for process in report["processes"]], [end], "how it ended")


def end_as(how, n_blocks):
    counts, output = counts_and_output()
    result = run(alone(*committed.command(counts, n_blocks, 1, how))(output))
    expected = {"return": 9, "exit": 8, "_exit": 5, "quick_exit": 7}[how]
    expect_equal(result.returncode, expected, f"status ({result.stderr!r})")
    expect_whole(output, counts, f"exit {expected}")


for way in WAYS:
    add_case(f"all_is_reported_after_{way}", end_as, way, 300_000)


@case
def a_run_of_milliseconds_is_whole():
    for i in range(5):
        end_as("return", 10)


@case
def its_exports_are_written():
    counts, output = counts_and_output()
    command = alone(*committed.command(counts, 1000), TORSH_PROFILER_EXPORT_FORMAT="folded")(output)
    expect_equal(run(command).returncode, 9, "status")
    exported = recordings(output)[0].with_suffix(".folded").read_text()
    assert "keep_block" in exported, exported[:300]


@case
def so_it_is_for_a_program_that_it_becomes():
    counts, output = counts_and_output()
    expect_equal(run(alone("env", *committed.command(counts, 1000))(output)).returncode, 9, "status")
    committed.expect_all_reported(output, counts)


@case
def a_process_that_runs_on_is_reported_as_running():
    counts, output = counts_and_output()
    script = (f"import os, signal\nif not os.fork():\n    signal.pause()\n"
              f"import subprocess; subprocess.run({[str(part) for part in committed.command(counts, 1000)]!r})")
    expect_equal(run(alone(sys.executable, "-c", script)(output)).returncode, 0, "status")
    recording = leaks(output)["recording"]
    assert not recording["complete"] and any("PID namespace" in reason for reason in recording["reasons"]), recording
    committed.expect_all_reported(output, counts)


def expect_same_outcome(bare, result):
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")


def end_by_abort(command, counts=None):
    """As without the agent; not by SIGABRT, which can't end process 1. Returns where it is recorded."""
    bare, output = run(alone(*command, LD_PRELOAD="")(scratch("bare"))), scratch()
    if counts:
        counts.clear()
    result = run(alone(*command)(output))
    expect_same_outcome(bare, result)
    assert result.returncode not in (0, 9), f"status {result.returncode}"
    return output


def all_is_reported_after(how):
    counts = committed.Counts(scratch("counts"))
    output = end_by_abort(committed.command(counts, 300_000, 1, how), counts)
    # Nobody is there to see how it ended.
    expect_whole(output, counts, "vanished")
    assert "it aborted as process 1" in torsh("report", output)


for way in ("abort", "assert", "assert_perror"):
    add_case(f"all_is_reported_after_{way}", all_is_reported_after, way)


@case
def an_assertion_of_any_other_process_ends_it_as_without_the_agent():
    counts, output = counts_and_output()
    command = committed.command(counts, 1000, 1, "assert")
    bare = run(command)
    counts.clear()
    result = run(command, agent_environment(output))
    expect_same_outcome(bare, result)
    expect_equal(result.returncode, -signal.SIGABRT, "status")
    committed.expect_all_reported(output, counts)
    assert "aborted as process 1" not in torsh("report", output)


@case
def all_is_reported_after_an_exception_that_nobody_catches():
    folder = scratch("program")
    (folder / "throws.cc").write_text(THROWS)
    expect_equal(run(["g++", "-O0", "-o", folder / "throws", folder / "throws.cc"]).returncode, 0, "compiler")
    output = end_by_abort([folder / "throws"])
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


def is_fatal(status):
    return status < 0 or status > 128


def expect_cut_off(output):
    """Its recording, which exists and reports that it was cut off, why, and from which moment on
    data are missing."""
    report = leaks(output)
    recording = report["recording"]
    assert not recording["complete"] and not recording["damaged"] and recording["known_until_ns"] is not None, recording
    first_line = torsh("leaks", output).splitlines()[0]
    assert re.search(CUT_OFF, first_line), first_line
    expect_equal([process["program"] for process in report["processes"]], [str(committed.PROGRAM.resolve())], "processes")
    expect_equal(run([TORSH, "check", output, "--max-leak", "1G"]).returncode, 1, "status of a check")


def a_fatal_end(how):
    """The kernel ends the writer at once: all up to the last checkpoint is there, which holds what it committed before that."""
    counts, output = counts_and_output()
    counts.hold(True)
    with started(alone(*committed.command(counts, 1000, 1, how), TORSH_PROFILER_CHECKPOINT="50ms")(output), clean_environment(),
                 stderr=subprocess.DEVNULL) as process:
        wait_until(counts.all_there, "its blocks")
        wait_until(lambda: committed.reported(output)[0] == 1000, "a checkpoint that has them")
        counts.hold(False)
        assert is_fatal(process.wait(TIMEOUT_S)), f"status {process.returncode}"
    committed.expect_all_reported(output, counts)
    expect_cut_off(output)


def a_fatal_end_of_a_run_of_milliseconds(how):
    for _ in range(5):
        counts, output = counts_and_output()
        result = run(alone(*committed.command(counts, 10, 1, how))(output))
        assert is_fatal(result.returncode) and counts.all_there(), f"status {result.returncode}"
        expect_cut_off(output)


for way in ("segfault", "overflow", "double_free"):
    add_case(f"a_run_of_milliseconds_is_said_to_be_cut_off_by_{way}", a_fatal_end_of_a_run_of_milliseconds, way)
    add_case(f"up_to_the_last_checkpoint_all_is_there_after_{way}", a_fatal_end, way)

main()
