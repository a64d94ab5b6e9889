#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Forks where others don't expect them: in a signal handler that interrupted a fork, or an allocation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

N_HANDLED = 300


def fork_in_handlers(settings):
    command = [PROGRAMS / "forks", N_HANDLED]
    expect_equal(run(command).returncode, 0, "status without the agent")
    result, output = record(command, env=settings)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')})")
    expect_equal(bool(recordings(output)), "TORSH_PROFILER_ENABLED" not in settings, "a recording")


add_case("a_handler_forks_in_a_fork", fork_in_handlers, {})
add_case("a_handler_forks_in_a_fork_beside_an_inert_agent", fork_in_handlers, {"TORSH_PROFILER_ENABLED": "0"})
add_case("a_handler_forks_in_a_fork_with_our_jemalloc", fork_in_handlers, {"TORSH_PROFILER_ALLOCATOR": "jemalloc"})

main()
