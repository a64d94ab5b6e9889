#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that are not to be recorded: the agent is loaded into them, and does nothing there."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import START, Truth, complete, kept  # noqa: E402

# What a process has of its own: mappings of files, and descriptors. It looks itself, and allocates before that.
LOOK = 'x=$(seq 1 1000); cat /proc/$$/maps; echo; ls -l /proc/$$/fd'
NOBODYS_NAME = "no-program-has-this-name"


def mapped(text):
    return {line.split(maxsplit=5)[5] for line in text.split("\n\n")[0].splitlines() if len(line.split(maxsplit=5)) == 6}


FIRST_OF_AGENT = 512  # a descriptor of the channel stays open, above those that programs count


def descriptors(text):
    found = re.findall(r"(\d+) -> (?!pipe|/proc)(\S+)", text.split("\n\n")[1])
    return [(number, path) for number, path in found if int(number) < FIRST_OF_AGENT]


def writers(output):
    """Processes with this output in their command line: a writer's contains it."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(b"torsh-writer\0") and str(output).encode() in line:
            found.append(folder.name)
    return found


def look(**env):
    """What an inert shell has, beside what it has without us."""
    temporary = scratch("temporary")
    places = {"TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(temporary)}
    bare = run(["sh", "-c", LOOK], {**clean_environment(), **places}).stdout.decode()
    result, output = record(["sh", "-c", LOOK], env={**places, **env})
    text = result.stdout.decode()
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    expect_equal(descriptors(text), descriptors(bare), "descriptors")
    return mapped(text) - mapped(bare), temporary, output


def has_channel(names):
    return any("memfd:" in name for name in names)


@case
def a_program_that_is_recorded_has_a_channel():
    """So that the other cases look for the right thing."""
    names, _, output = look()
    assert has_channel(names), names
    complete(output)


def is_inert(variable, value):
    names, temporary, output = look(**{f"TORSH_PROFILER_{variable}": value})
    assert any(name.endswith("libtorshagent.so") for name in names), f"the agent isn't even loaded: {names}"
    assert not has_channel(names), names
    expect_equal((recordings(output), writers(output), sorted(temporary.iterdir())), ([], [], []),
                 "recordings, writers, and what is in the folder of sockets")


for row in (("FILTER", NOBODYS_NAME), ("ENABLED", "0")):
    add_case(f"{row[0].lower()}_makes_a_program_inert", is_inert, *row)


@case
def forks_of_an_inert_program_are_inert():
    truth = Truth(scratch("truth"))
    for way in ("fork", "vfork", "spawn"):
        _, output = record([START, way, *truth.member(70, 3)], scratch(way), {"TORSH_PROFILER_FILTER": NOBODYS_NAME})
        expect_equal(recordings(output), [], "recordings")


@case
def a_wanted_program_below_two_inert_ones_is_recorded():
    truth = Truth(scratch("truth"))
    result, output = record(["env", "-i", START, "fork", *truth.member(71, 3)], env={"TORSH_PROFILER_FILTER": "mem*r"})
    expect_equal(result.returncode, 3, "status")
    report = complete(output)
    expect_equal(kept(report, "keep_in_member"), [(truth.members()[0].pid, 71)], "the member's block")
    expect_equal([pathlib.Path(process["program"]).name for process in report["processes"]], ["member"], "programs")


@case
def without_following_only_the_first_process_is_recorded():
    for way in ("fork", "raw_fork", "vfork", "spawn", "system"):
        truth = Truth(scratch("truth"))
        result, output = record([START, way, *truth.member(72, 3)], scratch(way), {"TORSH_PROFILER_FOLLOW": "0"})
        expect_equal(result.returncode, 3, "status")
        report = complete(output)
        expect_equal(len(report["processes"]), 1, f"processes by {way}")
        expect_equal([size for _, size in kept(report, "keep_in_starter")], [111], "the starter's block")
        expect_equal((kept(report, "keep_in_member"), kept(report, "keep_in_fork")), ([], []), "blocks of others")


main()
