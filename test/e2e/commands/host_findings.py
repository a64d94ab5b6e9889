#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Findings about programs without devices, against a program that wastes in a known way: its own counts, and the kernel's."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "wasteful"
RULES = {"step_waits", "python_overhead", "small_operators", "dtype_copies", "host_allocation_churn", "large_temporaries",
         "allocation_in_hot_step", "oversubscribed_threads", "page_faults", "swapping", "memory_kept", "copied_after_fork"}


def findings_of(*arguments):
    """What the program printed, the findings of these rules, and the states of all."""
    result, output = record([PROGRAM, *arguments])
    report = read_report("report", output)
    found = [finding for finding in report["inefficiencies"] if finding["rule"] in RULES]
    return result, found, {rule["rule"]: rule["state"] for rule in report["rules"]}


def the_finding(rule, *arguments):
    result, found, states = findings_of(*arguments)
    [finding] = [finding for finding in found if finding["rule"] == rule] or [None]
    assert finding, f"no {rule} in {found}: {states[rule]}"
    return result, finding, {evidence["name"]: evidence["value"] for evidence in finding["evidence"]}


@case
def temporaries_are_counted_by_their_line():
    n = 2_000_000
    _, finding, evidence = the_finding("host_allocation_churn", "churn", n)
    expect_equal((evidence["blocks"], evidence["bytes"]), (n, 64 * n), "temporaries")
    assert "wasteful.c:" in finding["place"] and "free_at_once" in finding["place"], finding["place"]
    assert f"{n:,} blocks" in finding["sentence"], finding["sentence"]


@case
def large_temporaries_are_reported_by_their_line():
    n = 20_000
    _, finding, evidence = the_finding("large_temporaries", "large", n)
    expect_equal((evidence["blocks"], evidence["bytes"], evidence["block_bytes"]), (n, n << 20, 1 << 20), "temporaries")
    assert "free_at_once" in finding["place"], finding["place"]


@case
def buffers_of_each_step_could_be_allocated_once():
    _, finding, evidence = the_finding("allocation_in_hot_step", "steps", 40)
    expect_equal((evidence["bytes_per_step"], evidence["blocks_per_step"]), (8 << 20, 1), "of a step")
    assert "make_buffers" in finding["place"], finding["place"]


@case
def memory_that_is_mapped_again_and_again_is_faulted_in():
    n = 1000
    result, _, evidence = the_finding("page_faults", "faults", n)
    counted = int(result.stdout)
    # The last sample is from up to 0.2 s before the end.
    assert counted / 2 < evidence["faults"] < counted + 1000, (counted, evidence)


@case
def threads_that_share_a_cpu_are_oversubscribed():
    _, finding, evidence = the_finding("oversubscribed_threads", "threads", 6)
    expect_equal(evidence["cpus"], 1, "CPUs")
    # Its first thread waits for the others. The last sample may see some of them at their end.
    assert 5 <= evidence["threads"] <= 6, finding["sentence"]


MIB = 1 << 20


@case
def memory_between_blocks_that_stay_is_kept():
    n = 200
    _, finding, evidence = the_finding("memory_kept", "holes", n)
    # Of the small blocks seven eighths were freed, and their bookkeeping of 16 bytes a block with them.
    assert 0.8 * n * MIB < evidence["kept"] < 1.05 * n * MIB, evidence
    expect_equal((finding["gain_bytes"], finding["gain_ns"], finding["no_gain"]), (evidence["kept"], None, None), "gain")
    _, found, states = findings_of("packed", n)
    expect_equal((states["memory_kept"], [one["rule"] for one in found]), ("clear", []), "of a program that freed what lies together")


@case
def a_fork_that_writes_copies_its_parents_memory():
    n = 300
    _, finding, evidence = the_finding("copied_after_fork", "writing_fork", n)
    assert n * MIB <= evidence["copied"] < 1.05 * n * MIB, evidence
    expect_equal(finding["gain_bytes"], evidence["copied"], "gain")
    _, found, states = findings_of("reading_fork", n)
    expect_equal((states["copied_after_fork"], found), ("clear", []), "of a fork that reads")


@case
def a_program_without_these_faults_has_no_finding():
    _, found, states = findings_of("none", 0)
    expect_equal(found, [], "findings")
    for rule in ("host_allocation_churn", "large_temporaries"):
        expect_equal(states[rule], "clear", rule)
    expect_equal(states["sleeps"], "not_judged", "a rule about waits, which were not recorded")


main()
