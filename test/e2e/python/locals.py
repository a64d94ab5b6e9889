#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What variables of running functions keep, in Python's words, while the program runs: local ones, arguments, those that
closures share, those of generators and coroutines, of other threads, and of frames that an exception keeps. The program
itself reports where each function is, and which thread runs it. What is left of former objects behind the end of bytes leads
nowhere.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import torch_python  # noqa: E402
from harness import *  # noqa: E402,F403
from live_targets import Target  # noqa: E402
from pythons import find_all  # noqa: E402
from schema import expect_fits  # noqa: E402

N = 40
# Bytes of the blocks that each variable keeps: no two have the same.
ROWS, ARGUMENT, NESTED, CELL, FREE, RUNNING, AWAITED, THREADS, SUSPENDED, FAILED, CAUGHT = SIZES = range(20001, 42001, 2000)

PROGRAM = f"""
import asyncio, json, sys, threading
places = {{}}
def here(name):
    # Where the caller is when it calls what waits.
    frame = sys._getframe(1)
    places[name] = (frame.f_lineno + 1, threading.get_native_id() if hasattr(threading, "get_native_id") else None)
def blocks(size):
    return [bytearray(size) for _ in range({N})]
def bytes_over(kept):
    # In the memory of a tuple that is gone: its last item is still behind their end.
    n, size = (22, 180) if sys.version_info >= (3, 14) else (21, 167)
    row = (None,) * (n - 1) + (kept,)
    del row
    return bytes(size)
remains = []
started, ended = threading.Event(), threading.Event()

class Trainer:
    def fit(self, data):
        rows = {{"train": [(1, blocks({ROWS}))]}}
        remains.append(bytes_over(rows["train"][0][1]))
        here("fit")
        return closing(), data, rows

def closing():
    shared = blocks({CELL})
    def inner():
        mine = blocks({NESTED})
        here("inner")
        list(generating(blocks({FREE})))
        return shared, mine
    here("closing")
    return inner()

def generating(taken):
    running = blocks({RUNNING})
    def use():
        return taken
    here("generating")
    yield asyncio.run(waiting())

async def waiting():
    awaited = blocks({AWAITED})
    here("waiting")
    answer()
    return awaited

def working():
    rows = blocks({THREADS})
    here("working")
    wait(started, ended)
    return rows

def wait(started, ended):
    started.set()
    ended.wait()

def suspended():
    held = blocks({SUSPENDED})
    yield 1
    return held

def failing():
    lost = blocks({FAILED})
    raise ValueError

def answer():
    print(json.dumps(places), flush=True)
    sys.stdin.read(1)

generator = suspended()
next(generator)
try:
    failing()
except ValueError as error:
    kept = error
def catches():
    caught = blocks({CAUGHT})
    try:
        raise KeyError
    except KeyError as error:
        return error
other = catches()
thread = threading.Thread(target=working)
thread.start()
started.wait()
Trainer().fit(blocks({ARGUMENT}))
ended.set()
thread.join()
"""

# By the size of the blocks: the function as CPython 3.10 and before call it, as later ones do, the variable, and the names
# and types on the way from it.
LOCALS = {
    ROWS: ("fit", "Trainer.fit", "rows", ["rows", "rows['train']", "rows['train'][K]", "rows['train'][K][K]"],
           ["dict", "list", "tuple", "list"]),
    ARGUMENT: ("fit", "Trainer.fit", "data", ["data"], ["list"]),
    CELL: ("closing", "closing", "shared", ["shared"], ["list"]),
    NESTED: ("inner", "closing.<locals>.inner", "mine", ["mine"], ["list"]),
    FREE: ("generating", "generating", "taken", ["taken"], ["list"]),
    RUNNING: ("generating", "generating", "running", ["running"], ["list"]),
    AWAITED: ("waiting", "waiting", "awaited", ["awaited"], ["list"]),
    THREADS: ("working", "working", "rows", ["rows"], ["list"]),
}
# What no running function keeps, but a frame; since 3.11 a generator has its own inside.
FRAMES = {
    SUSPENDED: ["__main__.generator", "__main__.generator.gi_frame", "__main__.generator.gi_frame.held"],
    FAILED: ["__main__.kept", "__main__.kept.__traceback__", "__main__.kept.__traceback__.tb_next",
             "__main__.kept.__traceback__.tb_next.tb_frame", "__main__.kept.__traceback__.tb_next.tb_frame.lost"],
    CAUGHT: ["__main__.other", "__main__.other.__traceback__", "__main__.other.__traceback__.tb_frame",
             "__main__.other.__traceback__.tb_frame.caught"],
}


def without_numbers(name):
    return name and "".join("[K]" if i % 2 and part.isdigit() else f"[{part}]" if i % 2 else part
                            for i, part in enumerate(name.replace("]", "[").split("[")))


def now(target, *arguments):
    return json.loads(torsh("leaks", "--now", target.pid, "--json", "--limit", "0", *arguments))


def number_of(report, size):
    """Of the row with blocks of that size; an array of bytes has one more."""
    found = [i + 1 for i, row in enumerate(report["leaks"]) if row["blocks"] == N and row["bytes"] == N * (size + 1)]
    expect_equal(len(found), 1, f"rows with blocks of {size}")
    return str(found[0])


def expect_local(target, way, size, places, is_qualified):
    short, qualified, variable, names, types = LOCALS[size]
    line, tid = places[short]
    root, *steps = way["why"]
    thread = f", thread {tid}" if tid and tid != target.pid else ""
    expect_equal(root["kind"], "local", f"root of {[(step['kind'], step['name'], step['type']) for step in way['why']]}")
    # The path is shown as seen from here.
    before, _, place = root["name"].partition("() in ")
    expect_equal((before, place[place.rindex("/"):]),
                 (f"local '{variable}' of {qualified if is_qualified else short}", f"/train.py:{line}{thread}"), "root")
    found = [without_numbers(step["name"]) for step in steps[:len(names)]]
    expect_equal(found, [without_numbers(name) for name in names], "names")
    expect_equal([step["type"] for step in steps[:len(types)]], types, "types")
    expect_equal(steps[-1]["bytes"], size + 1, "bytes of the block")


def expect_all(python):
    path = scratch("program") / "train.py"
    path.write_text(PROGRAM)
    with Target([python.path, path]) as target:
        target.path = path
        places = json.loads(target.process.stdout.readline())
        report = now(target)
        expect_equal(report["reachability"]["judged"], True, f"judged ({report['reachability']})")
        for size in SIZES:
            way = now(target, "--why", number_of(report, size))
            expect_fits("leaks-why", way)
            if size in LOCALS:
                expect_local(target, way, size, places, python.minor >= 11)
                continue
            found = [step["name"] for step in way["why"][2:]]
            names = [name for name in FRAMES[size] if not name.endswith(".gi_frame") or python.minor < 11]
            expect_equal([name for name in found if name][:len(names)], names, f"names on the way {way['why']}")
        text = torsh("leaks", "--now", target.pid, "--why", number_of(report, ROWS))
        assert text.startswith("local 'rows' of ") and "\n  -> rows['train']: list" in text, text
        target.process.stdin.write(b"x")
        target.end()


for _python in find_all():
    if not _python.is_free_threaded and _python.minor <= 14:
        add_case(f"{_python.name}_shows_what_frames_keep", expect_all, _python)

DEEP = """
import sys, threading
sys.setrecursionlimit(10000)
def dive(n, rows):
    if n:
        return dive(n - 1, rows)
    print(end=".", flush=True)
    sys.stdin.read(1)
    return rows
dive(3000, [bytearray(30000) for _ in range(40)])
"""


@case
def the_outermost_of_three_thousand_frames_is_shown():
    with Target([sys.executable, "-c", DEEP]) as target:
        expect_equal(target.process.stdout.read(1), b".", "the answer")
        way = now(target, "--why", number_of(now(target), 30000))
        expect_equal(way["why"][0]["name"], "local 'rows' of dive() in <string>:6", "root")
        target.process.stdin.write(b"x")
        target.end()


TENSORS = """
import sys, torch
def train():
    losses = []
    weight = torch.randn(200, 200, requires_grad=True)
    for _ in range(30):
        losses.append((weight * torch.randn(200, 200)).sum())
    print(end=".", flush=True)
    sys.stdin.read(1)
    return losses
train()
"""


@case
@needs("torch")
def a_graph_that_a_local_variable_keeps_is_named():
    with Target([torch_python(), "-c", TENSORS]) as target:
        expect_equal(target.process.stdout.read(1), b".", "the answer")
        report = now(target)
        (number, _), *_ = sorted(enumerate(report["leaks"], 1), key=lambda row: -row[1]["bytes"])
        why = now(target, "--why", str(number))["why"]
        expect_equal((why[0]["kind"], why[0]["name"]), ("local", "local 'losses' of train() in <string>:9"), "root")
        expect_equal([step["type"] for step in why[1:4]], ["list", "Tensor", "c10::TensorImpl"], "types")
        target.process.stdin.write(b"x")
        target.end()


main()
