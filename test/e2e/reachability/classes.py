#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Twenty programs that end with blocks of all four classes, against Valgrind's memcheck: each line's blocks and bytes have
the same classes, apart from what the table says and why. The table is printed.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from checkers.verdicts import as_text, of_memcheck, ours, totals  # noqa: E402

SOURCE = ROOT / "test/programs/reachability/classes.cc"
PROGRAM = PROGRAMS / "classes"
LIBRARY = PROGRAMS / "liblocal.so"
# In both cases the blocks of our own are the same.
OTHERWISE = {
    "threads": "the thread's table of thread-local storage is among the program's blocks there, and possibly lost",
    "library_globals": "what the loader keeps of a library is among the program's blocks there",
}


@case
def each_block_has_the_class_that_memcheck_gives_it():
    folder, names, wrong = scratch("memcheck"), run([PROGRAM]).stdout.decode().split(), []
    expect_equal(len(names), 20, "programs")
    for name in names:
        mine = ours(SOURCE, [PROGRAM, name, LIBRARY])
        theirs = of_memcheck(SOURCE, [PROGRAM, name, LIBRARY], folder / f"{name}.xml")
        is_same = mine == theirs
        why = "the same" if is_same else OTHERWISE.get(name, f"DIFFERENT {theirs} {mine}")
        text = f"{name:20} {as_text(totals(mine)):110} {why}"
        print(text)
        own = {line: theirs.get(line) for line in mine}
        if is_same == (name in OTHERWISE) or mine != own or not all(n for n, _ in totals(mine).values()):
            wrong.append(text)
    assert not wrong, "\n".join(wrong)
    print(f"note: {len(names)} programs as memcheck, {len(OTHERWISE)} of them different with a reason")


main()
