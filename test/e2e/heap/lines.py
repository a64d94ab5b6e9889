#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files, lines and inlined calls of every frame in the program itself are addr2line's, or none if
it has none: for programs with fragmented compilation units, and with some units compiled with -g
only."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

N_OBJECTS = 6

# Hot, cold, startup and other functions go to four places: a unit's code has holes, which contain
# other units. In C++ each object has a copy of one template: all but one are discarded, while their
# units still describe them.
OBJECT = r"""
#include <stdlib.h>
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define MY(name) JOIN(name, NUMBER)
#define NOPS __asm__ volatile(".rept 2000; nop; .endr" ::: "memory")
#ifdef __cplusplus
template <typename T> __attribute__((noinline)) T *make(T n)
{
	T *p = (T *)malloc(n * sizeof(T));
	NOPS; NOPS; NOPS; NOPS;
	return p;
}
extern "C" {
#else
#define make(n) malloc(n)
#endif
static void *keep[16];
void JOIN(plain, NEXT)(int);
static inline __attribute__((always_inline)) void *inlined(int n)
{
	void *p = malloc(n);

	__asm__ volatile("" : "+r"(p));
	return p;
}
__attribute__((cold, noinline)) void MY(cold)(int n)
{
	keep[0] = inlined(n + 1);
	keep[1] = malloc(n + 2);
}
__attribute__((hot, noinline)) void MY(hot)(int n)
{
	MY(cold)(n + 10);
	keep[2] = inlined(n + 3);
	keep[3] = make(n + 4);
}
void MY(unused)(int n)
{
	NOPS; NOPS; NOPS; NOPS;
	keep[15] = malloc(n);
}
__attribute__((noinline)) void MY(plain)(int n)
{
	MY(hot)(n + 100);
	keep[4] = make(n + 5);
	if (keep[4])
		keep[5] = inlined(n + 6);
	JOIN(plain, NEXT)(n + 1000);
	keep[6] = malloc(n + 7);
}
__attribute__((constructor)) static void started(void)
{
	keep[7] = malloc(108);
}
#ifdef __cplusplus
}
#endif
"""

LAST = f"""
#include <stdlib.h>
void *last;
void plain_0(int);
void plain_{N_OBJECTS}(int n)
{{
	last = malloc(n);
}}
int main(void)
{{
	plain_0(1000);
	return 0;
}}
"""

GO = r"""
package main

/*
#include <stdlib.h>
static void *get(size_t n) { return malloc(n); }
*/
import "C"

func work(n int) {
	for i := 0; i < n; i++ {
		C.get(C.size_t(1000 + i))
	}
}

func main() {
	done := make(chan bool)
	go func() { work(10); done <- true }()
	work(5)
	<-done
}
"""


def must_run(*command, **options):
    result = run(command, **options)
    expect_equal(result.returncode, 0, f"{shell_words(*command)}: {result.stderr.decode()}")
    return result.stdout.decode()


def build(folder, compiler, flags, flags_of_every_second, link_flags):
    """A program of objects that call one another; the last has no -g unless flags contain it."""
    suffix = ".cc" if compiler == "g++" else ".c"
    objects = []
    for number in range(N_OBJECTS):
        source = folder / f"object{number}{suffix}"
        source.write_text(OBJECT)
        own = flags_of_every_second if number % 2 else []
        must_run(compiler, *flags, *own, f"-DNUMBER={number}", f"-DNEXT={number + 1}", "-c", source, cwd=folder)
        objects.append(source.with_suffix(".o"))
    (folder / "last.c").write_text(LAST)
    must_run("gcc", *flags, "-c", folder / "last.c", cwd=folder)
    program = folder / "program"
    must_run(compiler, *flags, *link_flags, "-o", program, *objects, folder / "last.o", cwd=folder)
    return program


def build_go(folder):
    need_command("go")
    (folder / "main.go").write_text(GO)
    (folder / "go.mod").write_text("module example\n")
    environment = dict(clean_environment(), GOCACHE=str(folder / "cache"), GOFLAGS="-mod=mod", CGO_ENABLED="1")
    must_run("go", "build", "-o", folder / "program", ".", cwd=folder, env=environment)
    return folder / "program"


def frames_in(program, output):
    """What was reported for each address in the program: its frames, innermost first."""
    found = {}
    for entry in leaks(output)["leaks"]:
        at = {}
        for frame in entry["stack"]:
            if frame.get("module") == str(program):
                at.setdefault(int(frame["module_offset"], 16), []).append(frame)
        found.update(at)
    return found


def place(frame):
    return (pathlib.Path(frame["file"]).name, frame["line"]) if frame["file"] else None


def recorded_frames(program):
    result, output = record([program], scratch("recording"))
    expect_equal(result.returncode, 0, result.stderr.decode())
    return frames_in(program, output)


def places_by_addr2line(program, address):
    places = []
    for line in must_run("addr2line", "-i", "-e", program, hex(address)).splitlines():
        match = re.fullmatch(r"(.*):(\d+)( \(discriminator \d+\))?", line)
        places.append((pathlib.Path(match[1]).name, int(match[2])) if match and match[2] != "0" else None)
    return places


def all_as_addr2line(program, reported):
    wrong = []
    for offset, frames in sorted(reported.items()):
        places, truth = [place(frame) for frame in frames], places_by_addr2line(program, offset - 1)
        if places != truth:
            wrong.append(f"{offset:#x}: {places}, addr2line: {truth}")
    assert not wrong, f"{len(wrong)} of {len(reported)} addresses differ:\n" + "\n".join(wrong)


def lines_of_functions():
    """First and last line of each function of OBJECT, by the name without its number."""
    lines, found, name = OBJECT.splitlines(), {}, None
    for number, line in enumerate(lines, 1):
        match = re.search(r"(?:MY\((\w+)\)|\b(inlined|make|started))\(\w.*\)$", line)
        if match and not line.startswith(("\t", "#")):
            name = match[1] or match[2]
            found[name] = (number, number)
        elif line == "}":
            found[name] = (found[name][0], number)
    return found


def all_as_source(reported, suffix, has_lines):
    """Each function's frames have its object's file and a line in the function; without -g none. How many have one."""
    functions, wrong, n_known = lines_of_functions(), [], 0
    for offset, frames in sorted(reported.items()):
        outer = re.match(r"(cold|hot|plain)_([0-5])", frames[-1]["function"])
        for frame in frames:
            where = place(frame)
            n_known += where is not None
            inner = re.match(r"[a-z]+", frame["function"])[0] if outer else None
            if outer and has_lines(int(outer[2])):
                first, last = functions[inner]
                if not where or where[0] != f"object{outer[2]}{suffix}" or not first <= where[1] <= last:
                    wrong.append(f"{offset:#x}: {frame['function']} at {where}")
            elif (outer or frame["function"] in ("_start", "_init")) and where:
                wrong.append(f"{offset:#x}: {frame['function']} at {where}, which has no line")
    assert not wrong, f"{len(wrong)} of {len(reported)} addresses are wrong:\n" + "\n".join(wrong)
    return n_known


def check(compiler, flags, flags_of_every_second, link_flags, is_read_by_addr2line):
    program = build(scratch("program"), compiler, flags, flags_of_every_second, link_flags)
    reported = recorded_frames(program)
    n_known = all_as_source(reported, ".cc" if compiler == "g++" else ".c", lambda number: number % 2 or "-g" in flags)
    assert len(reported) > 5 * N_OBJECTS, f"only {len(reported)} addresses"
    assert n_known > 2 * N_OBJECTS, f"only {n_known} frames with a line"
    if is_read_by_addr2line:
        all_as_addr2line(program, reported)


SECTIONS = ["-ffunction-sections"]
# name, compiler, flags, flags of every second object, linker flags, is addr2line right: it does not
# read split units, calls files of link-time optimised units "<artificial>", and finds code that was
# discarded
TABLE = [
    ("every_object", "gcc", ["-O2", "-g"], [], [], True),
    ("every_second_object", "gcc", ["-O2"], ["-g"], [], True),
    ("every_second_object_dwarf4", "gcc", ["-O2"], ["-g", "-gdwarf-4"], [], True),
    ("every_second_object_unoptimised", "gcc", ["-O0"], ["-g"], [], True),
    ("every_second_object_position_dependent", "gcc", ["-O2", "-no-pie", "-fno-pie"], ["-g"], ["-no-pie"], True),
    ("mixed_versions", "gcc", ["-O2", "-g", "-gdwarf-5"], ["-gdwarf-4"], [], True),
    ("unused_sections_thrown_away", "gcc", ["-O2", *SECTIONS], ["-g"], ["-Wl,--gc-sections"], False),
    ("unused_sections_dwarf4", "gcc", ["-O2", *SECTIONS], ["-g", "-gdwarf-4"], ["-Wl,--gc-sections"], False),
    ("link_time_optimised", "gcc", ["-O2", "-g", "-flto"], [], [], False),
    ("every_second_link_time_optimised", "gcc", ["-O2"], ["-g", "-flto"], [], False),
    ("split_units", "gcc", ["-O2"], ["-g", "-gsplit-dwarf"], [], False),
    ("split_units_dwarf4", "gcc", ["-O2"], ["-g", "-gdwarf-4", "-gsplit-dwarf"], [], False),
    ("cpp", "g++", ["-O2", "-g"], [], [], True),
    ("cpp_every_second_object", "g++", ["-O2"], ["-g"], [], True),
    ("cpp_every_second_object_dwarf4", "g++", ["-O2"], ["-g", "-gdwarf-4"], [], True),
    ("cpp_unused_sections_thrown_away", "g++", ["-O2", *SECTIONS], ["-g"], ["-Wl,--gc-sections"], False),
    ("clang_every_second_object", "clang", ["-O2"], ["-g"], [], True),
]

for name, *row in TABLE:
    add_case(name, check, *row)


@case
def go_with_c():
    program = build_go(scratch("program"))
    reported = recorded_frames(program)
    assert any(place(frame) for frames in reported.values() for frame in frames), "no frame has a line"
    if not any(place for offset in reported for place in places_by_addr2line(program, offset - 1)):
        raise Skip("the addr2line of this machine reads no lines of what this Go compiles")
    all_as_addr2line(program, reported)


main()
