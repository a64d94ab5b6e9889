#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program whose waits are recorded behaves as without: results, errno, signals, cancellations, jumps, forks, system calls."""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

all_wait()

KINDS = re.findall(r'^WAIT_KIND\(\w+, (\w+),', (ROOT / "agent/wire/wait_kinds.def").read_text(), re.M)

ACTIVITIES = {"TORSH_PROFILER_ACTIVITIES": "waits"}
CALLS = 100
# Made 100 times each by the program, between its two marks.
MADE = ("write", "poll", "read", "sendto", "recvfrom", "clock_nanosleep")


@case
def calls_end_as_without_the_agent():
    bare = run([PROGRAMS / "behaves"], env=clean_environment())
    result, output = record([PROGRAMS / "behaves"], env=ACTIVITIES)
    expect_equal((result.returncode, result.stdout.decode().splitlines()), (bare.returncode, bare.stdout.decode().splitlines()),
                 "status and lines")
    lines = bare.stdout.decode().splitlines()
    assert sum(line.startswith("cancel ") and line.endswith(" 1, 1 destroyed, 0 over") for line in lines) == 18, lines
    assert sum(line.startswith("interrupt ") for line in lines) == 15 and sum(line.startswith("jump ") for line in lines) == 4, lines
    # What ended by a cancellation is no wait, nor one without an end: the thread is not there any more.
    rows = [json.loads(line) for line in torsh("dump", output).splitlines()]
    waits = [row for row in rows if row.get("event") == "thread_wait"]
    assert waits and not [row for row in waits if row["tid"]], waits


LIKELY_NS = 1_000_000


def system_calls(agent):
    """Those between the program's marks, by name."""
    path = scratch("trace") / "calls"
    words = [f"-E{name}={value}" for name, value in agent.items()]
    result = run([need_command("strace"), "-f", "-qq", "-e", "signal=none", "-o", path, *words, PROGRAMS / "behaves", "calls"])
    if b"PTRACE" in result.stderr:
        raise Skip(f"nothing can be traced here: {result.stderr.decode()}")
    expect_equal(result.returncode, 0, "status")
    lines = path.read_text().splitlines()
    marks = [i for i, line in enumerate(lines) if '"/activity"' in line]
    assert len(marks) == 2, marks
    tid = lines[marks[0]].split()[0]
    return collections.Counter(re.match(r"\d+ +(\w+)\(", line)[1] for line in lines[marks[0] + 1:marks[1]]
                               if re.match(rf"{tid} +\w+\(", line))


@case
def calls_that_do_not_wait_make_no_further_system_calls():
    output = scratch()
    agent = {name: value for name, value in agent_environment(output).items() if name.startswith(("LD_", "TORSH_"))}
    bare, own = system_calls({}), system_calls({**agent, **ACTIVITIES})
    # A read or a poll that took long, as any may that is traced, has the next one look whether it would wait as well.
    rows = [json.loads(line) for line in torsh("dump", output).splitlines()]
    long = sum(row.get("event") == "thread_wait" and KINDS[row["kind"]] in ("read", "poll") and row["duration_ns"] >= LIKELY_NS for row in rows)
    assert own.pop("ppoll", 0) <= long, (own, long)
    expect_equal({name: bare[name] for name in MADE}, {name: CALLS for name in MADE}, "the program's own")
    expect_equal({name: own[name] for name in bare}, dict(bare), "the same calls")
    # Rings and tables grow; the writer is woken.
    expect_equal({name for name in own if name not in bare} - {"futex", "mmap", "munmap", "madvise", "mprotect"}, set(), "others")
    assert sum(own.values()) - sum(bare.values()) <= 40, own - bare


if __name__ == "__main__":
    main()
