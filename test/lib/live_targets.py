# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running sessions: targets that obey commands, and the output of torsh's commands about them."""

import collections
import json
import os
import pathlib
import pwd
import subprocess

from harness import PROGRAMS, TIMEOUT_S, TORSH, agent_environment, expect_equal, functions, leaks, run, scratch, torsh

OBEYS = PROGRAMS / "obeys"
FIRST, SECOND, THIRD, CHILD, RESIZED = 1001, 2003, 3001, 4001, 5003  # bytes of its blocks


class Target:
    """A running test/programs/process/obeys, or another program that answers each letter with a dot."""

    def __init__(self, command=(OBEYS,), output=None, user=None, **variables):
        self.output = output or scratch()
        self.process = subprocess.Popen([str(part) for part in command], env=agent_environment(self.output, **variables),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=user and become(user))
        self.pid = self.process.pid

    def send(self, letters):
        for letter in letters:
            self.process.stdin.write(letter.encode())
            self.process.stdin.flush()
            expect_equal(self.process.stdout.read(1), b".", f"answer to {letter}")

    def end(self):
        self.process.stdin.close()
        expect_equal(self.process.wait(TIMEOUT_S), 0, "status of the target")
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def become(user):
    """For preexec_fn: the process is another user's from there on."""
    row = pwd.getpwnam(user)

    def change():
        os.setgroups([])
        os.setgid(row.pw_gid)
        os.setuid(row.pw_uid)
    return change


def sessions(**options):
    result = run([TORSH, "list", "--json"], **options)
    expect_equal(result.returncode, 0, f"status of torsh list ({result.stderr!r})")
    return json.loads(result.stdout)["sessions"]


def session_of(pid):
    return next((s for s in sessions() if pid in [process["pid"] for process in s["processes"]]), None)


def socket_of(writer):
    words = pathlib.Path(f"/proc/{writer}/cmdline").read_bytes().split(b"\0")
    return words[words.index(b"--socket") + 1].decode()


def snapshot(pid, name="snapshot.torsh"):
    path = scratch("snapshots") / name
    torsh("snapshot", pid, "-o", path)
    return path


def kept(recording, *arguments):
    """(blocks, bytes) by the function that kept them, of those in obeys."""
    found = collections.Counter()
    n_bytes = collections.Counter()
    for entry in leaks(recording, *arguments)["leaks"]:
        for name in functions(entry):
            if name in ("keep_first", "keep_second", "keep_third", "keep_in_child"):
                found[name] += entry["blocks"]
                n_bytes[name] += entry["bytes"]
                break
    return {name: (found[name], n_bytes[name]) for name in found}
