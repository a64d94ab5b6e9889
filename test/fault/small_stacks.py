#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How much stack the agent takes in what it interposes, on top of the function's own; and handlers on small stacks."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "stack_use"
FIRST_BYTES = 1536  # of a first call, which learns
AGAIN_BYTES = 512
# Of other libraries, or the same as one that is measured; parent and child of a fork would share the stack that is looked at.
ELSEWHERE = re.compile("fork|__lsan.*|cu[A-Zp].*|_Z.*|Initialize.*|__itt.*|torsh_v1.*|cfree|free_.*sized")
BOUND = {"LD_BIND_NOW": "1"}  # binding takes stack of the loader's own


def parse(result):
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return {name: int(n) for name, n in map(str.split, result.stdout.decode().splitlines())}


@case
def no_function_takes_more_of_the_stack_than_said():
    bare = parse(run([PROGRAM], {**clean_environment(), **BOUND}))
    used = parse(record([PROGRAM], env=BOUND)[0])
    over = {name: used[name] - bare[name] for name in bare}
    too_much = {name: n for name, n in over.items() if n > (AGAIN_BYTES if name.endswith("_again") else FIRST_BYTES)}
    expect_equal(too_much, {}, "bytes of stack beyond the function's own")


@case
def every_function_of_the_c_library_is_measured():
    text = (ROOT / "shim/exports.map").read_text()
    listed = set(re.findall(r"(\w+);", re.search(r"global:(.*)local:", text, re.S)[1]))
    measured = parse(run([PROGRAM], {**clean_environment(), **BOUND}))
    expect_equal(sorted(name for name in listed - measured.keys() if not ELSEWHERE.fullmatch(name)), [], "not measured")


@case
def a_crash_is_handled_on_an_alternate_stack_of_8_kib():
    bare = run([PROGRAM, "handler"]).returncode
    if bare == 77:
        raise Skip("this machine's registers alone take half of that")
    expect_equal(bare, 42, "status without the agent")
    expect_equal(record([PROGRAM, "handler"])[0].returncode, 42, "status")


if __name__ == "__main__":
    main()
