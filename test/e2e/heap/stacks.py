#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whole stacks from places where they are hard to follow, frame by frame, with the lines they are in."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SOURCE = ROOT / "test/programs/stacks/stacks.c"
# Size of the leak: (blocks, chain from the innermost function outwards to main).
CHAINS = {
    101: (2, ["leak_plain"]),
    102: (1, ["leak_in_alloca", "with_alloca", "main"]),
    103: (1, ["leak_in_variable_array", "with_variable_array", "main"]),
    104: (1, ["leak_aligned_frame", "with_aligned_frame", "main"]),
    105: (1, ["leak_in_comparison", ..., "with_qsort", "main"]),
    106: (1, ["leak_in_signal", ..., "with_signal", "with_signals", "main"]),
    107: (1, ["leak_on_other_stack", ..., "with_other_stack", "with_signals", "main"]),
    108: (1, ["leak_before_jump"] * 6 + ["with_jump", "main"]),
    109: (1, ["leak_after_jump", "with_jump", "main"]),
    110: (3, ["leak_in_coroutine", "run_coroutine"]),
    111: (3, ["leak_between_coroutines", "with_coroutine", "main"]),
    112: (1, ["leak_deep"] * 301 + ["main"]),
    113: (1, ["leak_in_thread", ...]),
    114: (1, ["leak_without_frame_pointer", "without_frame_pointer", "main"]),
    115: (1, ["leak_without_frame_pointer", "without_frame_pointer", "main"]),
    120: (30, ["allocate_in_first", "leak_in_library", "with_library", "main"]),
    121: (30, ["allocate_in_second", "step_in_second", "leak_in_library", "with_library", "main"]),
}


def matches(names, chain):
    """Does the stack begin with the chain? `...` stands for any frames."""
    if not chain:
        return True
    if chain[0] is ...:
        return any(matches(names[i:], chain[1:]) for i in range(len(names) + 1))
    return bool(names) and names[0].split("(")[0] == chain[0] and matches(names[1:], chain[1:])


def record_stacks(**env):
    result, output = record([PROGRAMS / "stacks", PROGRAMS], env=env)
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    return output


def without_wrapper(names):
    """From the target's own call on: the frame of malloc itself is not compared."""
    return names[1:] if names and names[0] in ("malloc", "torsh_heap_malloc") else names


def expect_chains(output, chains):
    report = leaks(output, "--depth", "0")
    check_counts(report["events"])
    for size, (blocks, chain) in chains.items():
        entries = [entry for entry in report["leaks"] if entry["bytes"] == size * entry["blocks"]
                   and matches(without_wrapper(functions(entry)), chain[:1])]
        wrong = [functions(entry) for entry in entries if not matches(without_wrapper(functions(entry)), chain)]
        assert not wrong, f"block of {size} bytes: expected {chain}, found {wrong[0][:20]}"
        expect_equal(total(entries, "blocks"), blocks, f"blocks of {size} bytes from {chain[0]}")


@case
def chains_are_whole():
    expect_chains(record_stacks(), CHAINS)


@case
def lines_are_those_of_the_calls():
    output = record_stacks()
    text = SOURCE.read_text().splitlines()
    checked = 0
    for entry in leaks(output, "--depth", "0")["leaks"]:
        frames = [frame for frame in entry["stack"] if pathlib.Path(frame.get("file") or "").name == SOURCE.name]
        if not frames or frames[0] is not entry["stack"][0]:
            continue  # allocated by a library that the program called
        checked += 1
        inner = text[frames[0]["line"] - 1]
        assert "malloc(" in inner, f"{frames[0]['function']} at line {frames[0]['line']}: {inner!r} allocates nothing"
        # Each outer frame stands on a line that calls something.
        for outer in frames[1:]:
            line = text[outer["line"] - 1]
            assert "(" in line, f"{outer['function']} at line {outer['line']}: {line!r} calls nothing"
    assert checked >= 15, f"only {checked} stacks had lines"


@case
def the_arbiter_finds_no_difference():
    output = record_stacks(TORSH_PROFILER_CHECK_STACKS=1)
    counters = leaks(output)["counters"]
    assert counters["captures_checked"] > 50, counters
    expect_equal(counters["captures_differing"], 0, "stacks that differ")


# Programs that people have, with every stack taken both ways.
CHECKED = {
    "python3": ["python3", "-c", "import json, sqlite3\nfor i in range(200): json.loads(json.dumps(list(range(i))))"],
    "perl": ["perl", "-e", "my %h; push @{$h{$_ % 99}}, \"v$_\" for 1..20000; print scalar(keys %h), qq(\\n)"],
    "bash": ["bash", "-c", "for i in {1..2000}; do x+=$i; y=${x/1/2}; done; echo ${#x}"],
    "gcc": ["gcc", "-O2", "-S", "-o", "/dev/null", str(SOURCE)],
    "git": ["git", "-C", str(ROOT), "log", "--stat", "-n", "30"],
    "node": ["node", "-e", "console.log([...Array(20000).keys()].map(String).sort().length)"],
    "exceptions": [str(PROGRAMS / "exceptions")],
    "lifecycle": [str(PROGRAMS / "lifecycle"), "threads_with_destructors"],
}


def compare_every_stack(command):
    need_command(command[0])
    _, output = record(command, env={"TORSH_PROFILER_CHECK_STACKS": "1"})
    counters = leaks(output, "--no-lines", "--limit", "1")["counters"]
    assert counters["captures_checked"] > 0, counters
    expect_equal(counters["captures_differing"], 0, f"stacks that differ of {counters['captures_checked']}")


for name, command in CHECKED.items():
    add_case(f"no_stack_differs_in_{name}", compare_every_stack, command)


@case
def exceptions_work_and_leave_no_stale_frames():
    bare = run([PROGRAMS / "exceptions"])
    result, output = record([PROGRAMS / "exceptions"])
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), "status and output")
    entries = leaks(output, "--depth", "0")["leaks"]
    thrown = entries_through(entries, "leak_before_throw()")
    expect_equal(sorted(functions(entry).count("dive(int)") for entry in thrown), [1, 4, 11, 21, 31, 41], "frames of dive")
    for name in ("leak_after_catch()", "leak_in_handler()"):
        found = entries_through(entries, name)
        expect_equal(total(found, "blocks"), 6, f"blocks of {name}")
        assert not entries_through(found, "dive(int)"), f"a frame that was unwound is in a stack of {name}"


main()
