# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Runs test scripts for test/run, each in a fork of this process: what Python and the standard library take to load is taken once.

A request is a line of JSON on stdin: {"command": [script, argument...], "env": variables to set, "output": file for stdout
and stderr}. The answer is two lines on stdout: the pid of the script when it begins; its exit status and the time on a core
that it and all that it waited for used when it ends. Ends with stdin.
"""

import json
import os
import sys
import types

# What scripts and test/lib import; nothing of ours, as that reads the variables.
import argparse, atexit, collections, contextlib, ctypes, fcntl, functools, glob, gzip, itertools, math, pathlib, random  # noqa: E401,F401
import re, resource, shlex, shutil, signal, socket, struct, subprocess, tempfile, threading, time, traceback  # noqa: E401,F401

_compiled = {}


def compiled(script):
    """Kept for the next case of the same script."""
    if script not in _compiled:
        _compiled.clear()
        _compiled[script] = compile(pathlib.Path(script).read_bytes(), script, "exec")
    return _compiled[script]


def become(request):
    """In the child: a session of its own, of this one's priority, without the server's pipes."""
    os.setsid()
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/autogroup").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for source, fd in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, fd)
    os.close(nothing)
    os.close(output)
    os.environ.update(request["env"])


def run_script(request, code):
    sys.argv = request["command"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    module = types.ModuleType("__main__")
    module.__file__ = sys.argv[0]
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def serve():
    """The request that this process, a child then, is to run; None at the end of all."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        code = compiled(request["command"][0])
        pid = os.fork()
        if not pid:
            return request, code
        print(pid, flush=True)
        _, status, usage = os.wait4(pid, 0)
        print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, flush=True)
    return None


def main():
    chosen = serve()
    if chosen:
        become(chosen[0])
        run_script(*chosen)


main()
