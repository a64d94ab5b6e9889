#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The unwinder of aarch64, cross-compiled and emulated: rules, captures and signals, each stack compared with libgcc's, without
and with signed return addresses.
"""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

COMPILER, EMULATOR, SYSTEM = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
FOLDER = BUILD / "aarch64"


@case
def every_stack_is_libgccs():
    for needed in (COMPILER, EMULATOR):
        if not shutil.which(needed):
            raise Skip(f"{needed} is not here: nothing of aarch64 was built or run")
    if not pathlib.Path(SYSTEM, "lib/libc.so.6").exists():
        raise Skip(f"{SYSTEM} has no C library to run with")
    made = run(["make", "-j2", f"CC={COMPILER}", f"BUILD={FOLDER}", "stack-tests"], cwd=ROOT, timeout=300)
    assert made.returncode == 0, (made.stdout + made.stderr).decode()
    tests = sorted(path for path in (FOLDER / "test/unit/stacks").iterdir() if path.suffix == "")
    assert len(tests) == 7, tests
    for test in tests:
        result = run([EMULATOR, "-cpu", "max,pauth-impdef=on", "-L", SYSTEM, test], timeout=300)
        assert result.returncode == 0, f"{test.name}: {(result.stdout + result.stderr).decode()}"
    print(f"note: {len(tests)} programs")


main()
