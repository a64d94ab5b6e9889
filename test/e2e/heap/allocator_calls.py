#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What programs allocate by an allocator's own names (mallocx, tc_malloc, mi_malloc): each block once, wherever the program keeps
the function's address; and where the allocator isn't there the program doesn't find it, as without the agent.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

# KEEP's function keeps one block; what give_back() makes it frees again.
COMMON = r"""
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define MANY 100
#ifdef __cplusplus
extern "C" {
#endif
void *volatile kept[64];
#define KEEP(name, call) __attribute__((noinline)) void keep_##name(void) { kept[__COUNTER__] = (call); }
"""

JEMALLOC = COMMON + r"""
#define WEAK __attribute__((weak))
void *mallocx(size_t, int) WEAK; void *rallocx(void *, size_t, int) WEAK; size_t xallocx(void *, size_t, size_t, int) WEAK;
void dallocx(void *, int) WEAK; void sdallocx(void *, size_t, int) WEAK; size_t nallocx(size_t, int) WEAK; size_t sallocx(const void *, int) WEAK;
#define ALIGNED_256 8
#define ZEROED 0x40
static struct { void *(*make)(size_t, int); void (*end)(void *, int); } table = {mallocx, dallocx};
static void *expanded(size_t n) { void *p = mallocx(40, 0); if (xallocx(p, n, 0, 0) < n) fprintf(stderr, "not expanded\n"); return p; }
KEEP(plain, mallocx(1000, 0))
KEEP(aligned, mallocx(1001, ALIGNED_256))
KEEP(zeroed, mallocx(1002, ZEROED))
KEEP(resized, rallocx(mallocx(10, 0), 70000, 0))
KEEP(shrunk, rallocx(mallocx(100000, 0), 1004, 0))
KEEP(in_place, expanded(45))
KEEP(by_table, table.make(1006, 0))
KEEP(by_name, ((void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx"))(1007, 0))
KEEP(by_malloc, malloc(1008))
static void give_back(void)
{
	void *p = mallocx(50, 0);

	printf("%zu %zu\n", sallocx(p, 0), nallocx(100, 0));
	dallocx(p, 0);
	sdallocx(mallocx(51, 0), 51, 0);
	free(mallocx(52, ZEROED));
	dallocx(malloc(53), 0);
	dallocx(realloc(mallocx(54, 0), 5400), 0);
	dallocx(rallocx(mallocx(55, 0), 5500, 0), 0);
	table.end(table.make(56, 0), 0);
	xallocx(p = mallocx(57, 0), 1 << 20, 0, 0);
	dallocx(p, 0);
}
static void keep(void)
{
	keep_plain(), keep_aligned(), keep_zeroed(), keep_resized(), keep_shrunk(), keep_in_place(), keep_by_table(), keep_by_name();
	keep_by_malloc();
}
static bool is_there(void) { return mallocx && dallocx && nallocx; }
"""
JEMALLOC_KEPT = {"plain": 1000, "aligned": 1001, "zeroed": 1002, "resized": 70000, "shrunk": 1004, "in_place": 45, "by_table": 1006,
                 "by_name": 1007, "by_malloc": 1008}

TCMALLOC = COMMON + r"""
#define WEAK __attribute__((weak))
void *tc_malloc(size_t) WEAK; void *tc_calloc(size_t, size_t) WEAK; void *tc_realloc(void *, size_t) WEAK; void tc_free(void *) WEAK;
void tc_free_sized(void *, size_t) WEAK; void tc_cfree(void *) WEAK; void *tc_memalign(size_t, size_t) WEAK; void *tc_valloc(size_t) WEAK;
void *tc_pvalloc(size_t) WEAK; int tc_posix_memalign(void **, size_t, size_t) WEAK; void *tc_malloc_skip_new_handler(size_t) WEAK;
void *tc_new(size_t) WEAK; void *tc_newarray(size_t) WEAK; void tc_delete(void *) WEAK; void tc_deletearray(void *) WEAK;
void tc_delete_sized(void *, size_t) WEAK; void tc_deletearray_sized(void *, size_t) WEAK;
void *tc_new_nothrow(size_t, const void *) WEAK; void *tc_newarray_nothrow(size_t, const void *) WEAK;
void tc_delete_nothrow(void *, const void *) WEAK; void tc_deletearray_nothrow(void *, const void *) WEAK; size_t tc_malloc_size(void *) WEAK;
static struct { void *(*make)(size_t); void (*end)(void *); } table = {tc_malloc, tc_free};
static void *placed(size_t n) { void *p = NULL; tc_posix_memalign(&p, 64, n); return p; }
KEEP(plain, tc_malloc(1000))
KEEP(zeroed, tc_calloc(7, 143))
KEEP(resized, tc_realloc(tc_malloc(10), 70000))
KEEP(by_memalign, tc_memalign(128, 1003))
KEEP(placed, placed(1004))
KEEP(by_valloc, tc_valloc(1005))
KEEP(by_pvalloc, tc_pvalloc(1006))
KEEP(by_new, tc_new(1007))
KEEP(by_newarray, tc_newarray(1008))
KEEP(by_nothrow, tc_new_nothrow(1009, NULL))
KEEP(by_table, table.make(1010))
KEEP(by_name, ((void *(*)(size_t))dlsym(RTLD_DEFAULT, "tc_malloc"))(1011))
KEEP(by_malloc, malloc(1012))
static void give_back(void)
{
	void *p = tc_malloc(50);

	printf("%zu\n", tc_malloc_size(p));
	tc_free(p);
	tc_free_sized(tc_malloc_skip_new_handler(51), 51);
	tc_cfree(tc_calloc(4, 13));
	free(tc_malloc(53));
	tc_free(malloc(54));
	tc_free(realloc(tc_malloc(55), 5500));
	tc_delete(tc_new(56));
	tc_deletearray(tc_newarray(57));
	tc_delete_sized(tc_new(58), 58);
	tc_deletearray_sized(tc_newarray(59), 59);
	tc_delete_nothrow(tc_new_nothrow(60, NULL), NULL);
	tc_deletearray_nothrow(tc_newarray_nothrow(61, NULL), NULL);
	table.end(table.make(62));
	if (tc_realloc(tc_malloc(63), 0))
		printf("realloc to 0 gives a block\n");
}
static void keep(void)
{
	keep_plain(), keep_zeroed(), keep_resized(), keep_by_memalign(), keep_placed(), keep_by_valloc(), keep_by_pvalloc();
	keep_by_new(), keep_by_newarray(), keep_by_nothrow(), keep_by_table(), keep_by_name(), keep_by_malloc();
}
static bool is_there(void) { return tc_malloc && tc_new && tc_malloc_size; }
"""
TCMALLOC_KEPT = {"plain": 1000, "zeroed": 1001, "resized": 70000, "by_memalign": 1003, "placed": 1004, "by_valloc": 1005,
                 "by_pvalloc": 1006, "by_new": 1007, "by_newarray": 1008, "by_nothrow": 1009, "by_table": 1010, "by_name": 1011,
                 "by_malloc": 1012}

MIMALLOC = COMMON + r"""
#define WEAK __attribute__((weak))
typedef void heap;
void *mi_malloc(size_t) WEAK; void *mi_zalloc(size_t) WEAK; void *mi_calloc(size_t, size_t) WEAK; void *mi_mallocn(size_t, size_t) WEAK;
void *mi_realloc(void *, size_t) WEAK; void *mi_reallocf(void *, size_t) WEAK; void *mi_rezalloc(void *, size_t) WEAK;
void *mi_recalloc(void *, size_t, size_t) WEAK; void *mi_reallocarray(void *, size_t, size_t) WEAK; int mi_reallocarr(void *, size_t, size_t) WEAK;
void *mi_expand(void *, size_t) WEAK; void mi_free(void *) WEAK; void mi_free_size(void *, size_t) WEAK; void mi_free_aligned(void *, size_t) WEAK;
char *mi_strdup(const char *) WEAK; char *mi_strndup(const char *, size_t) WEAK; void *mi_malloc_aligned(size_t, size_t) WEAK;
int mi_posix_memalign(void **, size_t, size_t) WEAK; void *mi_aligned_alloc(size_t, size_t) WEAK; void *mi_new(size_t) WEAK;
void *mi_new_n(size_t, size_t) WEAK; void *mi_malloc_small(size_t) WEAK; void *mi_realloc_aligned(void *, size_t, size_t) WEAK;
heap *mi_heap_new(void) WEAK; void mi_heap_delete(heap *) WEAK; void mi_heap_destroy(heap *) WEAK; void *mi_heap_malloc(heap *, size_t) WEAK;
void *mi_heap_calloc(heap *, size_t, size_t) WEAK; void *mi_heap_realloc(heap *, void *, size_t) WEAK; char *mi_heap_strdup(heap *, const char *) WEAK;
size_t mi_usable_size(const void *) WEAK;
static struct { void *(*make)(size_t); void (*end)(void *); } table = {mi_malloc, mi_free};
static heap *own, *doomed;
static void *placed(size_t n) { void *p = NULL; mi_posix_memalign(&p, 64, n); return p; }
static void *rearranged(size_t c, size_t n) { void *p = mi_malloc(5); mi_reallocarr(&p, c, n); return p; }
static void *expanded(size_t n) { void *p = mi_malloc(40); return mi_expand(p, n); }
KEEP(plain, mi_malloc(1000))
KEEP(zeroed, mi_zalloc(1001))
KEEP(counted, mi_calloc(2, 501))
KEEP(many, mi_mallocn(17, 59))
KEEP(resized, mi_realloc(mi_malloc(10), 70000))
KEEP(rearranged, rearranged(15, 67))
KEEP(expanded, expanded(45))
KEEP(text, mi_strdup("of these bytes"))
KEEP(some_text, mi_strndup("of these bytes", 7))
KEEP(aligned, mi_malloc_aligned(1009, 256))
KEEP(placed, placed(1010))
KEEP(by_new, mi_new(1011))
KEEP(in_heap, mi_heap_malloc(own, 1012))
KEEP(text_in_heap, mi_heap_strdup(own, "of these"))
KEEP(by_table, table.make(1013))
KEEP(by_name, ((void *(*)(size_t))dlsym(RTLD_DEFAULT, "mi_malloc"))(1014))
KEEP(by_malloc, malloc(1015))
KEEP(in_doomed_heap, mi_heap_malloc(doomed, 1016))
static void give_back(void)
{
	void *p = mi_malloc(50);

	printf("%d\n", mi_usable_size(p) >= 50);
	mi_free(p);
	mi_free_size(mi_zalloc(51), 51);
	mi_free_aligned(mi_malloc_aligned(52, 64), 64);
	free(mi_malloc(53));
	mi_free(malloc(54));
	mi_free(mi_reallocf(mi_malloc(55), 5500));
	mi_free(mi_rezalloc(mi_zalloc(56), 5600));
	mi_free(mi_recalloc(mi_calloc(2, 28), 3, 28));
	mi_free(mi_reallocarray(mi_malloc(57), 2, 57));
	mi_free(mi_realloc_aligned(mi_malloc_aligned(58, 64), 5800, 64));
	mi_free(mi_new_n(2, 29));
	mi_free(mi_malloc_small(59));
	mi_free(mi_aligned_alloc(64, 128));
	mi_free(mi_strdup("gone"));
	table.end(table.make(60));
	mi_free(mi_realloc(mi_malloc(61), 0));
	mi_free(mi_heap_realloc(own, mi_heap_calloc(own, 3, 5), 500));
}
static void keep(void)
{
	own = mi_heap_new();
	for (int i = 0; i < MANY; i++)
		give_back();
	doomed = mi_heap_new();
	keep_in_doomed_heap();
	for (int i = 0; i < MANY; i++)
		mi_heap_malloc(doomed, 10 + i);
	mi_heap_destroy(doomed);
	keep_plain(), keep_zeroed(), keep_counted(), keep_many(), keep_resized(), keep_rearranged(), keep_expanded(), keep_text();
	keep_some_text(), keep_aligned(), keep_placed(), keep_by_new(), keep_in_heap(), keep_text_in_heap(), keep_by_table();
	keep_by_name(), keep_by_malloc();
	mi_heap_delete(own); /* its blocks live on */
	own = mi_heap_new();
}
static bool is_there(void) { return mi_malloc && mi_heap_new && mi_usable_size; }
"""
MIMALLOC_KEPT = {"plain": 1000, "zeroed": 1001, "counted": 1002, "many": 1003, "resized": 70000, "rearranged": 1005, "expanded": 45,
                 "text": 15, "some_text": 8, "aligned": 1009, "placed": 1010, "by_new": 1011, "in_heap": 1012, "text_in_heap": 9,
                 "by_table": 1013, "by_name": 1014, "by_malloc": 1015}

MAIN = r"""
#ifdef __cplusplus
}
#endif
int main(void)
{
	if (!is_there()) {
		printf("not there\n");
		free(malloc(40));
		return 0;
	}
	keep();
	for (int i = 0; i < MANY; i++)
		give_back();
	return 0;
}
"""
PROGRAMS_OF = {
    "jemalloc": ("libjemalloc.so.2", JEMALLOC, JEMALLOC_KEPT),
    "tcmalloc": ("libtcmalloc.so.4", TCMALLOC, TCMALLOC_KEPT),
    "tcmalloc_minimal": ("libtcmalloc_minimal.so.4", TCMALLOC, TCMALLOC_KEPT),
    "mimalloc": ("libmimalloc.so.2", MIMALLOC, MIMALLOC_KEPT),
}
# Where the addresses of functions that are called are put: when first called, at the start, or by the program's own code.
WAYS = {
    "bound_late": ["-Wl,-z,lazy"],
    "bound_at_start": ["-Wl,-z,now"],
    "called_by_address": ["-fno-plt", "-Wl,-z,now"],
    "of_a_fixed_address": ["-no-pie", "-fno-pie", "-Wl,-z,lazy"],
}


def library_path(name):
    found = sorted(pathlib.Path("/usr/lib").glob(f"*/{name}"))
    if not found:
        raise Skip(f"{name} is not on this machine")
    return found[0]


def compile_program(text, *flags, name="program"):
    source = scratch(name) / "source.c"
    source.write_text(text)
    program = source.with_name("program")
    # glibc before 2.36 declares RTLD_DEFAULT only there.
    options = ["-g", "-O1", "-w", "-D_GNU_SOURCE", "-fno-builtin", "-fno-optimize-sibling-calls"]
    result = run(["gcc", *options, "-o", program, source, *flags, "-ldl"])
    expect_equal(result.returncode, 0, result.stderr.decode())
    return program


def expect_as_bare(command, **variables):
    bare = run(command, dict(clean_environment(), **variables))
    result, output = record(command, scratch("recording"), env=dict(variables, LD_PRELOAD=":".join(
        [str(AGENT), *filter(None, [variables.get("LD_PRELOAD")])])))
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")
    return bare.stdout, output


def expect_kept(output, kept, n_allocators=0):
    """n_allocators: what an allocator made for itself and lets another library give back."""
    report = leaks(output)
    found = {}
    for entry in report["leaks"]:
        name = next((name for name in functions(entry) if name.startswith("keep_")), "others")
        # What an allocator keeps for itself.
        if name == "others" and "main" not in functions(entry):
            continue
        blocks, size = found.get(name, (0, 0))
        found[name] = (blocks + entry["blocks"], size + entry["bytes"])
    expect_equal(found, {f"keep_{name}": (1, size) for name, size in kept.items()}, "kept")
    events = report["events"]
    expect_equal((events["implicit_frees"], events["dropped"]), (0, 0), "implicit frees, dropped events")
    assert events["unknown_frees"] <= n_allocators, events["unknown_frees"]
    # No frame of the agent's between the allocator and its caller.
    for entry in report["leaks"]:
        assert functions(entry)[0].startswith("keep_") or len(functions(entry)) > 2, functions(entry)


def of_a_program(allocator, way):
    library, text, kept = PROGRAMS_OF[allocator]
    program = compile_program(text + MAIN, *WAYS[way], library_path(library))
    printed, output = expect_as_bare([program])
    assert b"not there" not in printed, printed
    expect_kept(output, kept, n_allocators=1 if allocator == "tcmalloc" else 0)


def add_cases():
    for allocator in PROGRAMS_OF:
        for way in WAYS if allocator == "jemalloc" else list(WAYS)[:2]:
            add_case(f"of_{allocator}_{way}", of_a_program, allocator, way)


add_cases()


def preloaded_or_not(allocator):
    """A program that checks whether the allocator is there."""
    library, text, kept = PROGRAMS_OF[allocator]
    program = compile_program(text + MAIN)
    printed, output = expect_as_bare([program])
    expect_equal(printed, b"not there\n", "without the allocator")
    printed, output = expect_as_bare([program], LD_PRELOAD=str(library_path(library)))
    assert b"not there" not in printed, printed
    expect_kept(output, kept)


for allocator in "jemalloc", "tcmalloc_minimal", "mimalloc":
    add_case(f"{allocator}_is_found_where_it_is_preloaded_only", preloaded_or_not, allocator)

HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **words)
{
	void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
	int (*start)(void) = library ? (int (*)(void))dlsym(library, "start") : 0;

	return start ? start() : (fprintf(stderr, "%s\n", dlerror()), 1);
}
"""


def of_a_library_that_is_opened_later(binding):
    path = library_path("libjemalloc.so.2")
    library = compile_program(JEMALLOC + MAIN.replace("main", "start"), "-shared", "-fPIC", f"-Wl,-z,{binding}", name="library")
    host = compile_program(HOST)
    printed, output = expect_as_bare([host, library], LD_PRELOAD=str(path))
    assert b"not there" not in printed, printed
    expect_kept(output, JEMALLOC_KEPT)


for binding in "lazy", "now":
    add_case(f"of_a_library_that_is_opened_later_and_bound_{binding}", of_a_library_that_is_opened_later, binding)


@case
def an_allocator_that_is_opened_later_is_named():
    path = library_path("libjemalloc.so.2")
    host = compile_program(HOST)
    printed, output = expect_as_bare([host, path])
    notes = " ".join(read_report("report", output)["notes"])
    assert f"by its own names (mallocx, tc_malloc, mi_malloc) is not seen: {path}" in notes, notes


@case
def nothing_is_changed_in_an_inert_agent():
    path = library_path("libjemalloc.so.2")
    program = compile_program(JEMALLOC + MAIN, path)
    expect_as_bare([program], TORSH_PROFILER_ENABLED="0")


main()
