#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The highest resident set in reports is the one that the kernel reports to the process's parent
(wait4)."""

import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target, session_of  # noqa: E402

N_AT_ONCE = 150  # more than the writer can wait for in one call

# 60 MiB within some 100 ms, and an end without the C library, as in Go programs.
ABRUPT = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 30; i++) {
		memset(malloc(2 << 20), 1, 2 << 20);
		nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	}
	syscall(SYS_exit_group, 0);
}
"""

MANY = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int ends[2], n = 0;
	char letter;
	if (pipe(ends))
		return 1;
	for (int i = 0; i < N_AT_ONCE; i++) {
		if (fork())
			continue;
		close(ends[1]);
		memset(malloc(1 << 20), 1, 1 << 20);
		_exit(read(ends[0], &letter, 1) != 0);
	}
	close(ends[1]);
	for (int status; wait(&status) > 0 && !status;)
		n++;
	return n != N_AT_ONCE;
}
""".replace("N_AT_ONCE", str(N_AT_ONCE))

GO = """
package main

import "C" // linked dynamically
import "time"

var kept [][]byte

func main() {
	for i := 0; i < 30; i++ {
		made := make([]byte, 2<<20)
		for j := range made {
			made[j] = 1
		}
		kept = append(kept, made)
		time.Sleep(3 * time.Millisecond)
	}
}
"""


def resident_sets(command):
    """As reported, and as the kernel has it."""
    output = scratch("recording")
    process = subprocess.Popen([str(word) for word in command], env=agent_environment(output))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    expect_equal(process.returncode, 0, "status")
    return peak(output), usage.ru_maxrss * 1024


def said_at_the_exit(command):
    report, kernels = resident_sets(command)
    # What the process touches after it has read the value: its end.
    assert 0.95 * kernels <= report["rss_peak_bytes"] <= 1.02 * kernels, (report["rss_peak_bytes"], kernels)
    assert "when it exited" in report["rss_peak_source"], report["rss_peak_source"]


def read_from_outside(command):
    report, kernels = resident_sets(command)
    # How near the last reading was depends on how busy the machine is; the kernel counts in batches.
    assert kernels / 3 <= report["rss_peak_bytes"] <= 1.02 * kernels, (report["rss_peak_bytes"], kernels)
    assert "at least" in report["rss_peak_source"], report["rss_peak_source"]


def compiled(text):
    source = scratch("program") / "resident.c"
    source.write_text(text)
    expect_equal(run(["gcc", "-o", source.with_suffix(""), source]).returncode, 0, "compiler")
    return source.with_suffix("")


@case
def of_python():
    said_at_the_exit([sys.executable, "-c", "x = bytearray(60 << 20)"])


@case
def of_c():
    said_at_the_exit([compiled(ABRUPT.replace("syscall(SYS_exit_group, 0)", "return 0"))])


@case
def of_a_program_that_ends_past_the_c_library():
    read_from_outside([compiled(ABRUPT)])


@case
def of_programs_that_end_while_the_writer_is_stopped():
    with Target() as target:
        writer = wait_until(lambda: session_of(target.pid), "a writer")["writer_pid"]
        os.kill(writer, signal.SIGSTOP)
        try:
            # It goes on only when all have ended: they may not wait for it without end.
            target.send("xx")
            target.end()
        finally:
            os.kill(writer, signal.SIGCONT)
    first, *children = [process["pid"] for process in leaks(target.output)["processes"]]
    assert "at least" in peak(target.output, "--pid", str(first))["rss_peak_source"]
    expect_equal(len(children), 2, "children")
    for child in children:
        report = peak(target.output, "--pid", str(child))
        expect_equal(report["rss_peak_bytes"], None, "bytes that nobody has read")
        assert "could not be read" in report["rss_peak_source"], report["rss_peak_source"]


@case
def of_many_that_end_at_once():
    result, output = record([compiled(MANY)])
    expect_equal(result.returncode, 0, "status")
    children = leaks(output)["processes"][1:]
    expect_equal(len(children), N_AT_ONCE, "children")
    for child in children[::N_AT_ONCE // 4]:
        report = peak(output, "--pid", str(child["pid"]))
        assert report["rss_peak_bytes"] > 1 << 20 and "when it exited" in report["rss_peak_source"], report["rss_peak_source"]


@case
def of_go():
    need_command("go")
    folder = scratch("program")
    (folder / "main.go").write_text(GO)
    (folder / "go.mod").write_text("module example\n")
    environment = dict(clean_environment(), GOCACHE=str(folder / "cache"), GOFLAGS="-mod=mod", CGO_ENABLED="1")
    expect_equal(run(["go", "build", "-o", folder / "main", "."], environment, cwd=folder).returncode, 0, "compiler")
    read_from_outside([folder / "main"])


N_GROUPS = 2000  # some 14 KB of a process's status, in front of its resident set


@case
def a_user_in_many_groups_has_one_too():
    need_root()
    output = scratch("recording")
    result = run([sys.executable, "-c", "held = bytearray(1 << 20)"], agent_environment(output),
                 preexec_fn=lambda: os.setgroups(range(100000, 100000 + N_GROUPS)))
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    found = peak(output)["rss_peak_bytes"]
    assert found and found > 1 << 20, found


main()
