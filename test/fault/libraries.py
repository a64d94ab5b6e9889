#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Threads that load and unload libraries at the same time, and what happens meanwhile."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from twins import libraries  # noqa: E402

LOADER = PROGRAMS / "loader"
N_ROUNDS = 2500
N_FORKS = 100


def closed_by(n_threads, settings):
    command = [LOADER, n_threads, N_ROUNDS, *libraries()]
    result, output = record(command, env=settings)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')})")
    kept = int(result.stdout)
    expect_equal(kept, n_threads * N_ROUNDS * 3, "blocks that the program kept")
    found = leaks(output)["leaks"]
    if settings:
        # No stack distinguishes the program's blocks from the loader's and the C library's.
        assert total(found, "blocks") >= kept, f"{total(found, 'blocks')} blocks reported, {kept} kept"
    else:
        expect_equal(total(entries_through(found, "keep_block"), "blocks"), kept, "blocks of the report")


@case
def children_forked_while_libraries_load_end():
    command = [LOADER, "fork", 2, N_FORKS, *libraries()]
    expect_equal(run(command).returncode, 0, "status without the agent")
    result, output = record(command)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')})")
    reported = total(entries_through(leaks(output)["leaks"], "keep_block"), "blocks")
    expect_equal(reported, int(result.stdout), "blocks of the report")


add_case("two_threads_close_libraries", closed_by, 2, {})
add_case("eight_threads_close_libraries", closed_by, 8, {})
add_case("two_threads_close_libraries_without_stacks", closed_by, 2, {"TORSH_PROFILER_WITH_STACK": "0"})

main()
