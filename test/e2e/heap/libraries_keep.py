#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the C library keeps for itself is no leak of the program, unless the program has it keep more and more: streams that
nobody closes with their buffers, variables set again and again, handlers, message catalogues.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "keepers"
WAYS = ("leave_open", "set_variable", "register_at_fork", "bind_domain")
AT_LEAST = 9 << 20


def kept_by(way, is_once):
    result, output = record([PROGRAM, way, int(is_once)])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    report = leaks(output)
    check_counts(report["events"])
    return report


def what_is_made_again_and_again_is_reported(way):
    report = kept_by(way, False)
    found = total(entries_through(report["leaks"], way))
    assert found > AT_LEAST, f"{found} bytes are reported, bookkeeping {report['bookkeeping']}"


for _way in WAYS:
    add_case(f"what_{_way}_makes_again_and_again_is_reported", what_is_made_again_and_again_is_reported, _way)


@case
def what_is_made_once_is_bookkeeping():
    for way in WAYS[1:]:
        expect_equal(kept_by(way, True)["leaks"], [], f"leaks of {way}")
    (leak,) = kept_by("leave_open", True)["leaks"]
    assert leak["bytes"] < 1000, f"the stream without its buffer, {leak['bytes']} bytes"


main()
