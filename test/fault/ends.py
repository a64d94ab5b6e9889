#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""However a target ends, it ends as it does without us, and all that it allocated is reported."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_BLOCKS = 3000
WAYS = ("return", "exit", "_exit", "_Exit", "quick_exit", "abort", "segfault", "kill", "exec", "exec_fails", "closefrom")


def end(how, n_threads):
    bare = run(committed.command(committed.Counts(scratch("bare")), N_BLOCKS, n_threads, how))
    counts = committed.Counts(scratch("counts"))
    result, output = record(committed.command(counts, N_BLOCKS, n_threads, how))
    expect_equal(result.returncode, bare.returncode, "status")
    expect_equal(result.stderr, bare.stderr, "stderr")
    assert counts.all_there()
    committed.expect_all_reported(output, counts)
    check_counts(leaks(output)["events"])


for way in WAYS:
    add_case(way, end, way, 1)
    if way != "closefrom":
        add_case(f"{way}_with_threads", end, way, 4)

main()
