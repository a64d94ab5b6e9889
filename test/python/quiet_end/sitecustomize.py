# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Imported by every Python that has this folder in PYTHONPATH: before it ends, it waits until the
threads of PyTorch's autograd wait for work. What is left of a backward they release with the
GIL, after backward has returned; a thread that requests the GIL while the interpreter ends is
ended by CPython (before 3.14), through C++ that may not be unwound: "terminate called without an
active exception", SIGABRT. Bare programs end so, too: of one that ran on one core two in twelve
did."""

import atexit
import importlib.machinery
import importlib.util
import pathlib
import platform
import sys
import time

FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())
LONGEST_S = 30


def is_idle(task):
    """It waits without a limit in time: for work. Who waits for the GIL looks up now and then."""
    try:
        if not (task / "comm").read_text().startswith("pt_autograd"):
            return True
        words = (task / "syscall").read_text().split()
    except OSError:  # it has ended, or may not be read
        return True
    return words[0] == FUTEX and int(words[4], 16) == 0


def wait_for_autograd():
    deadline = time.monotonic() + LONGEST_S
    while not all(map(is_idle, pathlib.Path("/proc/self/task").iterdir())) and time.monotonic() < deadline:
        time.sleep(0.001)


def hand_on():
    """To the sitecustomize that this one stands before."""
    own = pathlib.Path(__file__).resolve().parent
    folders = [folder for folder in sys.path if pathlib.Path(folder).resolve() != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


hand_on()
if FUTEX:
    atexit.register(wait_for_autograd)
