#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Handlers that jump, throw or are cancelled out of wrappers: the thread goes on being recorded, and nothing is lost unsaid."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

BUMP = PROGRAMS / "libbump.so"
# way: how many signals or threads, and whether a wrapper is left for good
WAYS = {
    "siglongjmp": (3000, True),
    "siglongjmp_off_an_alternate_stack": (3000, True),
    "siglongjmp_out_of_handlers_of_handlers": (1000, True),
    "setcontext": (3000, True),
    "exception": (1000, True),
    "cancel": (150, True),
    "fibers": (3000, False),
    "alternate_stack": (3000, False),
}
HANDLERS_MOST = 4  # that one jump leaves, and what they interrupted


def leave_wrappers(way, n_times, is_left):
    output = scratch()
    environment = agent_environment(output)
    environment["LD_PRELOAD"] += f":{BUMP}"
    result = run([PROGRAMS / "jumps", way, n_times], environment)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    begun, got, after = map(int, result.stdout.split())
    report = leaks(output)
    found = total(entries_through(report["leaks"], "keep_block"), "blocks")
    expect_equal(total(entries_through(report["leaks"], "keep_after"), "blocks"), after, "blocks got when all was over")
    # Of a call that was left in its middle nobody knows whether there is a block.
    most = begun if is_left else got
    events = report["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "events produced")
    least = got - events["dropped"]
    assert least <= found <= most, f"{found} blocks are reported; {got} were got, {begun} were asked for: {events}"
    if not is_left:
        expect_equal(events["dropped"], 0, "events dropped")
    else:
        most = n_times * HANDLERS_MOST
        assert events["dropped"] <= most, f"{events['dropped']} events were dropped, at most {most} wrappers were left"


for name, (n, left) in WAYS.items():
    add_case(f"wrappers_are_left_by_{name}" if left else f"wrappers_are_interrupted_with_{name}",
             leave_wrappers, name, n, left)


if __name__ == "__main__":
    main()
