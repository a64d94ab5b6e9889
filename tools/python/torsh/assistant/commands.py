# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs torsh's commands and queries for the server: with a limit on their time and on what they answer."""

import collections
import os
import resource
import subprocess
import sys
import tempfile
import threading

from torsh._recording import find_command
from torsh.assistant.places import Refused

ANSWER_BYTES = 256 << 10
COMMAND_SECONDS = 120
QUERY_SECONDS = 10
QUERY_BYTES = 16 << 10
DATABASES = 4
DATABASE_BYTES = 2 << 30
LEFT_OUT = ("TORSH_PROFILER_", "DEBUGINFOD_", "LD_")


def environment():
    """Nothing of it is recorded, and nothing is fetched from a server of debug information."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    return {**kept, "TORSH_PROFILER_ENABLED": "0"}


def answer_of(words, seconds, may_be=(0,), what="the command", file_bytes=0):
    """What a program prints: at most ANSWER_BYTES of it are read, or it is refused. file_bytes: of a file that it writes."""
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment()) as process:
            if file_bytes:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            timer = _Deadline(process, seconds)
            answer = process.stdout.read(ANSWER_BYTES + 1)
            if len(answer) > ANSWER_BYTES:
                process.kill()
            process.wait()
            timer.end()
        errors.seek(0)
        said = errors.read(4096).decode(errors="replace").strip()
    if timer.is_over:
        raise Refused(f"{what} took longer than {seconds} s")
    if len(answer) > ANSWER_BYTES:
        raise Refused(f"the answer is larger than {ANSWER_BYTES} bytes: ask for fewer rows (limit)")
    if process.returncode not in may_be:
        raise Refused(said or f"{what} ended with status {process.returncode}")
    return answer.decode(errors="replace")


class _Deadline:
    def __init__(self, process, seconds):
        self.process, self.is_over = process, False
        self.timer = threading.Timer(seconds, self._kill)
        self.timer.start()

    def _kill(self):
        self.is_over = True
        self.process.kill()

    def end(self):
        self.timer.cancel()


def report(name, *arguments):
    # 1: a budget was exceeded, which the report has.
    return answer_of([find_command(), name, "--json", *map(str, arguments)], COMMAND_SECONDS, (0, 1), f"torsh {name}")


class Databases:
    """Recordings as databases, in a folder of the server's own: the last few."""

    def __init__(self):
        self.folder, self.known = tempfile.TemporaryDirectory(prefix="torsh-mcp-"), collections.OrderedDict()

    def of(self, path):
        key = (path, self._state(path))
        if key in self.known:
            self.known.move_to_end(key)
            return self.known[key]
        while len(self.known) >= DATABASES:
            os.unlink(self.known.popitem(last=False)[1])
        file = os.path.join(self.folder.name, f"{len(os.listdir(self.folder.name))}-{os.urandom(4).hex()}.sqlite")
        try:
            answer_of([find_command(), "export", path, "--format", "sqlite", "-o", file], COMMAND_SECONDS,
                      what=f"torsh export of at most {DATABASE_BYTES >> 30} GiB", file_bytes=DATABASE_BYTES)
        except Refused:
            if os.path.exists(file):
                os.unlink(file)
            raise
        self.known[key] = file
        return file

    @staticmethod
    def _state(path):
        """When it is written to, it is another one."""
        files = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        return tuple((file, os.stat(file).st_mtime_ns, os.stat(file).st_size) for file in files if os.path.isfile(file))

    def query(self, path, text, limit):
        if len(text.encode(errors="replace")) > QUERY_BYTES or "\0" in text:
            raise Refused(f"a query has at most {QUERY_BYTES} bytes, and no NUL")
        words = [sys.executable, "-m", "torsh.assistant.query", self.of(path), str(limit), str(QUERY_SECONDS), text]
        return answer_of(words, QUERY_SECONDS + 5, what="the query")
