#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Figures of the heap that a program reads by torsh.h are exact at the call, and cost it nothing without the agent."""

import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "memory_calls"
SOURCE = ROOT / "test/programs/ranges/memory_calls.c"
MIB = 1 << 20
RECORDED = f"""\
there 42
allocated {1000 + 21}
resized 4000
freed 0
reset 0
peak {5 * MIB}
peak after reset 0
begin 0 1
inner 0: peak {MIB}, stayed 0 in 0 blocks
closed -2
outer, open 0: peak {4 * MIB}, stayed {3 * MIB} in 0 blocks
outer 0: peak {4 * MIB}, stayed {-MIB} in -1 blocks
unknown -2
threads hold {8 * 50 * 1000}
threads freed {-8 * 50 * 1000}
threads refused 0
fork 7
parent 0
vfork -1
handlers wrong 0
pause 0 -114
resume 0 -114
after the pause 0
after the free 0
descriptors 0, threads 0
"""


@case
def figures_are_exact():
    result, output = record([PROGRAM])
    expect_equal((result.returncode, result.stdout.decode(), result.stderr), (0, RECORDED, b""), "status and output")
    report = peak(output)
    assert report["peak_bytes"] >= 5 * MIB, report["peak_bytes"]  # a reset leaves the recording's own peak


@case
def without_the_agent_every_figure_is_zero():
    result = run([PROGRAM])
    lines = result.stdout.decode().splitlines()
    expect_equal((result.returncode, lines[0], lines[1], lines[-1]), (0, "alone 42", "allocated 0", "descriptors 0, threads 0"),
                 "status and output")
    expect_equal([line.split()[1] for line in lines if line.startswith(("reset", "begin", "unknown", "resume"))], ["-38"] * 4,
                 "results of calls")


@case
def an_inert_agent_answers_that_it_does_not_record():
    result, _ = record([PROGRAM], env={"TORSH_PROFILER_ENABLED": "0"})
    lines = result.stdout.decode().splitlines()
    expect_equal((result.returncode, lines[1], lines[4]), (0, "allocated 0", "reset -38"), "status and output")


@case
def an_ended_recording_refuses_calls():
    program = """import ctypes, os, pathlib, subprocess
call = ctypes.CDLL(None).torsh_v1_call
print(call(1, 0, None))
subprocess.run([os.environ["TORSH"], "end", str(os.getpid())], stdout=subprocess.DEVNULL, env={"TORSH_PROFILER_ENABLED": "0"})
print(call(1, 0, None) < 0)
print(*(path.read_bytes().hex() for path in pathlib.Path(os.environ["TORSH_PROFILER_OUTPUT"]).rglob("*") if path.is_file()))
"""
    result, output = record([sys.executable, "-c", program], env={"TORSH": str(TORSH)})
    expect_equal(result.returncode, 0, f"status ({result.stderr})")
    expect_equal(result.stdout.decode().splitlines()[:2], ["0", "True"], "results")
    # When torsh end has ended everything is written.
    contents = [path.read_bytes().hex() for path in output.rglob("*") if path.is_file()]
    assert contents and result.stdout.decode().splitlines()[2].split() == contents, "the recording changed after its end"
    expect_equal(result.stderr, b"", "stderr, as without the agent")


def are_stopped(pid):
    """All threads: the kernel stops one after another."""
    return all(stat.read_text().rsplit(")", 1)[1].split()[0] == "T" for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))


@case
@waits
def a_stopped_writer_is_not_waited_for_without_end():
    program = """import ctypes, os, signal, sys
call = ctypes.CDLL(None).torsh_v1_call
print(call(1, 0, None), flush=True)
sys.stdin.readline()
print(call(1, 0, None), flush=True)
sys.stdin.readline()
print(call(1, 0, None))
"""
    with subprocess.Popen([sys.executable, "-c", program], env=agent_environment(scratch()), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        expect_equal(process.stdout.readline(), "0\n", "answer")
        [session] = [each for each in json.loads(torsh("list", "--json"))["sessions"]
                     if process.pid in [one["pid"] for one in each["processes"]]]
        os.kill(session["writer_pid"], signal.SIGSTOP)
        try:
            wait_until(lambda: are_stopped(session["writer_pid"]), "the writer's threads are stopped")
            print("", file=process.stdin, flush=True)
            expect_equal(process.stdout.readline(), "-110\n", "result while the writer is stopped")
        finally:
            os.kill(session["writer_pid"], signal.SIGCONT)
        expect_equal(process.communicate("\n")[0], "0\n", "answer of the writer that goes on")


def run_files(runner):
    folder = scratch("files")
    result = runner([PROGRAMS / "file_calls", folder])
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return folder, result.stdout.decode().splitlines()


@case
def files_of_the_session_are_written_while_it_goes_on():
    folder, lines = run_files(lambda command: record(command)[0])
    expect_equal(lines, ["leaks 0", "export 0", "refused -22 -22 -22 -22", "too long -36 -36", "threads failed 0", "fork 0",
                         "vfork -1", "configure 0 -22 0 0 -", "lost 5000"], "output")
    expect_equal(sorted(path.name for path in folder.iterdir()),
                 sorted([*(f"{n}.torsh" for n in range(8)), "leaks.json", "now.folded", "child.json"]), "files")
    for name, bytes_, blocks in (("leaks", 5000, 5), ("child", 333, 1)):
        report = json.loads((folder / f"{name}.json").read_text())
        expect_equal((report["leaked_bytes"], report["leaked_blocks"]), (bytes_, blocks), name)
        assert any(frame["function"] == "lose" for frame in report["leaks"][0]["stack"]), report["leaks"]
    assert "lose" in (folder / "now.folded").read_text(), "no function in the export"
    for n in range(8):
        assert leaks(folder / f"{n}.torsh")["leaked_bytes"] >= 5000 + 77, n


@case
def without_the_agent_no_file_is_written():
    folder, lines = run_files(run)
    expect_equal((lines[0], lines[1], lines[4], lines[5], lines[7]),
                 ("leaks -38", "export -38", "threads failed 8", "fork 38", "configure -38 -38 - -38 -"), "output")
    expect_equal(list(folder.iterdir()), [], "files")


main()
