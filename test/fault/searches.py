#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program that opens many libraries: the agent makes no system call for each symbol that it looks up in them."""

import collections
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

N_LIBRARIES = 60
N_PLACES = 100  # in each library, that call operator new and delete
N_ROUNDS = 3
# More than the program's own, per library: its unwind information is found, described and released.
MOST_INERT, MOST_RECORDING = 2, 15

# Each function on pages of its own, as in large libraries.
LIBRARY = "\n".join(f"__attribute__((aligned(4096))) void place{i}() {{ delete new volatile int({i}); }}" for i in range(N_PLACES)) + """
extern "C" void use_all() {
""" + "\n".join(f"place{i}();" for i in range(N_PLACES)) + "\n}\n"

# It has no C++ run-time itself: each library's operators are those of the run-time that comes with the first one.
PROGRAM = r"""
#include <dlfcn.h>
#include <stddef.h>
int main(int n, char **paths)
{
	void (*use[100])(void);
	for (int i = 1; i < n; i++) {
		void *library = dlopen(paths[i], RTLD_NOW);
		if (!library || !(*(void **)&use[i] = dlsym(library, "use_all")))
			return 1;
	}
	for (int round = 0; round < N_ROUNDS; round++)
		for (int i = 1; i < n; i++)
			use[i]();
	return 0;
}
""".replace("N_ROUNDS", str(N_ROUNDS))


def build(folder):
    """The program with its arguments. A copy of a library is another object to the loader."""
    sources = {"library.cc": LIBRARY, "program.c": PROGRAM}
    for name, text in sources.items():
        (folder / name).write_text(text)
    first = folder / "library0.so"
    made = [run([need_command("c++"), "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", first, folder / "library.cc"]),
            run([need_command("cc"), "-o", folder / "program", folder / "program.c", "-ldl"])]
    assert all(result.returncode == 0 for result in made), [result.stderr.decode() for result in made]
    libraries = [first] + [shutil.copy(first, folder / f"library{i}.so") for i in range(1, N_LIBRARIES)]
    return [folder / "program", *libraries]


def count(command, variables):
    """The program's system calls by name. The writer is started by a child, which is not traced."""
    strace, path = need_command("strace"), scratch("trace") / "calls"
    words = [f"-E{name}={value}" for name, value in variables.items()]
    result = run([strace, "-qq", "-e", "signal=none", "-o", path, *words, *command])
    if b"PTRACE" in result.stderr:
        raise Skip(f"nothing can be traced here: {result.stderr.decode()}")
    expect_equal((result.returncode, result.stderr), (0, b""), "status and messages")
    return collections.Counter(re.findall(r"(?m)^(\w+)\(", path.read_text()))


def compare(most, more):
    folder = scratch("built")
    command = build(folder)
    variables = {name: value for name, value in agent_environment(scratch(), **more).items() if name.startswith(("LD_", "TORSH_"))}
    bare, own = count(command, {}), count(command, variables)
    added = own - bare
    assert sum(added.values()) <= 300 + most * N_LIBRARIES, f"{sum(added.values())} system calls more: {dict(added)}"


add_case("an_inert_agent_makes_no_call_for_a_library", compare, MOST_INERT, {"TORSH_PROFILER_ENABLED": "0"})
add_case("a_recording_agent_makes_few_for_a_library", compare, MOST_RECORDING, {})

if __name__ == "__main__":
    main()
