#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Folds of 1,024 ranks, made from one with noise: merged in bounded memory, in any tree, by any number of processes."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import made  # noqa: E402

RANKS = 1024
LIMIT_MIB = 128


def merged(output, *arguments):
    """The bytes of a merged fold, and the MiB that the command took at most."""
    started = subprocess.Popen([TORSH, "merge", *map(str, arguments), "-o", output])
    _, status, usage = os.wait4(started.pid, 0)
    expect_equal(os.waitstatus_to_exitcode(status), 0, "status")
    return pathlib.Path(output).read_bytes(), usage.ru_maxrss / 1024


@case
def a_thousand_ranks_merge_to_the_same_in_every_tree():
    recording, _ = made(ranks=2, operators=202)
    folder, many = scratch("out"), scratch("many")
    torsh("fold", recording, "--rank", "0", "-o", folder / "one.fold")
    run([BUILD / "test/fold_synthesis", folder / "one.fold", str(RANKS), many], check=True)
    whole, mib = merged(folder / "whole", many)
    expect_equal(merged(folder / "jobs", many, "-j", "3")[0] == whole, True, "three processes give the same")
    folds = sorted(many.glob("*.fold"))
    odd, even = (merged(folder / name, *folds[first::2])[1] for name, first in (("odd", 1), ("even", 0)))
    expect_equal(merged(folder / "tree", folder / "odd", folder / "even")[0] == whole, True, "two halves give the same")
    assert max(mib, odd, even) < LIMIT_MIB, (mib, odd, even)
    report = json.loads(torsh("ranks", folder / "whole", "--json", "--limit", "0"))
    expect_equal([rank["rank"] for rank in report["ranks"]], list(range(RANKS)), "ranks of the merged fold")
    print(f"{len(whole)} bytes for {RANKS} ranks, {mib:.0f} MiB")


main()
