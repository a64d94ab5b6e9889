#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What an installed package keeps since its first use is no leak, and is counted for it to the byte. What it keeps again with
each call is one, and so is what a line of the user's loses without a package, even once.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from pythons import MALLOC, keeper, record_program  # noqa: E402

CALLS, SIZE = 50, 5000
# A package with a cache that its first call fills, and calls that lose a block each time.
PACKAGE = MALLOC + f"""
table = []
def use():
    if not table:
        fill()
def fill():
    table.append(malloc({SIZE}))
def lose():
    malloc({SIZE})
def lose_large():
    malloc(5 << 20)
"""
CACHES = {
    "cache_of_a_package": ("import pkg\nfor i in range(50):\n    pkg.use()", 1, SIZE),
    "cache_of_an_extension_module": ("import keeper\nkeeper.keep(1, 5000)", 1, SIZE),
}
LEAKS = {
    "each_call_of_a_package": ("import pkg\ndef step():\n    pkg.lose()\nfor i in range(50):\n    step()", CALLS, SIZE),
    "each_call_of_an_extension_module": ("import keeper\nfor i in range(50):\n    keeper.keep(1, 5000)", CALLS, SIZE),
    "each_call_after_a_cache_was_filled": ("import pkg\nfor i in range(50):\n    pkg.use(); pkg.lose()", CALLS, SIZE),
    "more_than_caches_hold": ("import pkg\npkg.lose_large()", 1, 5 << 20),
    "own_line_through_ctypes_once": (MALLOC + "malloc(5000)", 1, SIZE),
    "variables_of_a_process_that_was_not_taken_apart": ("import os, pkg\npkg.use()\nos._exit(0)", 1, SIZE),
    "own_line_called_by_a_package_once": (MALLOC + "import functools\nfunctools.reduce(lambda a, b: malloc(5000), [1, 2])", 1, SIZE),
}


def kept_and_lost(program):
    """What the package keeps, and what leaked."""
    report = leaks(record_program({"run.py": program}, {"pkg.py": PACKAGE}, ["run.py"], keeper()))
    return [entry for entry in report["kept_by_first_uses"]["by"] if entry["package"] in ("pkg", "keeper")], report["leaks"]


def is_kept(program, n_blocks, n_bytes):
    kept, lost = kept_and_lost(program)
    expect_equal((total(kept), total(kept, "blocks")), (n_bytes, n_blocks), "kept since the first use")
    expect_equal(total(lost), 0, "leaked bytes")


def is_lost(program, n_blocks, size):
    kept, found = kept_and_lost(program)
    lost = [entry for entry in found if entry["bytes"] == entry["blocks"] * size]
    expect_equal((total(lost), total(lost, "blocks")), (n_blocks * size, n_blocks), "leaked")
    assert total(kept) <= SIZE, kept


for _name, _row in CACHES.items():
    add_case(f"{_name}_is_no_leak", is_kept, *_row)
for _name, _row in LEAKS.items():
    add_case(f"planted_{_name}", is_lost, *_row)


@case
def the_package_is_named():
    output = record_program({"run.py": CACHES["cache_of_a_package"][0]}, {"pkg.py": PACKAGE}, ["run.py"])
    assert "No leaks." in torsh("leaks", output), torsh("leaks", output)
    assert "kept by the first use of: pkg 4.88 KiB" in torsh("leaks", output), torsh("leaks", output)
    assert "kept by the first use of pkg: 4.88 KiB (5,000 bytes)" in torsh("leaks", output, "--kept"), torsh("leaks", output, "--kept")
    torsh("check", output, "--max-leak", "0")
    expect_equal(total([entry for entry in leaks(output, "--no-default-suppressions")["leaks"] if entry["bytes"] == SIZE]), SIZE,
                 "without rules")


main()
