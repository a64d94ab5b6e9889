#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A core dump of a program under the agent has the program's memory and stacks, and not the agent's rings."""

import pathlib
import re
import resource
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "dumped"
N_WORDS, STEP, MASK = 100000, 0x9e3779b97f4a7c15, (1 << 64) - 1
PT_LOAD = 1
OWN = ("die_here", "wait_in_thread")
# Variables of the agent and of the libraries that it loads; a ring alone has as much.
MOST_MORE_BYTES = 1 << 20


def segments(core):
    """(address, its bytes in the file) of all memory in a dump."""
    data = core.read_bytes()
    at, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, _, offset, address, _, n_bytes = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == PT_LOAD:
            yield address, data[offset:offset + n_bytes]


def dump(folder, env):
    """The dump of a run in the folder, and the address that the program printed."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern:
        raise Skip(f"core dumps go elsewhere: {pattern}")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        raise Skip("core dumps are forbidden")
    folder.mkdir(exist_ok=True)
    result = run([PROGRAM], env, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
    expect_equal(result.returncode, -11, f"status ({result.stderr})")
    cores = list(folder.glob("core*"))
    if not cores:
        raise Skip(f"the kernel left no core dump by {pattern}")
    return cores[0], int(result.stdout, 16)


def memory_at(core, address, n_bytes):
    for start, data in segments(core):
        if start <= address and address + n_bytes <= start + len(data):
            return data[address - start:address - start + n_bytes]
    raise AssertionError(f"{address:#x} is not in the dump")


def stacks(core):
    """The functions of each thread, as gdb finds them, without what the program's own ones called: the other thread may not wait yet."""
    debugger = shutil.which("gdb")
    if not debugger:
        raise Skip("gdb is not on this machine")
    text = run([debugger, "-batch", "-nx", "-ex", "thread apply all backtrace", PROGRAM, core]).stdout.decode()
    threads = text.split("\nThread ")[1:]
    found = (re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+)", thread, re.M) for thread in threads)
    return sorted(names[next(i for i, name in enumerate(names) if name in OWN):] for names in found)


@case
def a_dump_has_the_programs_memory_and_not_the_agents():
    folder = scratch("dumps")
    bare, _ = dump(folder / "bare", clean_environment())
    core, address = dump(folder / "recorded", agent_environment(scratch()))
    known = struct.pack(f"<{N_WORDS}Q", *((i * STEP) & MASK for i in range(N_WORDS)))
    assert memory_at(core, address, len(known)) == known, "what the program wrote"
    few, many = (sum(len(data) for _, data in segments(of)) for of in (bare, core))
    print(f"note: dumps of {few >> 10} KiB bare and {many >> 10} KiB recorded")
    assert few <= many <= few + MOST_MORE_BYTES, (few, many)


@case
def a_debugger_finds_the_same_stacks_in_a_dump():
    folder = scratch("dumps")
    bare, _ = dump(folder / "bare", clean_environment())
    core, _ = dump(folder / "recorded", agent_environment(scratch()))
    expect_equal(stacks(core), stacks(bare), "stacks")
    expect_equal(stacks(core)[0], ["die_here", "go_on", "main"], "the stack that died")


main()
