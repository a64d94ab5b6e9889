#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Work items of concurrent.futures' executors against the program's own account, on every CPython of this machine; and that
programs are as without the agent."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from schema import expect_fits  # noqa: E402

PROGRAM = ROOT / "test/python/requests/works.py"
ON = {"TORSH_PROFILER_REQUESTS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
OF_PYTHON = 1 << 16  # what Python itself allocates for an item


def is_unknown(python, report):
    """Whether this version's queue has other methods: then the report says so."""
    is_noted = any("work items of concurrent.futures are not recorded" in note for note in report["notes"])
    expect_equal(is_noted, python.minor < 10, "a note")
    return is_noted


def items_have_what_they_did(python):
    result, output = record([python.path, PROGRAM], env={**ON, "TORSH_PROFILER_ACTIVITIES": "heap,python,waits"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = json.loads(result.stdout)
    report = json.loads(torsh("requests", output, "--json", "--limit", "0"))
    expect_fits("requests", report)
    if is_unknown(python, report):
        return
    works = sorted((one for one in report["requests"] if one["kind"] == "work"), key=lambda one: one["allocated_bytes"])
    expect_equal(len(works), len(mine), "items")
    for number, (single, one) in enumerate(zip(works, mine)):
        assert one["allocated"] <= single["allocated_bytes"] < one["allocated"] + OF_PYTHON, (number, single, one)
        expect_equal((single["name"], single["turns"]), ("Work.method" if number % 3 == 1 else "load", 1), f"name and turns of {number}")
        # By the same clocks, of which the program sees a part; it waited for its thread before.
        assert single["cpu_ns"] >= one["cpu_ns"], (number, single, one)
        assert single["run_ns"] >= one["end"] - one["begin"], (number, single, one)
        # The first one of each executor is put there before it has a thread.
        wanted = one["end"] - (one["begin"] if number in (0, 2) else one["submitted"])
        assert single["duration_ns"] >= wanted - 1_000_000, (number, single, one)
        # Its sleep: to a moment that Python takes before it gives up its lock.
        assert single["waits"] >= 1 and single["wait_ns"] > 0, (number, single)
    # No item ran on the time of another.
    assert sum(one["run_ns"] for one in works) <= 2 * (max(one["end"] for one in mine) - min(one["submitted"] for one in mine)) * 1.5, works


def programs_are_as_without_the_agent(python):
    bare = run([python.path, PROGRAM, "plain"], {**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record([python.path, PROGRAM, "plain"], env=ON)
    expect_equal((result.returncode, result.stdout.decode()), (0, bare.stdout.decode()), f"the program ({result.stderr.decode()})")
    report = json.loads(torsh("requests", output, "--json", "--limit", "0"))
    if is_unknown(python, report):
        return
    names = {row["name"]: row for row in report["names"]}
    expect_equal({name: (row["kind"], row["ended"]) for name, row in names.items()},
                 {"str.upper": ("work", 3), "fails": ("work", 1), "pow": ("work", 1)}, "items by name")


for python in pythons.find_all():
    add_case("items_have_what_they_did_by_" + python.name, items_have_what_they_did, python)
    add_case("programs_are_as_without_the_agent_by_" + python.name, programs_are_as_without_the_agent, python)

main()
