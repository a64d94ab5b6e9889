#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Damaged dynamic sections and relocations, where the agent looks for calls of the program's allocator: a program that runs with
them, as the loader doesn't need what is damaged, runs under the agent, too.
"""

import itertools
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

# Nothing calls it, and only its own functions are used.
LIBRARY = r"""
#include <stddef.h>
void *mallocx(size_t, int);
void dallocx(void *, int);
void *kept_by_library(void) { return mallocx(1, 0); }
void freed_by_library(void *p) { dallocx(p, 0); }
#ifdef WITH_DATA
void *(*table_of_library)(size_t, int) = mallocx;
#endif
"""
PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
void *mallocx(size_t, int);
void dallocx(void *, int);
int main(void) { void *p = mallocx(100, 0); mallocx(200, 0); dallocx(p, 0); return printf("done\n") != 5; }
"""
NULL, PLTRELSZ, STRTAB, SYMTAB, RELA, RELASZ, PLTREL, JMPREL = 0, 2, 5, 6, 7, 8, 20, 23
UNKNOWN = 0x6ffff000  # a tag that no loader has
PT_DYNAMIC = 2


class Library:
    """A shared object's bytes, laid out from address 0 on with its dynamic section at the place in
    its program headers."""

    def __init__(self, data):
        self.data = bytearray(data)
        at, size, n = struct.unpack_from("<Q", data, 32) + struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, at + size * i) for i in range(n)]

    def offset(self, address):
        """Where what lies at the address stands in the file."""
        return next(address - s[3] + s[2] for s in self.segments if s[0] == 1 and 0 <= address - s[3] < s[5])

    def entry(self, tag):
        """Where the entry of the dynamic section stands, and its value."""
        start = next(s[2] for s in self.segments if s[0] == PT_DYNAMIC)
        for at in itertools.count(start, 16):
            found, value = struct.unpack_from("<qQ", self.data, at)
            if found == tag:
                return at, value
            assert found != NULL, f"no entry {tag}"

    def set_value(self, tag, value):
        struct.pack_into("<Q", self.data, self.entry(tag)[0] + 8, value)

    def forget(self, tag):
        struct.pack_into("<Q", self.data, self.entry(tag)[0], UNKNOWN)

    def relocation(self, i):
        """Where the i-th relocation of a function stands."""
        return self.offset(self.entry(JMPREL)[1]) + 24 * i

    def symbol(self, i):
        """Where the symbol of the i-th relocation stands."""
        info, = struct.unpack_from("<Q", self.data, self.relocation(i) + 8)
        return self.offset(self.entry(SYMTAB)[1]) + 24 * (info >> 32)

    def set_word(self, at, value):
        struct.pack_into("<I", self.data, at, value)


def unread_functions(library):
    """The loader leaves relocations of functions alone."""
    library.forget(PLTREL)


def unread_size(library):
    unread_functions(library)
    library.set_value(PLTRELSZ, 1 << 40)


def unread_table(library):
    unread_functions(library)
    library.set_value(JMPREL, 1 << 45)


def unread_table_below(library):
    unread_functions(library)
    library.set_value(JMPREL, -4096 & (1 << 64) - 1)


def unread_place(library):
    unread_functions(library)
    struct.pack_into("<Q", library.data, library.relocation(0), 1 << 45)


def unread_place_in_code(library):
    unread_functions(library)
    struct.pack_into("<Q", library.data, library.relocation(0), 0)


def functions_end_before_they_begin(library):
    library.set_value(PLTRELSZ, -48 & (1 << 64) - 1)


def data_end_before_they_begin(library):
    library.set_value(RELASZ, -48 & (1 << 64) - 1)


def symbols_elsewhere(library):
    library.set_value(SYMTAB, 1 << 45)


def names_elsewhere(library):
    library.set_value(STRTAB, 1 << 45)


def number_of_no_symbol(library):
    library.set_word(library.relocation(0) + 12, 0x7fffffff)


def name_outside(library):
    library.set_word(library.symbol(0), 0xfffffff0)


MUTANTS = [unread_size, unread_table, unread_table_below, unread_place, unread_place_in_code,
           functions_end_before_they_begin, data_end_before_they_begin, symbols_elsewhere, names_elsewhere,
           number_of_no_symbol, name_outside]


def compile_to(path, source, *flags):
    text = path.parent / f"{path.name}.c"
    text.write_text(source)
    compiled = run(["cc", "-o", path, text, *flags])
    expect_equal(compiled.returncode, 0, f"status of the compiler: {compiled.stderr.decode()}")


def build(folder, damage):
    """A program with jemalloc, and beside it the library, damaged."""
    library, program = folder / "libdamaged.so", folder / "program"
    flags = ["-DWITH_DATA"] if damage in (data_end_before_they_begin, None) else []
    compile_to(library, LIBRARY, "-shared", "-fPIC", "-nostdlib", "-Wl,-z,lazy,-z,norelro,--hash-style=gnu", *flags)
    compile_to(program, PROGRAM, "-Wl,--no-as-needed", library, need_library("libjemalloc.so.2"), f"-Wl,-rpath,{folder}")
    if damage:
        changed = Library(library.read_bytes())
        damage(changed)
        library.write_bytes(changed.data)
    return program


def expect_as_bare(damage):
    program = build(scratch("program"), damage)
    bare = run([program])
    expect_equal((bare.returncode, bare.stdout), (0, b"done\n"), "bare")
    result, output = record([program])
    expect_equal((result.returncode, result.stdout), (0, b"done\n"), "recorded")
    expect_equal(total(entries_through(leaks(output)["leaks"], "main")), 200, "bytes that main kept")


add_case("a_whole_library", expect_as_bare, None)
for mutant in MUTANTS:
    add_case(mutant.__name__, expect_as_bare, mutant)

main()
