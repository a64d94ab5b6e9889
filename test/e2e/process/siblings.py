#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Processes of one program share the tables of code and stacks. Of each the reports say what it did, as if it were
recorded alone, and where it had its code."""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import FIRST, OBEYS, SECOND, THIRD, Target, kept, session_of, snapshot  # noqa: E402

SIBLINGS = PROGRAMS / "siblings"
NAMES = ("keep_first", "keep_second", "keep_third")


def messages(recording, *names):
    return [json.loads(line) for line in torsh("dump", recording, "--only", ",".join(names)).splitlines()]


def rows(recording, name, column):
    """The rows of a table, by the number of the process under which they are."""
    found = {}
    for message in messages(recording, name):
        row = message[name]
        found[row["process"]] = found.get(row["process"], 0) + len(row[column])
    return found


def children(pid):
    """The siblings' pids, in the order of their starts."""
    found = [int(stat.parent.name) for stat in pathlib.Path("/proc").glob("[0-9]*/stat")
             if f") S {pid} " in read_or_nothing(stat) or f") R {pid} " in read_or_nothing(stat)]
    return sorted(found, key=lambda child: int(pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19]))


def read_or_nothing(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def kept_by(recording, pid):
    return kept(recording, "--pid", str(pid))


def bias_of(pid):
    """Where a running process has obeys, as the kernel says."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(f" {OBEYS}"):
            return int(line.partition("-")[0], 16)
    raise AssertionError(f"{pid} has no {OBEYS}")


def addresses(recording, pid):
    """(module, address less its offset in the module) of all native frames of a process's leaks."""
    return {(frame["module"], int(frame["address"], 16) - int(frame["module_offset"], 16))
            for entry in leaks(recording, "--pid", str(pid))["leaks"] for frame in entry["stack"]
            if frame.get("module_offset")}


@case
def what_one_does_is_as_if_it_were_alone():
    done = {"0": "aab", "1": "a", "2": "bbc", "3": "c"}
    with Target((SIBLINGS, OBEYS)) as target:
        for sibling, letters in done.items():
            target.send("".join(sibling + letter for letter in letters))
        pids = children(target.pid)
        target.send("0.1.2.3.")
        target.end()
    sizes = dict(zip("abc", (FIRST, SECOND, THIRD)))
    for pid, letters in zip(pids, done.values()):
        alone = Target(output=scratch("alone"))
        alone.send(letters)
        alone.end()
        expect_equal(kept_by(target.output, pid), kept(alone.output), f"what {pid} kept")
        expect_equal(kept_by(target.output, pid),
                     {NAMES["abc".index(letter)]: (10 * letters.count(letter), 10 * letters.count(letter) * sizes[letter])
                      for letter in letters}, f"what {pid} was told to keep")
        expect_equal([without_addresses(entry["stack"]) for entry in leaks(target.output, "--pid", str(pid))["leaks"]],
                     [without_addresses(entry["stack"]) for entry in leaks(alone.output)["leaks"]], f"stacks of {pid}")


def without_addresses(value):
    if isinstance(value, list):
        return [without_addresses(item) for item in value]
    return {name: part for name, part in value.items() if name != "address"} if isinstance(value, dict) else value


@case
def their_tables_are_in_the_recording_once():
    with Target(output=scratch("alone")) as alone:
        alone.send("abc")
        alone.end()
    with Target((SIBLINGS, OBEYS)) as target:
        target.send("".join(sibling + letter for sibling in "0123456789" for letter in "abc"))
        target.send("".join(sibling + "." for sibling in "0123456789"))
        target.end()
    recording = recordings(target.output)[0]
    owners = {row["process"]["process"]: row["process"].get("tables_of")
              for row in messages(recording, "process")}
    first = min(number for number, owner in owners.items() if not owner and number != 1)
    expect_equal(sorted(owners.values(), key=str), sorted([None, None, *[first] * 9], key=str), "owners of tables")
    for name, column in (("stacks", "address_step"), ("addresses", "flags"), ("modules", "path")):
        column = column if column in messages(recording, name)[0][name] else "address"
        of_one = sum(rows(recordings(alone.output)[0], name, column).values())
        expect_equal(rows(recording, name, column)[first], of_one, f"{name} of ten processes")


@case
def addresses_are_where_each_process_had_them():
    with Target((SIBLINGS, OBEYS)) as target:
        target.send("0a1a2a")
        pids = children(target.pid)
        biases = {pid: bias_of(pid) for pid in pids}
        target.send("0.1.2.")
        target.end()
    for pid in pids:
        found = addresses(target.output, pid)
        expect_equal({bias for module, bias in found if module == str(OBEYS)}, {biases[pid]}, f"bias of {OBEYS} in {pid}")
    if pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "2":
        expect_equal(len(set(biases.values())), 3, "biases differ")


@case
def the_tables_outlive_the_process_that_had_them_first():
    with Target((SIBLINGS, OBEYS)) as target:
        target.send("0a1a")
        pids = children(target.pid)
        target.send("0.1b1c")
        path = snapshot(pids[1])
        expect_equal(kept_by(path, pids[1]), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND),
                                              "keep_third": (10, 10 * THIRD)}, "in a snapshot")
        target.send("2a2c")
        third = children(target.pid)[1]
        target.send("1.2.")
        target.end()
    expect_equal(kept_by(target.output, pids[0]), {"keep_first": (10, 10 * FIRST)}, "of the first")
    expect_equal(kept_by(target.output, pids[1]), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND),
                                                   "keep_third": (10, 10 * THIRD)}, "of the second")
    expect_equal(kept_by(target.output, third), {"keep_first": (10, 10 * FIRST), "keep_third": (10, 10 * THIRD)}, "of the third")
    # When the next one begins, perhaps nobody has them any more.
    with Target((SIBLINGS, OBEYS), output=scratch("in-turn")) as target:
        target.send("0a0.1b1.")
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND)}, "of both")


@case
def a_forked_child_shares_with_its_parent():
    with Target() as target:
        target.send("axb")
        target.end()
    numbers = {row["process"]["process"]: row["process"].get("tables_of")
               for row in messages(recordings(target.output)[0], "process")}
    expect_equal(numbers, {1: None, 2: 1}, "owners of tables")
    expect_equal(messages(recordings(target.output)[0], "placements"), [], "modules that were elsewhere")
    expect_equal({name: blocks for name, (blocks, _) in kept(target.output).items()},
                 {"keep_first": 10, "keep_second": 10, "keep_in_child": 10}, "blocks of both")


@case
def a_killed_writer_leaves_what_they_share():
    with Target((SIBLINGS, OBEYS), TORSH_PROFILER_CHECKPOINT="100ms") as target:
        target.send("0a1a1b")
        pids = children(target.pid)
        target.send("0.")
        wait_until(lambda: kept_by(target.output, pids[1]).get("keep_second"), "a checkpoint has the second's blocks")
        os.kill(session_of(target.pid)["writer_pid"], signal.SIGKILL)
        target.send("1.")
        target.end()
    expect_equal(kept_by(target.output, pids[0]), {"keep_first": (10, 10 * FIRST)}, "of the first")
    expect_equal(kept_by(target.output, pids[1]), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND)},
                 "of the second")


main()
