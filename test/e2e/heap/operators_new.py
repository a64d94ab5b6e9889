#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""C++'s operators new and delete, whichever library defines them: each block is recorded once, with
the requesting function, and the program does what it does without the agent."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

# Each form once kept, from a function named for it; each form a thousand times given back.
FORMS = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#define MANY 1000
typedef std::align_val_t align;
void *volatile kept[16];
struct alignas(64) wide { char bytes[192]; };

#define KEEP(name, i, call) extern "C" __attribute__((noinline)) void name() { size_t n = i < 4 ? 1000 + i : 256 * (i + 1); kept[i] = call; }
KEEP(keep_one, 0, ::operator new(n))
KEEP(keep_array, 1, ::operator new[](n))
KEEP(keep_one_nothrow, 2, ::operator new(n, std::nothrow))
KEEP(keep_array_nothrow, 3, ::operator new[](n, std::nothrow))
KEEP(keep_one_aligned, 4, ::operator new(n, align(64)))
KEEP(keep_array_aligned, 5, ::operator new[](n, align(128)))
KEEP(keep_one_aligned_nothrow, 6, ::operator new(n, align(64), std::nothrow))
KEEP(keep_array_aligned_nothrow, 7, ::operator new[](n, align(256), std::nothrow))

static void give_back()
{
	::operator delete(::operator new(50));
	::operator delete[](::operator new[](51));
	::operator delete(::operator new(52), 52);
	::operator delete[](::operator new[](53), 53);
	::operator delete(::operator new(54, std::nothrow), std::nothrow);
	::operator delete[](::operator new[](55, std::nothrow), std::nothrow);
	::operator delete(::operator new(256, align(64)), align(64));
	::operator delete[](::operator new[](256, align(64)), align(64));
	::operator delete(::operator new(256, align(64)), 256, align(64));
	::operator delete[](::operator new[](256, align(64)), 256, align(64));
	::operator delete(::operator new(256, align(64), std::nothrow), align(64), std::nothrow);
	::operator delete[](::operator new[](256, align(64), std::nothrow), align(64), std::nothrow);
	delete new wide;
	delete[] new wide[3];
	delete (wide *)nullptr;
}

static int throws(size_t n)
{
	try {
		kept[8] = ::operator new(n);
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

int main(int n, char **words)
{
	int n_caught = 0, n_refused = 0;
	bool is_fatal = n > 1 && !strcmp(words[1], "fatal"); /* an allocator written in C can't throw */

	for (int i = 0; i < MANY; i++) {
		give_back();
		if (is_fatal)
			continue;
		n_caught += throws(size_t(1) << 62);
		n_refused += !::operator new(size_t(1) << 62, std::nothrow);
	}
	/* What was thrown has left nothing behind: these are recorded. */
	keep_one(), keep_array(), keep_one_nothrow(), keep_array_nothrow(), keep_one_aligned(), keep_array_aligned();
	keep_one_aligned_nothrow(), keep_array_aligned_nothrow();
	printf("%d caught, %d refused\n", n_caught, n_refused);
	return 0;
}
"""
KEPT = {"keep_one": 1000, "keep_array": 1001, "keep_one_nothrow": 1002, "keep_array_nothrow": 1003, "keep_one_aligned": 1280,
        "keep_array_aligned": 1536, "keep_one_aligned_nothrow": 1792, "keep_array_aligned_nothrow": 2048}

# A library with C++ in a program without; OWN: with operators of its own, which all of its code finds.
PLUGIN = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#ifdef OWN
static int n_made, n_freed;
void *operator new(size_t n) { n_made++; return aligned_alloc(128, (n + 127) / 128 * 128); }
void *operator new[](size_t n) { return operator new(n); }
void operator delete(void *p) noexcept { n_freed += p != nullptr; free(p); }
void operator delete(void *p, size_t) noexcept { n_freed += p != nullptr; free(p); }
/* Strings are partly made and freed by the C++ run-time, which may have been there before. */
struct text { char bytes[200]; text(size_t, char c) { bytes[0] = c; } };
#else
typedef std::string text;
#endif
int *kept_number;
extern "C" int plugged_NAME(int i)
{
	int n_odd = 0;

	for (int k = 0; k < 100; k++) {
		text *made = new text(100 + k, 'x');
		n_odd += (size_t)made % 128 != 0;
		delete made;
	}
	try {
		throw text(200, 'y');
	} catch (const text &) {
	}
	kept_number = new int[1001 + i];
#ifdef OWN
	printf("%d odd, %d made, %d freed\n", n_odd, n_made, n_freed);
#endif
	return 0;
}
"""

HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **words)
{
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i + 1 < n; i += 2) {
			void *library = dlopen(words[i], RTLD_NOW | RTLD_LOCAL);
			int (*plugged)(int) = library ? (int (*)(int))dlsym(library, words[i + 1]) : 0;

			if (!plugged)
				return fprintf(stderr, "%s\n", dlerror()), 1;
			plugged(i);
			if (dlerror())
				return fprintf(stderr, "an error was left\n"), 1;
			if (round == 0)
				dlclose(library);
		}
	}
	return 0;
}
"""


def must_run(*command, **options):
    result = run(command, **options)
    expect_equal(result.returncode, 0, f"{shell_words(*command)}: {result.stderr.decode()}")
    return result


def compile_into(folder, name, text, *flags, compiler="g++"):
    source = folder / f"{name}{'.cc' if compiler == 'g++' else '.c'}"
    source.write_text(text)
    must_run(compiler, "-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", *flags, "-o", folder / name, source, "-ldl")
    return folder / name


def same_as_bare(command, **environment):
    bare = run(command, dict(clean_environment(), **environment))
    preload = ":".join([str(AGENT), *environment.values()])
    result, output = record(command, scratch("recording"), env={"LD_PRELOAD": preload})
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "outcome")
    return output


def kept_by_functions(report):
    """{function: (blocks, bytes)} of the functions with a name that implies that they keep
    something."""
    found = {}
    for entry in report["leaks"]:
        name = next((name for name in functions(entry) if name.startswith(("keep_", "plugged_"))), "others")
        blocks, size = found.get(name, (0, 0))
        found[name] = (blocks + entry["blocks"], size + entry["bytes"])
    return found


def expect_each_once(report, n_allocators=0):
    events = report["events"]
    # A block with two records is freed by its second one; a double free has no block, and neither
    # has a block that an allocator made for itself and another library frees.
    expect_equal((events["implicit_frees"], events["dropped"]), (0, 0), "implicit frees, dropped events")
    assert events["unknown_frees"] <= n_allocators, events["unknown_frees"]


def all_forms(library, *arguments):
    program = compile_into(scratch("program"), "forms", FORMS, "-std=c++17", "-fsized-deallocation", "-faligned-new")
    preload = {}
    if library:
        preload = {"LD_PRELOAD": str(need_library(library))}
    report = leaks(same_as_bare([program, *arguments], **preload))
    found = kept_by_functions(report)
    # The C++ run-time keeps memory for exceptions that it can't get memory for.
    found.pop("others", None)
    expect_equal(found, {name: (1, size) for name, size in KEPT.items()}, "kept")
    expect_each_once(report, n_allocators=1 if library == "libtcmalloc.so.4" else 0)


add_case("forms_by_way_of_malloc", all_forms, None)
for library, *arguments in (["libjemalloc.so.2"], ["libtcmalloc_minimal.so.4"], ["libtcmalloc.so.4"],
                            ["libtcmalloc_minimal_debug.so.4"], ["libmimalloc.so.2", "fatal"]):
    add_case("forms_of_" + library.split(".")[0], all_forms, library, *arguments)


@case
def jemalloc_is_refused_where_the_program_has_its_own():
    program = compile_into(scratch("program"), "forms", FORMS, "-std=c++17", "-fsized-deallocation", "-faligned-new")
    for library in need_library("libjemalloc.so.2"), need_library("libtcmalloc_minimal.so.4"):
        result, output = record([program], scratch("recording"),
                                env={"LD_PRELOAD": f"{AGENT}:{library}", "TORSH_PROFILER_ALLOCATOR": "jemalloc"})
        expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
        assert "TORSH_PROFILER_ALLOCATOR=jemalloc is ignored" in torsh("report", output), "it is not in the report"
        expect_each_once(leaks(output))


def plugged(folder, name, *flags):
    return compile_into(folder, f"lib{name}.so", PLUGIN.replace("NAME", name), "-shared", "-fPIC", *flags), f"plugged_{name}"


def expect_plugins(*plugins):
    folder = scratch("program")
    host = compile_into(folder, "host", HOST, compiler="gcc")
    report = leaks(same_as_bare([host, *(word for plugin in plugins for word in plugged(folder, *plugin))]))
    found = kept_by_functions(report)
    for i, (name, *_) in enumerate(plugins):
        expect_equal(found.get(f"plugged_{name}"), (2, 2 * 4 * (1001 + 1 + 2 * i)), f"kept by {name}")
    expect_each_once(report)


@case
def a_library_that_brings_cpp_into_a_program_without():
    expect_plugins(["shared"])


@case
def libraries_with_a_run_time_of_their_own_each():
    expect_plugins(["shared"], ["first", "-static-libstdc++"], ["second", "-static-libstdc++"])


@case
def a_library_that_replaces_them_for_itself():
    folder = scratch("program")
    host = compile_into(folder, "host", HOST, compiler="gcc")
    command = [host, *plugged(folder, "shared"), *plugged(folder, "owning", "-DOWN")]
    expect_each_once(leaks(same_as_bare(command)))


main()
