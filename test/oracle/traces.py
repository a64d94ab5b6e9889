#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Random traces of heap calls, with the truth from test/programs/heap/trace.c, against the reports:
live blocks and bytes by call site and depth, the exact peak and its allocation sites, byte for
byte.

Blocks of a trace are distinguished from the C library's by their stack (they go through
trace_step). What the library holds does not change while a trace runs, so for the whole process

    peak_bytes = peak of the trace + (bytes live at the end − bytes of the trace live at the end)

must hold exactly.

In test/run each case runs for some seconds and prints the number of traces. By hand, the number is
set: ORACLE_TRACES=100000 ORACLE_SEED=7 test/oracle/traces.py
"""

import collections
import math
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "trace"
N_TRACES = int(os.environ.get("ORACLE_TRACES", 400 if IS_QUICK else 10000))
SECONDS = math.inf if "ORACLE_TRACES" in os.environ else 3 if IS_QUICK else 16  # of each case
LEAST_RUNS = 1 if IS_QUICK else 5  # of each case, however long they take
SEED = int(os.environ.get("ORACLE_SEED", random.randrange(1 << 40)))
TRACES_A_RUN = 8  # each report reads all of a recording
N_PARTS = 4  # cases of forked, serial traces: they run beside each other


def site_of(entry):
    """(call site, depth) of an entry of the trace, or None for one of the library's."""
    names = functions(entry)
    if "trace_step" not in names:
        return None
    return next(name for name in names if name.startswith("at_")), names.count("descend") - 1


def shares(entries):
    """Blocks and bytes by site; several stacks of one site (lines, callers) are added up."""
    sums = collections.defaultdict(lambda: [0, 0])
    for entry in entries:
        site = site_of(entry)
        if site:
            sums[site][0] += entry["blocks"]
            sums[site][1] += entry["bytes"]
    return {site: tuple(share) for site, share in sums.items()}


def true_shares(rows):
    return {(site, depth): (blocks, n_bytes) for site, depth, blocks, n_bytes in rows}


def of_all_depths(found):
    """Of a list in which a recursion is one entry, however deep it is."""
    sums = collections.defaultdict(lambda: [0, 0])
    for (site, _), (blocks, n_bytes) in found.items():
        sums[site, "any"][0] += blocks
        sums[site, "any"][1] += n_bytes
    return {site: tuple(share) for site, share in sums.items()}


def expect_same_shares(found, true, what):
    for site in sorted(found.keys() | true.keys()):
        expect_equal(found.get(site, (0, 0)), true.get(site, (0, 0)), f"{what}, {site[0]} at depth {site[1]} (blocks, bytes)")


def check_entries(truth, leak, peak):
    """The lists as they are without options have the same blocks."""
    expect_same_shares(of_all_depths(shares(leak["leaks"])), of_all_depths(true_shares(truth["live"])), "live at the end")
    if "peak" in truth:
        expect_same_shares(of_all_depths(shares(peak["holders"])), of_all_depths(true_shares(truth["peak"])), "held at the peak")


def check_trace(truth, leak, peak):
    check_counts(leak["events"])
    expect_same_shares(shares(leak["leaks"]), true_shares(truth["live"]), "live at the end")
    if "peak" not in truth:
        return
    expect_same_shares(shares(peak["holders"]), true_shares(truth["peak"]), "held at the peak")
    library = bytes_at_end(leak) - truth["live_bytes"]
    expect_equal(peak["peak_bytes"], truth["peak_bytes"] + library, "peak_bytes")


def run_traces(seed, n, *how):
    folder = scratch("truth")
    result, output = record([PROGRAM, folder / "truth", seed, n, *how])
    expect_equal(result.returncode, 0, f"status of the traces from seed {seed} on")
    truths = [json.loads(line) for line in (folder / "truth").read_text().splitlines()]
    expect_equal(len(truths), n, "traces that wrote their truth")
    for i, truth in enumerate(truths):
        only = ("--no-lines", "--pid", str(truth["pid"]))
        stacks = (*only, "--depth", "0")
        try:
            check_trace(truth, leaks(output, *stacks), peak(output, *stacks))
            if not i:
                check_entries(truth, leaks(output, *only), peak(output, *only))
        except Exception:
            print(f"seed {truth['seed']} {' '.join(how)}, {truth['threads']} threads, pid {truth['pid']}, in {output}")
            raise


def run_many(part, share, *how):
    """share percent of all traces, in runs of some each."""
    n = max(1, N_TRACES * share // 100)
    seed = SEED + part * (1 << 20)
    a_run = 1 if how[1] == "here" else TRACES_A_RUN
    for done in in_time(range(0, n, a_run), SECONDS, LEAST_RUNS, f"runs of {a_run} traces from seed {seed} on"):
        run_traces(seed + done, min(n - done, a_run), *how)


for part in range(N_PARTS):
    add_case(f"traces_in_turns_{part}", run_many, part, 80 // N_PARTS, "serial", "forked")
add_case("traces_that_race", run_many, N_PARTS, 18, "free", "forked")
add_case("traces_in_a_process_each", run_many, N_PARTS + 1, 2, "serial", "here")

main()
