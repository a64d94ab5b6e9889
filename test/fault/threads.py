#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Threads by the thousand, and what they leave: all is recorded, and a thread that ended gives back what it had."""

import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "multitude"
KEPT_BYTES = 48
MIB = 1 << 20
FIXED_BYTES = 4 * MIB  # the agent's code and data, and what every process's channel has
A_THREAD_BYTES = 256 << 10
LEFT_BYTES = 4 * MIB  # of the channel, when threads have ended
KEPT_RINGS, LOCKED_RINGS = 256, 32  # that stay mapped for the next threads; and where what is mapped is in memory
MIRROR_BYTES = 4096  # each ring's start is mapped once more
FIRST_DESCRIPTOR = 512  # of the agent's


def kept_by_crowd(count):
    return (count + 1) // 2 + (count + 4) // 5


def expect_recorded(output, n_kept):
    report = leaks(output)
    found = entries_through(report["leaks"], "keep_in_crowd")
    expect_equal(total(found, "blocks"), n_kept, "blocks reported")
    expect_equal(total(found, "bytes"), n_kept * KEPT_BYTES, "bytes reported")
    expect_equal(report["events"]["dropped"], 0, "dropped")


def run_crowd(how, count, **options):
    """The program's result and the folder of recordings, after the bare program's result."""
    bare = run([PROGRAM, how, count], **options)
    expect_equal(bare.returncode, 0, "status without the agent")
    result, output = record([PROGRAM, how, count], **options)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')})")
    return bare, result, output


def all_live(how, count, **options):
    _, _, output = run_crowd(how, count, **options)
    expect_recorded(output, kept_by_crowd(count))


for how, count in (("live", 10_000), ("live", 1_100), ("closed", 300)):
    add_case(f"{count}_threads_{how}", all_live, how, count)


@case
def a_hundred_thousand_threads_in_sequence():
    # Each costs the kernel 20 µs and more: a tenth of them in the short form.
    count = 10_000 if IS_QUICK else 100_000
    _, _, output = run_crowd("sequence", count)
    expect_recorded(output, count)


def limit_space(n_mib, count):
    limit = (n_mib * MIB, n_mib * MIB)
    all_live("live", count, env={"MALLOC_ARENA_MAX": "1"}, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))


@case
def address_space_that_suffices_for_the_program():
    limit_space(400, 200)


@case
def address_space_for_few_rings():
    """Threads that find no room for a ring share one."""
    limit_space(90, 500)


def resident_kib(result):
    return [int(line.split()[1]) for line in result.stdout.decode().splitlines() if line.startswith("VmRSS:")]


@case
def locked_memory_holds_what_is_used():
    count = 20
    if run([PROGRAM, "locked", 1]).returncode == 4:
        raise Skip("may not lock memory here")
    bare, result, output = run_crowd("locked", count)
    expect_recorded(output, kept_by_crowd(count))
    for found, without, n_threads in zip(resident_kib(result), resident_kib(bare), (1, 1 + count)):
        most = FIXED_BYTES + n_threads * A_THREAD_BYTES
        assert (found - without) << 10 <= most, f"{found - without} KiB more are in memory, with {n_threads} threads"


MEMLOCK_BYTES = 8 * MIB  # what a user has by default, since Linux 5.16
PR_CAPBSET_DROP, CAP_IPC_LOCK = 24, 14


def limit_locked_memory():
    """As a user, which the limit is for; root has the capability to pass by it, until the next exec."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (MEMLOCK_BYTES, MEMLOCK_BYTES))
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the capability stays")


@case
def a_user_may_lock_all_memory():
    limited = {"preexec_fn": limit_locked_memory}
    # Of its own threads either one more is refused, or a block to one of them.
    assert run([PROGRAM, "locked", 200], **limited).returncode in (3, -signal.SIGSEGV), "the limit is none"
    for count in (4, 20):
        _, _, output = run_crowd("locked", count, **limited)
        expect_recorded(output, kept_by_crowd(count))


def status_kib(pid, name):
    return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if line.startswith(name + ":"))


def locked_kib(count, environment):
    """Of a program with so many threads, after they ended; and the most address space that it has had."""
    with started([PROGRAM, "locked", count], environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 preexec_fn=limit_locked_memory) as process:
        while process.stdout.readline() not in (b"ended\n", b""):
            pass
        found = status_kib(process.pid, "VmLck"), status_kib(process.pid, "VmPeak")
        process.communicate(timeout=TIMEOUT_S)
    expect_equal(process.returncode, 0, "status")
    return found


@case
def a_user_keeps_half_of_what_may_be_locked():
    """With threads that take the other half, too: what is mapped counts, in memory or not."""
    for count in (1, 20):
        without, with_agent = locked_kib(count, dict(os.environ)), locked_kib(count, agent_environment(scratch()))
        for what, found, bare in zip(("locked", "mapped"), with_agent, without):
            assert (found - bare) << 10 <= MEMLOCK_BYTES // 2, f"{found - bare} KiB more {what}, with {count} threads"


def symbol_span(library, name):
    """Where a variable lies, from the library's start on; none without such a one."""
    listed = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=True).stdout
    for fields in map(str.split, listed.splitlines()):
        if len(fields) == 4 and fields[3] == name:
            return int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16)
    return None


@case
def nothing_else_is_mapped_within_the_agent():
    """Its jemalloc's largest variable is unmapped where nobody uses it: whatever lay there were taken for the agent's."""
    found = symbol_span(AGENT, "je_arena_emap_global") or symbol_span(AGENT, "je_extents_rtree")
    if not found:
        raise Skip("the agent was built without its jemalloc")
    with started([PROGRAM, "ended", 500], agent_environment(scratch()), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE) as process:
        expect_equal(process.stdout.readline(), b"ended\n", "the program's word")
        lines = [line.split() for line in pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
        process.communicate(timeout=TIMEOUT_S)
    spans = [[int(end, 16) for end in fields[0].split("-")] + fields[1:2] for fields in lines]
    base = next(span[0] for span, fields in zip(spans, lines) if fields[-1].endswith("/libtorshagent.so"))
    low, high = base + found[0] + 4095 & -4096, base + found[1] & -4096
    foreign = [span for span in spans if span[0] < high and span[1] > low and span[2] != "---p"]
    expect_equal(foreign, [], "mappings there")


def channel_bytes(pid):
    """What the file behind a process's channel takes of memory, the kernel's 512-byte blocks."""
    return os.stat(f"/proc/{pid}/fd/{FIRST_DESCRIPTOR}").st_blocks * 512


@case
def threads_that_ended_give_their_memory_back():
    count, output = 500, scratch()
    with started([PROGRAM, "ended", count], agent_environment(output), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE) as process:
        expect_equal(process.stdout.readline(), b"ended\n", "the program's word")
        wait_until(lambda: channel_bytes(process.pid) <= LEFT_BYTES,
                   f"the channel to give back what {count} threads had")
        process.communicate(timeout=TIMEOUT_S)
    expect_recorded(output, kept_by_crowd(count))


def count_rings(pid):
    """Rings of its channel that a process has mapped."""
    spans = [line.split()[0].split("-") for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
             if "/memfd:torsh" in line]
    return sum(int(end, 16) - int(start, 16) == MIRROR_BYTES for start, end in spans)


def rings_stay_mapped(how, expected):
    """Mapping and unmapping one takes longer than all else that the agent does for a short thread."""
    with started([PROGRAM, how, 500], agent_environment(scratch()), stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE) as process:
        lines = iter(process.stdout.readline, b"")
        if b"ended\n" not in lines:
            raise Skip("may not lock memory here")
        # Of the last thread the memory is gone a little later; the process's own ring is among those.
        assert abs(count_rings(process.pid) - expected) <= 2, f"{count_rings(process.pid)} rings are mapped"
        process.communicate(timeout=TIMEOUT_S)


add_case("the_next_threads_find_rings_mapped", rings_stay_mapped, "ended", KEPT_RINGS)
add_case("locked_memory_holds_few_rings_of_threads_that_ended", rings_stay_mapped, "locked", LOCKED_RINGS)


if __name__ == "__main__":
    main()
