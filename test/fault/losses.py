#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where events can't be recorded, the report has them all, or says in its first line that it hasn't: never "No leaks"."""

import ctypes
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_BLOCKS = 4003

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
BPF_LOAD_WORD, BPF_JUMP_EQUAL, BPF_RETURN = 0x20, 0x15, 0x06
SECCOMP_ALLOW, SECCOMP_ERRNO = 0x7FFF0000, 0x00050000
EPERM = 1
MREMAP = {"x86_64": 25, "aarch64": 216}


def refuse(number):
    """From here on this process's calls of that number fail with EPERM; those of what it executes, too."""
    rows = ((BPF_LOAD_WORD, 0, 0, 0), (BPF_JUMP_EQUAL, 0, 1, number), (BPF_RETURN, 0, 0, SECCOMP_ERRNO | EPERM),
            (BPF_RETURN, 0, 0, SECCOMP_ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))):
        words = [ctypes.c_ulong(word) for word in (*arguments, 0, 0, 0, 0)][:5]
        if libc.prctl(*words):
            os._exit(77)


def expect_all_or_said(output, counts):
    """Of a report that lacks something the first line says so, and what has no leaks has them all."""
    text, report = torsh("leaks", output), leaks(output)
    events = report["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    expect_equal(sum(loss["count"] for loss in events["losses"] if loss["of_events"]), events["dropped"], "sum of the causes")
    if committed.reported(output)[0] == counts.kept():
        assert not text.startswith("Incomplete"), text
        return
    assert text.startswith("Incomplete: "), f"{N_BLOCKS} blocks, and the report begins:\n{text[:300]}"
    assert "No leaks" not in text, text
    assert not report["recording"]["complete"] and events["dropped"], report["recording"]
    torsh("check", output, "--max-leak", "1T", expect=1)


def machine():
    return os.uname().machine


@case
def mremap_is_refused():
    counts = committed.Counts(scratch("counts"))
    bare = run(committed.command(committed.Counts(scratch("bare")), 1), preexec_fn=lambda: refuse(MREMAP[machine()]))
    if bare.returncode == 77:
        raise Skip("may not install a filter of system calls here")
    result, output = record(committed.command(counts, N_BLOCKS), preexec_fn=lambda: refuse(MREMAP[machine()]))
    expect_equal((result.returncode, counts.kept()), (9, N_BLOCKS), f"status and blocks ({result.stderr!r})")
    expect_all_or_said(output, counts)


@case
def under_valgrind():
    counts = committed.Counts(scratch("counts"))
    valgrind = need_command("valgrind")
    result, output = record([valgrind, "-q", "--tool=none", *committed.command(counts, N_BLOCKS)])
    expect_equal((result.returncode, counts.kept()), (9, N_BLOCKS), f"status and blocks ({result.stderr!r})")
    expect_all_or_said(output, counts)


FORKS_WITHOUT_ROOM = """
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
pid = os.fork()
if not pid:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""


@case
def a_forked_child_without_room_is_in_its_parents_report():
    result, output = record([sys.executable, "-c", FORKS_WITHOUT_ROOM])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = leaks(output)
    expect_equal([(loss["cause"], loss["count"]) for loss in report["events"]["losses"]], [("children_lost", 1)], "losses")
    assert torsh("leaks", output).startswith("Incomplete: 1 fork whose child could not be recorded"), torsh("leaks", output)[:200]
    assert not report["recording"]["complete"]


main()
