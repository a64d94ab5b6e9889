# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
runs.py WAY TRUTH: makes garbage, and writes down each run of the collector between two callbacks of its own, one before
and one after the profiler's. What is the same without the profiler goes to stdout.
"""

import gc
import json
import os
import sys
import threading
import time

# The interpreter makes some objects for each call of an entry of gc.callbacks: no run of the youngest generation is that near.
KEPT = [[] for _ in range(60)]
STARTED = [row["collections"] for row in gc.get_stats()]
# What is garbage, and what is still tracked, depends on when the collector ran last.
[gc.collect() for _ in range(3)]
ABOUT = {"modules": sorted(sys.modules), "objects": len(gc.get_objects()), "callbacks": len(gc.callbacks),
         "collections_before": [row["collections"] for row in gc.get_stats()], "collections_at_start": STARTED}
runs = []
lock = threading.Lock()


class Node:
    def __init__(self):
        self.me = self


class Loud(Node):
    """Raises in the collector, which reports it on stderr and goes on."""

    def __del__(self):
        raise ValueError("in a finalizer")


def before(phase, info):
    if phase == "start":
        runs.append({"outer_start_ns": time.monotonic_ns(), "thread": threading.get_native_id()})
    else:
        runs[-1].update(info, inner_stop_ns=time.monotonic_ns())


def after(phase, info):
    runs[-1]["inner_start_ns" if phase == "start" else "outer_stop_ns"] = time.monotonic_ns()


def waste(n):
    for _ in range(n):
        Node()


def at_once(n):
    threads = [threading.Thread(target=waste, args=(3000,)) for _ in range(n)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def work():
    waste(3000)
    try:
        raise KeyError
    except KeyError:
        waste(3000)
        gc.collect(1)
    # Of two at once one may collect all garbage of both.
    at_once(2)
    at_once(1)
    gc.disable()
    waste(3000)
    gc.collect(0)
    Loud()
    gc.collect()
    gc.enable()
    waste(1000)


def watch(path):
    """What `work` made the collector do."""
    gc.callbacks.insert(0, before)
    gc.callbacks.append(after)
    first = [row["collections"] for row in gc.get_stats()]
    work()
    last = [row["collections"] for row in gc.get_stats()]
    gc.callbacks.remove(before)
    gc.callbacks.remove(after)
    with open(path, "w") as out:
        json.dump({"pid": os.getpid(), "runs": runs, "version": sys.version_info[:2], "collections": [b - a for a, b in zip(first, last)], **ABOUT}, out)


def fork(path):
    watch(path)
    del runs[:]
    child = os.fork()
    if not child:
        watch(path + ".child")
        os._exit(0)
    os.waitpid(child, 0)


def clear(path):
    watch(path)
    gc.callbacks.clear()
    gc.collect()


def misuse(path):
    """The entry is called with anything, and later than the interpreter lives."""
    for entry in gc.callbacks:
        for arguments in ((), (1,), (1, 2), ("start", None), ("stop", None), ("stop", {}), ("stop", {"generation": "x"}),
                          ("start", {}, 3)):
            entry(*arguments)

    class Late:
        def __init__(self):
            self.entries = list(gc.callbacks)
            self.me = self

        def __del__(self):
            for entry in self.entries:
                entry("start", {})
                entry("stop", {})

    sys.late = Late()
    watch(path)


{"watch": watch, "fork": fork, "clear": clear, "misuse": misuse}[sys.argv[1]](sys.argv[2])
print("done")
