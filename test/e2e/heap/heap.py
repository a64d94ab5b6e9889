#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every entry point of the heap: each request is recorded once, and each free ends it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

# What test/programs/heap/entries.c keeps of its last round.
ENTRIES = {
    "leak_malloc": 1001,
    "leak_calloc": 7 * 11,
    "leak_realloc_of_null": 1003,
    "leak_realloc_grown": 5000,
    "leak_realloc_shrunk": 10,
    "leak_realloc_moved": 400000,
    "leak_realloc_mapped": 9 << 20,
    "leak_reallocarray": 9 * 13,
    "leak_posix_memalign": 1005,
    "leak_aligned_alloc": 1006,
    "leak_memalign": 1007,
    "leak_valloc": 1008,
    "leak_pvalloc": 1009,
    "leak_strdup": 11,
    "leak_strndup": 5,
    "leak_wcsdup": 5 * 4,
    "leak_zero": 0,
    "leak_large": 100 << 20,
    "leak_by_dlsym": 1011,
    "resize_in_vain": 1012,
}
OPERATORS = {
    "shop::leak_new": 2001,
    "shop::leak_one": 8,
    "shop::leak_nothrow": 2003,
    "shop::leak_aligned": 256,
}


def own_leaks(output, inside):
    """Leaked (blocks, bytes) by the function just inside of `inside`."""
    found = {}
    for entry in leaks(output)["leaks"]:
        names = functions(entry)
        if inside not in names or names.index(inside) == 0:
            continue
        name = names[names.index(inside) - 1].split("(")[0]
        blocks, n_bytes = found.get(name, (0, 0))
        found[name] = (blocks + entry["blocks"], n_bytes + entry["bytes"])
    return found


def expect_entries(output, without=None):
    expected = {name: (1, size) for name, size in ENTRIES.items() if name != without}
    expect_equal(own_leaks(output, "main"), expected, "leaks of main")
    check_counts(leaks(output)["events"])


def entries_with(env):
    result, output = record([PROGRAMS / "entries"], env=env)
    expect_equal(result.returncode, 0, "status")
    expect_entries(output)


@case
def each_entry_point_is_recorded_once():
    entries_with({})


@case
def a_full_recording_reports_the_same():
    entries_with({"TORSH_PROFILER_RECORD": "full"})


@case
def a_small_ring_loses_nothing():
    entries_with({"TORSH_PROFILER_RING": 65536})


def another_allocator(library):
    # jemalloc has no pvalloc: the C library's would hand out blocks that jemalloc can't free.
    has_pvalloc = "jemalloc" not in library
    command = [PROGRAMS / "entries", *([] if has_pvalloc else ["without_pvalloc"])]
    result, output = record(command, env={"LD_PRELOAD": f"{AGENT}:{need_library(library)}"})
    expect_equal(result.returncode, 0, "status")
    expect_entries(output, None if has_pvalloc else "leak_pvalloc")


for allocator in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
    add_case("under_" + allocator.split(".")[0], another_allocator, allocator)


OVERRUN = r"""
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *volatile kept;
__attribute__((noinline)) void keep(void) { kept = malloc(1001); }
int main(int n, char **words)
{
	char *block = malloc(40);

	keep();
	printf("%zu usable\n", malloc_usable_size(block));
	fflush(stdout);
	memset(block, 'x', n > 1 ? 60 : 40);
	free(block);
	return 0;
}
"""


@case
def a_library_that_defines_malloc_by_the_c_librarys_version_is_not_passed_by():
    """Nothing but a reference with that version finds it: the C library's checks of the heap."""
    library = need_library("libc_malloc_debug.so.0")
    source = scratch("program") / "overrun.c"
    source.write_text(OVERRUN)
    program = source.with_suffix("")
    expect_equal(run(["gcc", "-g", "-O1", "-fno-builtin", "-w", "-o", program, source]).returncode, 0, "compiler")
    for words in [], ["beyond"]:
        bare = run([program, *words], dict(clean_environment(), LD_PRELOAD=str(library), MALLOC_CHECK_="3"))
        result, output = record([program, *words], scratch(), env={"LD_PRELOAD": f"{AGENT}:{library}", "MALLOC_CHECK_": "3"})
        expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")
        expect_equal(own_leaks(output, "main").get("keep"), (1, 1001), "kept")
        assert (bare.returncode != 0) == bool(words), f"bare status {bare.returncode}"
    report = read_report("report", output)
    assert "libc_malloc_debug" in report["processes"][0]["allocator"], report["processes"][0]["allocator"]


@case
def the_agents_jemalloc_serves_the_target():
    entries_with({"TORSH_PROFILER_ALLOCATOR": "jemalloc"})


@case
def settings_of_the_targets_jemalloc_are_not_ours():
    result, output = record([PROGRAMS / "entries"], env={"MALLOC_CONF": "stats_print:true,abort_conf:true,nonsense:1"})
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"", b""), "status and output")
    expect_entries(output)


@case
def operators_new_are_recorded_by_way_of_malloc():
    result, output = record([PROGRAMS / "operators"])
    expect_equal(result.returncode, 0, "status")
    found = own_leaks(output, "main")
    for name, size in OPERATORS.items():
        expect_equal(found.get(name), (1, size), name)
    vector = next((share for name, share in found.items() if "leak_vector<int>" in name), None)
    assert vector == (2, 300 * 4 + 24), f"leak_vector<int>: {vector}"
    assert not any("give_back" in name for name in found), found


main()
