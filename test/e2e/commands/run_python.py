#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`torsh run` of Python scripts and modules by name, and commands that are given no recording."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PRINTS = "import sys\nprint(sys.executable, __name__, *sys.argv)\n"


def folder_with(**files):
    """A folder with Python files, one of them of the name `plain` and without an ending."""
    folder = scratch("scripts")
    for name, text in files.items():
        (folder / (name if name == "plain" else f"{name}.py")).write_text(text)
    return folder


def path_with_python(folder):
    """A PATH with a python3 as its only program."""
    (folder / "bin").mkdir(exist_ok=True)
    python = folder / "bin/python3"
    if not python.exists():
        python.symlink_to(sys.executable)
    return python


def run_words(folder, *words, path=None):
    env = dict(clean_environment(), PATH=str(path or path_with_python(folder).parent))
    return run([TORSH, "run", "--output", folder / "out", "--no-summary", *words], env, cwd=folder)


def printed(result):
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return result.stdout.decode().split()


@case
def a_script_is_run_by_the_python_of_the_path():
    folder = folder_with(train=PRINTS)
    words = printed(run_words(folder, "train.py", "--epochs", "-m", "--", "3"))
    expect_equal(words, [str(path_with_python(folder)), "__main__", "train.py", "--epochs", "-m", "--", "3"], "what it prints")
    expect_equal(len(recordings(folder / "out")), 1, "recordings")


@case
def a_script_after_two_dashes_is_the_same():
    folder = folder_with(train=PRINTS)
    expect_equal(printed(run_words(folder, "--", "./train.py"))[1:], ["__main__", "./train.py"], "what it prints")


@case
def a_module_takes_all_words_after_it():
    folder = folder_with(model=PRINTS)
    words = printed(run_words(folder, "-m", "model", "--output", "x", "-m", "y"))
    expect_equal(words[1:], ["__main__", str(folder / "model.py"), "--output", "x", "-m", "y"], "what it prints")


@case
def an_executable_script_named_with_a_slash_chooses_its_interpreter():
    folder = folder_with(train="#!/bin/sh\necho by the shell\n")
    (folder / "train.py").chmod(0o755)
    expect_equal(printed(run_words(folder, "./train.py")), ["by", "the", "shell"], "what it prints")


@case
def an_executable_without_an_interpreter_is_a_script():
    folder = folder_with(train=PRINTS)
    (folder / "train.py").chmod(0o755)
    expect_equal(printed(run_words(folder, "./train.py"))[1:], ["__main__", "./train.py"], "what it prints")


@case
def a_file_that_is_not_executable_is_run_by_python_where_its_first_line_says_so():
    folder = folder_with(plain="#!/usr/bin/env python3\n" + PRINTS)
    expect_equal(printed(run_words(folder, "./plain", "x"))[1:], ["__main__", "./plain", "x"], "what it prints")


@case
def without_python_there_is_a_sentence():
    folder = folder_with(train=PRINTS)
    for words, name in ((["train.py"], "train.py"), (["-m", "model"], "model")):
        result = run_words(folder, *words, path=scratch("empty"))
        expect_equal((result.returncode, result.stdout), (2, b""), "status and output")
        assert result.stderr.startswith(f"torsh: {name} needs Python, and there is no python3".encode()), result.stderr


@case
def a_script_that_is_not_there_is_named():
    result = run_words(folder_with(), "train.py")
    expect_equal((result.returncode, result.stderr), (2, b"torsh: there is no program train.py\n"), "status and stderr")


@case
def without_a_recording_the_newest_here_is_read():
    folder = folder_with(first="pass\n", second="pass\n")
    env = dict(clean_environment(), PATH=str(path_with_python(folder).parent))
    result = run([TORSH, "report"], env, cwd=folder)
    expect_equal(result.returncode, 2, "status where there is none")
    assert b"which recording?" in result.stderr, result.stderr
    for script in ("first.py", "second.py"):
        expect_equal(run([TORSH, "run", "--no-summary", script], env, cwd=folder).returncode, 0, f"status of {script}")
    os.mkdir(folder / "torsh-empty-1")
    result = run([TORSH, "report", "--json"], env, cwd=folder)
    newest = json.loads(result.stdout)
    assert newest["processes"][0]["arguments"][-1] == "second.py", newest["processes"]
    notes = result.stderr.decode().splitlines()
    assert len(notes) == 1 and notes[0].startswith("torsh: reading torsh-") and notes[0].endswith(", the newest recording here"), notes


main()
