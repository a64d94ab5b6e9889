#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The shells that a command goes through, as those of a version manager of Python, are one line of `torsh leaks`: they are
neither leaks of the user's nor stand before them.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SCRIPTS = {
    "wrapper": """#!/bin/bash
for i in 1 2 3; do version=$(bash -c 'echo $((1 + 1))' | sed s/2/3/); done
for i in $(seq 300); do table[$i]=$(printf '%0100d' $i); done
exec env SHELL_LEVEL=1 sh "${0%/*}/inner" "$@"
""",
    "inner": """#!/bin/sh
bash -c 'for i in $(seq 100); do table[$i]=$(printf "%0500d" $i); done; exit 0'
"$@"
exit $?
""",
    "train.py": """
import ctypes
malloc = ctypes.CDLL(None).malloc
for i in range(3 if __name__ == "__main__" else 0):
    malloc(100)
""",
    "clean.py": "import json\njson.loads('[1, 2]')\n",
}


def through_shells(program):
    need_command("bash")
    folder = scratch("scripts")
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    result, output = record(["bash", folder / "wrapper", sys.executable, folder / program])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return output


@case
def shells_are_one_line_below_the_users_leak():
    output = through_shells("train.py")
    lines = torsh("leaks", output).splitlines()
    assert lines[0].startswith("300 B lost in 3 blocks, at 1 line of yours"), lines[0]
    shells = [line for line in lines if "bash" in line or "Shells" in line]
    assert len(shells) == 1 and shells[0].startswith("Shells and helpers that the command went through: "), shells
    first = next(line for line in lines if line.split()[:1] == ["1"])
    assert "train.py:5" in first, first


@case
def shells_are_no_leaks_of_a_clean_program():
    lines = torsh("leaks", through_shells("clean.py")).splitlines()
    expect_equal(lines[0], "No leaks.", "heading")
    assert any(line.startswith("Shells and helpers") for line in lines), lines


@case
def everything_is_there_when_it_is_asked_for():
    output = through_shells("clean.py")
    whole = json.loads(torsh("leaks", output, "-v", "--json"))
    assert whole["leaked_bytes"] > 1000 and "helpers" not in whole, whole["leaked_bytes"]
    assert "bash" in torsh("leaks", output, "-v")


@case
def all_commands_count_the_users_leaks_alone():
    output = through_shells("train.py")
    folded, whole = leaks(output), json.loads(torsh("leaks", output, "-v", "--json"))
    expect_equal((folded["leaked_bytes"], folded["leaked_blocks"]), (300, 3), "torsh leaks --json")
    expect_equal(folded["helpers"]["bytes"] + 300, whole["leaked_bytes"], "with the helpers'")
    of_helpers = [process for process in folded["processes"] if process.get("is_helper")]
    expect_equal((len(of_helpers), sum(process["leaked_bytes"] for process in of_helpers)),
                 (folded["helpers"]["processes"], folded["helpers"]["bytes"]), "processes of helpers")
    verdict = torsh("report", output).splitlines()[0]
    assert verdict.startswith("1 leak: 300 B at "), verdict
    expect_equal(read_report("report", output)["leaks"]["leaked_bytes"], 300, "torsh report --json")
    torsh("check", output, "--max-leak", "300", "--allow-loss")
    torsh("check", output, "--max-leak", "299", "--allow-loss", expect=1)


BUILDS = """
import ctypes, subprocess, sys
subprocess.run([sys.argv[1], "-O1", "-shared", "-o", "built.so", "-x", "c", "-"], input=b"int one(void) { return 1; }", check=True)
print(ctypes.CDLL("./built.so").one())
"""


@case
def compilers_that_a_program_runs_are_no_leaks_of_its():
    """As torch.compile runs one. Those of GCC leave megabytes to the end."""
    compiler = need_command("gcc")
    result, output = record([sys.executable, "-c", BUILDS, compiler], cwd=scratch("build"))
    expect_equal((result.returncode, result.stdout), (0, b"1\n"), f"status and output\n{result.stderr.decode()}\n")
    report, whole = leaks(output), json.loads(torsh("leaks", output, "-v", "--json"))
    expect_equal(report["leaks"], [], "leaks")
    assert whole["leaked_bytes"] > 500_000, whole["leaked_bytes"]
    expect_equal(report["helpers"]["bytes"], whole["leaked_bytes"], "of the compilers")
    expect_equal(torsh("report", output).splitlines()[0], "No leaks", "verdict")


TOOL = """
#include <stdlib.h>
#include <string.h>
int main(void)
{
	for (int i = 0; i < 200; i++)
		memset(malloc(1000), 1, 1000);
	return 0;
}
"""


@case
def programs_of_installed_packages_are_no_leaks_of_the_users():
    """As PyTorch's manager of shared memory."""
    folder = scratch("lib") / "python3.11/site-packages/pkg/bin"
    folder.mkdir(parents=True)
    source = scratch("source") / "tool.c"
    source.write_text(TOOL)
    result = run([need_command("gcc"), "-O0", "-o", folder / "tool", source])
    expect_equal(result.returncode, 0, f"status of gcc\n{result.stderr.decode()}")
    result, output = record([sys.executable, "-c", f"import subprocess; subprocess.run([{str(folder / 'tool')!r}], check=True)"])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}")
    report = leaks(output)
    expect_equal((report["leaks"], report["helpers"]), ([], {"processes": 1, "bytes": 200_000, "blocks": 200}), "leaks, of helpers")
    _, alone = record([folder / "tool"], scratch("alone"))
    expect_equal(leaks(alone)["leaked_bytes"], 200_000, "leaks of the program that was recorded alone")


@case
def a_compiler_that_was_recorded_alone_is_the_users():
    result, output = record([need_command("gcc"), "-S", "-o", "/dev/null", "-x", "c", "/dev/null"])
    expect_equal(result.returncode, 0, "status")
    assert leaks(output)["leaked_bytes"] > 100_000, leaks(output)["leaked_bytes"]


@case
def a_shell_that_was_recorded_alone_is_the_users():
    result, output = record([need_command("bash"), "-c", "for i in $(echo 1 2); do table[$i]=x$i; done"])
    expect_equal(result.returncode, 0, "status")
    if leaks(output)["leaked_bytes"]:
        assert "No leaks" not in torsh("leaks", output).splitlines()[0]


main()
