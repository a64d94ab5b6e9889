#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Libraries opened at run time: found as without us, and named where what they allocate goes past us."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

INNER = r"""
#include <stdlib.h>
void *keep_in_library(void) { return malloc(777); }
"""

# argv[1] selects how the library is opened; only this program's RUNPATH contains its folder.
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


NEEDED = "int only_below(void) { return 1; }\n"

ASKING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
void *ask_next(const char *name) { return dlsym(RTLD_NEXT, name); }
void *ask_default(const char *name) { return dlsym(RTLD_DEFAULT, name); }
"""

# Prints what is found of each name, by whom and how: which object the answer lies in, or the error.
ASKED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static void print_found(const char *how, const char *name, void *found)
{
	const char *error = dlerror();
	Dl_info info = {0};

	if (found && dladdr(found, &info))
		printf("%s %s: %s\n", how, name, strrchr(info.dli_fname, '/') + 1);
	else
		printf("%s %s: none, %s\n", how, name, error && strstr(error, "undefined symbol") ? "undefined" : "no error");
}
int main(void)
{
	const char *const names[] = {"only_below", "ask_next", "cuLaunchKernel", "cuGetProcAddress_v2", "cuptiSubscribe",
				     "cuptiActivityEnable", "printf", "missing"};
	void *library = dlopen("libasking.so", RTLD_NOW | RTLD_LOCAL), *(*next)(const char *), *(*by_default)(const char *);

	if (!library)
		return 1;
	*(void **)&next = dlsym(library, "ask_next");
	*(void **)&by_default = dlsym(library, "ask_default");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		print_found("next of the library", names[i], next(names[i]));
		print_found("default of the library", names[i], by_default(names[i]));
		print_found("in the library", names[i], dlsym(library, names[i]));
		print_found("next", names[i], dlsym(RTLD_NEXT, names[i]));
		print_found("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
		print_found("in the program", names[i], dlsym(dlopen(NULL, RTLD_NOW), names[i]));
	}
	return 0;
}
"""


def names_are_found_as_without_us():
    gcc, folder = need_command("gcc"), scratch("program")
    (folder / "inner").mkdir()
    for name, text in (("needed", NEEDED), ("asking", ASKING), ("asked", ASKED)):
        (folder / f"{name}.c").write_text(text)
    for command in (["-shared", "-fPIC", "-o", "inner/libneeded.so", "needed.c"],
                    ["-O0", "-shared", "-fPIC", "-o", "inner/libasking.so", "asking.c", "-Linner", "-Wl,--no-as-needed", "-lneeded",
                     "-Wl,--enable-new-dtags,-rpath,$ORIGIN"],
                    ["-o", "asked", "asked.c", "-ldl", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/inner"]):
        result = run([gcc, "-g", *command], cwd=folder)
        expect_equal(result.returncode, 0, f"status of gcc ({result.stderr.decode()})")
    alone = run([folder / "asked"]).stdout.decode()
    assert "next of the library only_below: libneeded.so" in alone, alone
    assert "default cuLaunchKernel: none, undefined" in alone, alone
    result, _ = record([folder / "asked"])
    expect_equal(result.stdout.decode(), alone, "what dlsym finds")
    inert = {**agent_environment(scratch()), "TORSH_PROFILER_ENABLED": "0"}
    expect_equal(run([folder / "asked"], inert).stdout.decode(), alone, "what dlsym finds beside an inert agent")


FOLLOWED = r"""
#include <stdlib.h>
void *keep(void) { void *kept = malloc(777); return kept; }
"""

# Its call lies elsewhere: an address that was never met.
FOLLOWING = r"""
#include <stdlib.h>
void *keep(void) { volatile char room[600] = {1}; void *kept = malloc(777 + room[0]); return kept; }
"""

# Closed as the C library closes its own modules, past every preloaded dlclose.
REPLACING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
static struct link_map *keep_in(const char *path)
{
	void *library = dlopen(path, RTLD_NOW), *(*keep)(void) = (void *(*)(void))dlsym(library, "keep");
	return keep() ? library : 0;
}
int main(void)
{
	int (*close_unseen)(void *) = (int (*)(void *))dlsym(dlopen("libdl.so.2", RTLD_NOW), "dlclose");
	struct link_map *library = keep_in("./libfollowed.so");
	unsigned long place = library->l_addr;

	close_unseen(library);
	return keep_in("./libfollowing.so")->l_addr == place ? 7 : 2;
}
"""


def a_library_in_anothers_place_is_named_as_itself():
    gcc, folder = need_command("gcc"), scratch("program")
    for name, text, *options in (("libfollowed.so", FOLLOWED, "-shared", "-fPIC"), ("libfollowing.so", FOLLOWING, "-shared", "-fPIC"),
                                 ("replacing", REPLACING)):
        (folder / f"{name}.c").write_text(text)
        result = run([gcc, "-g", "-fno-builtin", *options, "-o", name, f"{name}.c", "-ldl"], cwd=folder)
        expect_equal(result.returncode, 0, f"status of gcc ({result.stderr.decode()})")
    result, output = record([folder / "replacing"], cwd=folder)
    expect_equal(result.returncode, 7, "status: is the one in the other's place?")
    kept = {entry["bytes"]: entry["stack"][0] for entry in entries_through(leaks(output)["leaks"], "keep")}
    for size, name in ((777, "libfollowed.so"), (778, "libfollowing.so")):
        expect_equal(pathlib.Path(kept[size]["module"]).name, name, f"module of {size} bytes")
        expect_equal(pathlib.Path(kept[size]["file"]).name, f"{name}.c", f"file of {size} bytes")


add_case("a_library_in_anothers_place_is_named_as_itself", a_library_in_anothers_place_is_named_as_itself)
add_case("names_are_found_as_without_us", names_are_found_as_without_us)
for how in SEEN:
    add_case(f"opened_{how}", open_library, how)

main()
