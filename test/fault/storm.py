#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Everything at once, for STORM_SECONDS and in STORM_THREADS: libraries loaded and unloaded, forks, execs, signals,
exceptions and cancelled threads. What the program counted itself is in the report, to the block. `make storm` makes it long.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from twins import libraries  # noqa: E402

STORM = PROGRAMS / "storm"
SECONDS = int(os.environ.get("STORM_SECONDS") or (20 if os.environ.get("CI") else 6))
N_THREADS = int(os.environ.get("STORM_THREADS") or 64)


@case
def a_storm_is_survived_and_counted_to_the_block():
    result, output = record([STORM, N_THREADS, SECONDS, *libraries()], timeout=TIMEOUT_S + 10 * SECONDS)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')[-2000:]})")
    own = {name: int(blocks) for name, blocks in (line.split() for line in result.stdout.decode().splitlines())}
    assert all(own.values()), f"something never happened: {own}"
    report = leaks(output)
    reported = {name: total(entries_through(report["leaks"], f"{name}()"), "blocks") for name in own}
    if reported != own:
        print(f"stderr: {result.stderr.decode(errors='replace')[-2000:]}")
        print(*(process for process in report["processes"] if process["end"] != "exit 0" or not process["followed"]), sep="\n")
    expect_equal(reported, own, "blocks of the report")
    print(f"note: {sum(own.values())} blocks of {len(own)} kinds in {SECONDS} s")


main()
