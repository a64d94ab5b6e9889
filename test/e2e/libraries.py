#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Libraries opened at run time: found as without us, and named where what they allocate goes past us."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

INNER = r"""
#include <stdlib.h>
void *keep_in_library(void) { return malloc(777); }
"""

# argv[1] says how the library is opened; its folder is known to this program's RUNPATH alone.
OUTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
int main(int argc, char **argv)
{
	void *library = NULL, *(*keep)(void);

	if (argc == 2 && !strcmp(argv[1], "plain"))
		library = dlopen("libinner.so", RTLD_NOW);
	else if (argc == 2 && !strcmp(argv[1], "deepbind"))
		library = dlopen("libinner.so", RTLD_NOW | RTLD_DEEPBIND);
	else if (argc == 2 && !strcmp(argv[1], "namespace"))
		library = dlmopen(LM_ID_NEWLM, "libinner.so", RTLD_NOW);
	if (!library)
		return 1;
	keep = (void *(*)(void))dlsym(library, "keep_in_library");
	return keep && keep() ? 7 : 2;
}
"""

# how: bytes of the library's block that are seen
SEEN = {"plain": 777, "deepbind": 0, "namespace": 0}


def build():
    gcc, folder = need_command("gcc"), scratch("program")
    (folder / "inner").mkdir()
    (folder / "inner.c").write_text(INNER)
    (folder / "outer.c").write_text(OUTER)
    for command in (["-shared", "-fPIC", "-o", "inner/libinner.so", "inner.c"],
                    ["-o", "outer", "outer.c", "-ldl", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/inner"]):
        result = run([gcc, "-g", "-fno-builtin", *command], cwd=folder)
        expect_equal(result.returncode, 0, f"status of gcc ({result.stderr.decode()})")
    return folder / "outer"


def open_library(how):
    program = build()
    expect_equal(run([program, how]).returncode, 7, "status without the agent")
    result, output = record([program, how])
    expect_equal(result.returncode, 7, "status: is the library found by its caller's RUNPATH?")
    expect_equal(total(entries_through(leaks(output)["leaks"], "keep_in_library")), SEEN[how], "bytes that are seen")
    report = torsh("report", output)
    expect_equal("libinner.so" in report and "RTLD_DEEPBIND" in report, SEEN[how] == 0, f"a note in the report:\n{report}\n")


for how in SEEN:
    add_case(f"opened_{how}", open_library, how)

main()
