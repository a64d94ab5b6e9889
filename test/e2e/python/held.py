#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a program of Python holds to its end, and the interpreter frees then: it is shown with its line, its exit handlers
run before it is judged, and the program is what it is without the agent.
"""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from pythons import MALLOC, find_all  # noqa: E402
from schema import expect_fits  # noqa: E402

N, BYTES = 400, 20000
HELD = f"""
import atexit, signal, sys
kept = [bytearray({BYTES}) for _ in range({N})]
released = [bytearray({BYTES}) for _ in range({N})]
atexit.register(released.clear)
atexit.register(print, "bye")
print(signal.getsignal(signal.SIGINT))
sys.exit(3)
"""


def line_of(text):
    return HELD.splitlines().index(next(line for line in HELD.splitlines() if text in line)) + 1


def held(report):
    return [(entry["user_frame"]["line"], entry["class"], entry["blocks"]) for entry in report["freed_at_exit"]["large"]]


def what_is_held(python):
    path = scratch("program") / "held.py"
    path.write_text(HELD)
    bare = run([python.path, path])
    result, output = record([python.path, path])
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), "status and output, as without")
    expect_equal(result.returncode, 3, "status")
    report = leaks(output)
    expect_fits("leaks", report)
    # The interpreter itself keeps a few paths.
    expect_equal([entry["user_frame"] for entry in report["leaks"] if entry["user_frame"]], [], "leaks at lines of the program")
    expect_equal({entry["class"] for entry in report["leaks"]} - {"reachable"}, set(), "classes of what is alive at the end")
    (line, kind, blocks), = held(report)
    # What an exit handler releases is not held to the end. Each bytearray has one block.
    expect_equal((line, kind), (line_of("kept ="), "reachable"), "the line that held memory")
    assert N <= blocks <= N + 2, blocks
    text = torsh("leaks", output)
    assert text.startswith(("No leaks.", "Nothing is lost.")), text[:200]
    assert "Held to the end, and freed at the exit: 7.6" in text and f"held.py:{line}" in text, text[:500]
    number = str(len(report["leaks"]) + 1)
    why = read_report("leaks", output, "--limit", "0", "--why", number)["why"]
    expect_equal([step["name"] for step in why[:3]], ["sys.modules", "__main__", "__main__.kept"], "who keeps it")
    expect_equal([step["type"] for step in why[1:]], ["module", "list", "bytearray", None], "what that is")


def what_is_held_where_sigint_is_ignored(python):
    """As in the background of a shell: CPython changes no signal when it ends."""
    path = scratch("program") / "held.py"
    path.write_text(HELD)
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    bare = run([python.path, path], **ignored)
    result, output = record([python.path, path], **ignored)
    expect_equal((result.returncode, result.stdout, result.stderr), (3, bare.stdout, b""), "what it does, as without")
    (line, kind, blocks), = held(leaks(output))
    expect_equal((line, kind), (line_of("kept ="), "reachable"), "the line that held memory")
    assert N <= blocks <= N + 2, blocks


for _python in find_all():
    add_case(f"{_python.name}_is_judged_where_sigint_is_ignored", what_is_held_where_sigint_is_ignored, _python)
    add_case(f"{_python.name}_is_judged_before_it_frees_what_is_held", what_is_held, _python)


# Forked workers end by _exit, those of a pool by SIGTERM: no interpreter takes them apart.
WORKERS = """
import multiprocessing, sys
def work(n):
    both.wait()
    return n * 2
def begin(barrier):
    global both
    both = barrier
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=begin, args=(None,))
    process.start(); process.join()
    with context.Pool(2, begin, (context.Barrier(2),)) as pool:
        print(process.exitcode, pool.map(work, range(4), chunksize=1))
"""
FORKED = MALLOC + f"""
import os
if not os.fork():
    kept = [bytearray({BYTES}) for _ in range({N})]
    malloc(3000)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def workers_leak_nothing(method):
    path = scratch("program") / "workers.py"
    path.write_text(WORKERS)
    result, output = record([sys.executable, path, method])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"0 [0, 2, 4, 6]\n", b""), "status and output")
    report = leaks(output, "--limit", "0")
    expect_equal([(entry["pid"], entry["bytes"], functions(entry)[:6]) for entry in report["leaks"]], [], "leaks")
    expect_equal(torsh("report", output).splitlines()[0], "No leaks", "heading")
    parts = [report[part]["bytes"] for part in ("bookkeeping", "suppressed", "kept_by_imports", "kept_by_first_uses")]
    expect_equal(sum(parts), report["alive"]["bytes"], "bytes alive at the end")


for _method in ("fork", "spawn"):
    add_case(f"workers_by_{_method}_leak_nothing", workers_leak_nothing, _method)


@case
def what_a_forked_process_has_in_use_is_held_and_what_it_lost_is_a_leak():
    path = scratch("program") / "forked.py"
    path.write_text(FORKED)
    result, output = record([sys.executable, path])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"5\n", b""), "status and output")
    report = leaks(output, "--limit", "0")
    expect_fits("leaks", report)
    line = FORKED.splitlines().index(next(text for text in FORKED.splitlines() if "kept =" in text)) + 1
    (entry,) = report["freed_at_exit"]["large"]
    expect_equal((entry["user_frame"]["line"], entry["class"]), (line, "reachable"), "the line that held memory")
    assert entry["bytes"] >= N * BYTES, entry["bytes"]
    expect_equal([(entry["bytes"], entry["class"]) for entry in report["leaks"]], [(3000, "lost")], "leaks")
    held_bytes = next(row["bytes"] for row in report["bookkeeping"]["by"] if row["what"].startswith("in use by Python"))
    assert held_bytes >= entry["bytes"], held_bytes
    text = torsh("leaks", output, "--kept")
    assert "Held to the end, and freed at the exit or with the process: 7.6" in text, text
    shown = leaks(output, "--limit", "0", "--no-default-suppressions")
    assert N * BYTES <= sum(entry["bytes"] for entry in shown["leaks"] if (entry["user_frame"] or {}).get("line") == line), shown["leaks"]


@case
def a_program_that_holds_little_is_silent():
    _, output = record([sys.executable, "-c", "import json; a = [bytearray(1000) for _ in range(100)]"])
    expect_equal(held(leaks(output)), [], "what is held")
    assert "Held" not in torsh("leaks", output)


STORAGES = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
class StorageWeakRef:
    __slots__ = ["cdata", "_free_weak_ref"]
    def __init__(self, cdata):
        self.cdata, self._free_weak_ref = cdata, libc.free
shared_cache = {i: StorageWeakRef(libc.malloc(5000)) for i in range(10)}
numbers = [libc.malloc(6000) for _ in range(10)]
"""


@case
def what_pytorch_keeps_by_an_int_is_not_lost():
    """torch.multiprocessing has the address of a storage that it shared as an int, by which it frees that."""
    _, output = record([sys.executable, "-c", STORAGES])
    lost = {leak["bytes"] // leak["blocks"]: leak["classes"]["lost"]["blocks"] for leak in leaks(output)["leaks"]}
    expect_equal((lost[5000], lost[6000]), (0, 10), "lost blocks of storages, and of numbers that nothing is known of")


main()
