#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What grows from step to step is found with its line and its bytes; what only warms up, turns over or ends is not."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402

SCRIPT = pythons.SOURCES / "loops.py"
STEPS = 120
OBJECT = 1  # bytes that bytearray allocates beyond its length
CLEAN = ("allocates_nothing", "frees_all", "warms_a_cache_at_once", "warms_a_cache_slowly", "warms_a_cache_at_random",
         "keeps_the_latest", "replaces_one", "replaces_at_random", "empties_a_list_now_and_then", "remembers_in_an_lru_cache",
         "grows_before_the_steps", "fills_in_the_middle")


def growth(loop, steps=STEPS):
    result, output = record([sys.executable, SCRIPT, loop, steps], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    return read_report("leaks", output, "--growth", "--limit", "0", "--stacks", "python")


def lines(report):
    """What grows in the script, by line."""
    return {frame["line"]: entry for entry in report["growth"] for frame in entry["stack"][:1]
            if frame.get("file") == str(SCRIPT)}


def line_of(mark):
    return next(n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith(f"# line: {mark}"))


def check_leak(loop, mark, bytes_a_step, blocks_a_step):
    report = growth(loop)
    expect_equal((report["steps"], report["processes"][0]["rule"]), (STEPS, "steps that the program marked"), "steps")
    found = lines(report)
    assert line_of(mark) in found, f"{loop}: found {sorted(found)}"
    entry = found[line_of(mark)]
    expect_equal(entry["kind"], "block", "kind")
    # All intervals between steps but the first quarter: 119 less 30.
    expect_equal(entry["steps"], 89, "steps that are counted")
    assert abs(entry["bytes_per_step"] - bytes_a_step) <= bytes_a_step / 50, entry["bytes_per_step"]
    assert abs(entry["blocks_per_step"] - blocks_a_step) <= blocks_a_step / 50, entry["blocks_per_step"]
    return found


@case
def a_leak_of_each_step_is_found():
    check_leak("leaks_a_block_a_step", "leak", 5000 + OBJECT, 1)


@case
def a_leak_of_some_steps_is_found():
    check_leak("leaks_now_and_then", "now and then", (7000 + OBJECT) / 5, 1 / 5)


@case
def a_leak_beside_a_cache_is_found_alone():
    found = check_leak("leaks_beside_a_cache", "beside", 6000 + OBJECT, 1)
    expect_equal(sorted(found), [line_of("beside")], "lines that grow")


@case
def few_steps_and_none_report_it():
    report = growth("leaks_a_block_a_step", 5)
    expect_equal((report["steps"], report["enough_steps"], report["growth"]), (5, False, []), "of five steps")
    report = growth("leaks_a_block_a_step", 0)
    expect_equal((report["steps"], report["processes"][0]["rule"]), (0, None), "of none")


@case
def each_of_several_processes_has_its_own():
    """As the ranks of a training have."""
    command = f'"$0" {SCRIPT} leaks_a_block_a_step {STEPS} & "$0" {SCRIPT} leaks_a_block_a_step {STEPS} & wait'
    result, output = record(["bash", "-c", command, sys.executable],
                            env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    report = read_report("leaks", output, "--growth", "--limit", "0", "--stacks", "python")
    grown = [entry for entry in report["growth"] if entry["stack"][0].get("line") == line_of("leak")]
    expect_equal((len(grown), len({entry["pid"] for entry in grown})), (2, 2), "lines that grow, and their processes")
    assert str(SCRIPT.name) in torsh("brief", output), "a brief without the line that grows"


def check_clean(loop):
    expect_equal(lines(growth(loop)), {}, "lines that grow")


for loop in CLEAN:
    add_case(f"no_alarm_where_it_{loop}", check_clean, loop)

main()
