#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""After its start the agent makes no system calls of its own but a few: each activity is traced with it and without."""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

ACTIVITIES = ("storm", "map", "thread", "fork", "load", "signals", "exec", "exec_fails", "spawn", "nothing", "exit", "_exit",
              "quick_exit")
# What it may make on top of the program's own, and why, in the activities that match.
PERMITTED = tuple((re.compile(activities), re.compile(calls)) for activities, calls, _ in (
    (".*", "(futex|mmap|munmap|madvise).*", "everything with threads and a heap allows them"),
    ("exec.*|spawn", "get(e?[ug])id|prctl|(openat|readlinkat|faccessat|pread64|fstat|fstatfs|fgetxattr|close) .*",
     "before an exec: whether the program can load the agent"),
    (".*", "unshare|rt_sigaction|rt_sigprocmask", "at the exit of a process with one thread: which signals have handlers"),
))
AT_THE_EXIT = {"unshare": 1, "rt_sigaction": 62, "rt_sigprocmask": 2}
# Of these one, for one program.
AT_MOST_ONCE = re.compile("get.*|prctl|(openat|readlinkat|faccessat|fstat|fstatfs|fgetxattr) .*")
CALL = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>(.*))$")
PATHS_FOR = ("openat", "readlinkat", "faccessat", "access", "newfstatat", "execve")


class Trace:
    """The calls of a program from the moment on that it marks, without those of the agent's writer and of starts."""

    def __init__(self, path):
        lines = [match.groups() for match in map(CALL.match, path.read_text().splitlines()) if match]
        marked = {pid for pid, name, begun, _ in lines if is_mark(name, begun)}
        self.counted, self.calls = set(), collections.Counter()
        self.threads = {child for child, maker in threads_of(lines) if maker in marked}
        for pid, name, begun, resumed in lines:
            self.take(pid, name, begun, resumed)

    def take(self, pid, name, begun, resumed):
        if is_mark(name, begun):
            self.counted.add(pid)
        elif begun is not None and (pid in self.counted or pid in self.threads):
            self.calls[named(name, begun)] += 1
        # What comes then is another program's start.
        if name == "execve" and re.search(r"\) += 0$", resumed or begun):
            self.counted.discard(pid)


def is_mark(name, begun):
    return name in ("access", "faccessat") and begun is not None and '"/activity"' in begun


def named(name, arguments):
    """With the file that it is about, in which all numbers of processes and sockets are the same."""
    about = re.search(r'"(.*?)"' if name in PATHS_FOR else r"^\d+<(.*?)>", arguments)
    return f"{name} {re.sub('[0-9]{2,}', 'N', about[1])}" if about else name


def threads_of(lines):
    """Each with the process, or thread, that made it. Of a call in two lines the new thread's number is in the second."""
    is_thread = {}
    for maker, name, begun, resumed in lines:
        if name not in ("clone", "clone3"):
            continue
        if begun is not None:
            is_thread[maker] = "CLONE_THREAD" in begun
        child = re.search(r"\) += (\d+)$", resumed or begun)
        if child and is_thread[maker]:
            yield child[1], maker


def trace(activity, variables):
    strace, path = need_command("strace"), scratch("trace") / "calls"
    words = [f"-E{name}={value}" for name, value in variables.items()]
    result = run([strace, "-f", "-y", "-qq", "-e", "signal=none", "-o", path, *words, PROGRAMS / "activities", activity])
    if b"PTRACE" in result.stderr:
        raise Skip(f"nothing can be traced here: {result.stderr.decode()}")
    expect_equal((result.returncode, result.stderr), (0, b""), "status and messages")
    return Trace(path).calls


def agents_own(activity):
    """How often it makes which call that the program alone doesn't make."""
    variables = {name: value for name, value in agent_environment(scratch()).items() if name.startswith(("LD_", "TORSH_"))}
    bare, own = trace(activity, {}), trace(activity, variables)
    assert bare and own, "the program's mark was not seen"
    return own - bare


def compare(activity):
    permitted = [calls for activities, calls in PERMITTED if activities.fullmatch(activity)]
    own = agents_own(activity)
    others = {call: n for call, n in own.items() if not any(calls.fullmatch(call) for calls in permitted)}
    expect_equal(others, {}, "system calls that the program alone doesn't make")
    # Each of the signals but the two of the C library is looked up once, by a child as well.
    n_processes = {"fork": 4, "spawn": 2}.get(activity, 1)
    expect_equal({call: n for call, n in own.items() if n > n_processes * AT_THE_EXIT.get(call, n)}, {}, "system calls at the exit")
    if activity.startswith("exec"):
        again = {call: n for call, n in own.items() if AT_MOST_ONCE.fullmatch(call) and "/proc/" not in call and n > 1}
        expect_equal(again, {}, "system calls that were made again for the same program")


for name in ACTIVITIES:
    add_case(f"only_few_are_added_to_{name}", compare, name)

if __name__ == "__main__":
    main()
