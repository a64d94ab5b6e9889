#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flight recorders: the last part of the timeline is kept, and copies when something happens. The targets run a step for
each letter, so how many there were, and which were slow, is known."""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target  # noqa: E402
import schema  # noqa: E402

PACED = (PROGRAMS / "paced",)
WORK = 20  # ranges of a step


def steps_of(path):
    """Numbers of the steps in a recording, which are without a gap."""
    numbers = [step["index"] for step in read_report("steps", path, "--limit", "0")["steps"]]
    expect_equal(numbers, list(range(numbers[0], numbers[-1] + 1)), f"steps of {path}")
    return numbers


def copies(target):
    return sorted(target.output.glob("*.kept/*.torsh"), key=lambda path: int(path.stem))


def recording_of(target):
    return next(target.output.glob("*.torsh"))


def notes_of(path):
    return " ".join(note if isinstance(note, str) else note["text"] for note in read_report("report", path)["notes"])


def keep(target):
    """The copy that was asked for."""
    result = run([TORSH, "keep", target.pid])
    expect_equal(result.returncode, 0, f"status of torsh keep ({result.stderr!r})")
    return pathlib.Path(result.stdout.split(b"\n")[0].removeprefix(b"kept: ").decode())


def expect_last(numbers, n_steps, limit):
    """The last steps of so many, all within the limit, and not many more."""
    expect_equal(numbers[-1], n_steps - 1, "last step")
    # A message passes as a whole. It has an eighth of the limit or 50 ms, and what the writer folds in one more pass: 4,096
    # events, some 100 of these steps. While a copy is made nothing passes.
    assert limit <= len(numbers) <= limit + 400, (len(numbers), limit)


@case
def the_last_steps_are_kept_and_have_their_numbers():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:200steps", TORSH_PROFILER_KEEP="none") as target:
        target.send("s" * 3000)
        expect_last(steps_of(keep(target)), 3000, 200)
        target.send("s" * 2500)
        target.end()
        recording = recording_of(target)
        expect_last(steps_of(recording), 5500, 200)
        # Ranges of the steps that are there, none of the others; of the oldest step a part may have passed.
        found = next(r for r in read_report("regions", recording)["regions"] if r["name"] == "work")["calls"]
        n = len(steps_of(recording))
        assert n * WORK <= found < (n + 1) * WORK, (found, n)
        assert "flight recorder" in notes_of(recording)
        expect_equal(len(copies(target)), 1, "copies")


@case
def a_signal_keeps_a_copy():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:200steps", TORSH_PROFILER_KEEP="signal:USR2") as target:
        target.send("s" * 500)
        target.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: copies(target), "the copy")
        target.send("s" * 10)
        target.end()
        [copy] = copies(target)
        expect_equal(steps_of(copy)[-1], 499, "last step of the copy")
        assert "got the signal" in notes_of(copy), notes_of(copy)


@case
def copies_that_gave_their_places_leave_one_note_in_all():
    n, places = 20, 16
    # Copies may follow each other by half of what the recorder spans, and while one is due nothing passes.
    with Target(PACED, TORSH_PROFILER_RECORD="ring:20steps", TORSH_PROFILER_KEEP="signal:USR2") as target:
        for i in range(n):
            target.send("s" * 400)
            target.process.send_signal(signal.SIGUSR2)
            wait_until(lambda: target.send("s") or copies(target) and int(copies(target)[-1].stem) == i + 1, f"copy {i + 1}")
        target.end()
        expect_equal([int(copy.stem) for copy in copies(target)], list(range(n - places + 1, n + 1)), "copies")
        notes = [note for note in notes_of(recording_of(target)).split("kept as ")]
        expect_equal(len(notes) - 1, places, "notes of copies")
        assert all(f"/{i + 1 + n - places}.torsh: " in note for i, note in enumerate(notes[1:])), notes
        assert f"copies that gave their places to later ones: {n - places}" in " ".join(notes), notes


@case
@long
@quiet
def the_file_does_not_grow_with_the_run():
    sizes = {}
    # Room is used again after some 4 s: both runs are longer. What grows with the run would nearly double.
    for n in (8000, 16000):
        with Target(PACED, TORSH_PROFILER_RECORD="ring:100steps", TORSH_PROFILER_KEEP="none") as target:
            target.send("s" * n)
            target.end()
            sizes[n] = recording_of(target).stat().st_size
    assert sizes[16000] < 1.5 * sizes[8000], sizes


@case
def the_last_seconds_survive_a_kill():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:1s", TORSH_PROFILER_KEEP="none") as target:
        target.send("S" * 40)
        target.process.send_signal(signal.SIGKILL)
        target.process.wait(TIMEOUT_S)
        numbers = steps_of(recording_of(target))
        expect_equal(numbers[-1], 39, "last step")
        assert 9 <= len(numbers) <= 20, numbers


@case
def a_slow_step_is_kept_with_those_before():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:100steps", TORSH_PROFILER_KEEP="slow:200") as target:
        target.send("s" * 300 + "L" + "ss")
        path = wait_until(lambda: next((path for path in copies(target) if "step 300 of" in notes_of(path)), None), "a copy")
        target.send("s" * 500)
        target.end()
        numbers = steps_of(path)
        assert 300 in numbers and 201 in numbers, (numbers[0], numbers[-1])
        step = read_report("steps", path, "--limit", "0")["steps"][300 - numbers[0]]
        assert step["duration_ns"] >= 2e9, step
        # The run itself goes on, and its recording says where the copy is.
        assert str(path) in notes_of(recording_of(target))


@case
def a_process_that_hangs_is_kept():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:1m", TORSH_PROFILER_KEEP="hang:1s") as target:
        target.send("s" * 30)
        wait_until(lambda: copies(target), "a copy")
        path = copies(target)[0]
        assert "began no step for" in notes_of(path), notes_of(path)
        expect_equal(steps_of(path), list(range(30)), "steps of the copy")
        target.send("s" * 10)
        target.end()
        expect_equal(len(copies(target)), 1, "copies: one for one hang")


def stacks_of(path):
    """The functions of each thread, innermost first, by its number: those of Python with their lines."""
    report = read_report("report", path)
    schema.expect_fits("report", report)
    stacks = report["thread_stacks"]
    if any(stack["reason"] and "ptrace" in stack["reason"] for stack in stacks):
        raise Skip(stacks[0]["reason"])
    return {stack["tid"]: [(frame["function"], int(frame["place"].rpartition(":")[2])) if frame["python"] else frame["function"]
                           for frame in stack["frames"]] for stack in stacks}


HANGS = """
import os, sys, threading, torsh
held, event = threading.Lock(), threading.Event()
def inner():
    held.acquire()
def step(depth):
    return step(depth - 1) if depth else inner()
def wait():
    event.wait()
def listen():
    sys.stdin.read(1)
    held.release()
held.acquire()
threads = [threading.Thread(target=wait), threading.Thread(target=listen)]
for thread in threads:
    thread.start()
print(threads[0].native_id, threads[1].native_id, flush=True)
for i in range(30):
    torsh.step(i)
step(3)
event.set()
for thread in threads:
    thread.join()
print("ended", flush=True)
"""


@case
def a_hang_has_the_stack_of_each_thread():
    with Target((sys.executable, "-c", HANGS), TORSH_PROFILER_RECORD="ring:1m", TORSH_PROFILER_KEEP="hang:1s",
                PYTHONPATH=ROOT / "tools/python") as target:
        waiting, listening = map(int, target.process.stdout.readline().split())
        wait_until(lambda: copies(target), "a copy")
        [path] = copies(target)
        stacks = stacks_of(path)
        python = {tid: [frame for frame in frames if isinstance(frame, tuple)] for tid, frames in stacks.items()}
        lines = {line: number for number, line in enumerate(HANGS.splitlines(), 1)}
        deeper = ("step", lines["    return step(depth - 1) if depth else inner()"])
        expect_equal(python[target.pid], [("inner", lines["    held.acquire()"]), deeper, deeper, deeper, deeper,
                                          ("<module>", lines["step(3)"])], "Python of the main thread")
        assert ("wait", lines["    event.wait()"]) in python[waiting], python[waiting]
        assert ("listen", lines["    sys.stdin.read(1)"]) in python[listening], python[listening]
        # The native frames are around those of Python: the lock's inside, the interpreter's main outside.
        natives = [frame for frame in stacks[target.pid] if isinstance(frame, str)]
        assert "PyThread_acquire_lock_timed" in natives and "Py_BytesMain" in natives, natives
        expect_equal(set(stacks), {target.pid, waiting, listening}, "threads")
        assert "STACKS   3 threads of pid" in torsh("report", path)
        text = torsh("report", "--verbose", path)
        assert f"Thread {target.pid} of pid {target.pid}" in text and "inner " in text, text
        target.process.stdin.write(b"x")
        target.process.stdin.close()
        expect_equal((target.process.stdout.read(), target.process.wait(TIMEOUT_S)), (b"ended\n", 0), "output and status")
    assert "thread_stacks" not in read_report("report", recording_of(target)), "stacks in the recording of the whole run"


@case
def a_snapshot_with_stacks_has_them():
    with Target(PACED) as target:
        target.send("s" * 3)
        for arguments, has_stacks in (([], False), (["--stacks"], True)):
            path = scratch("snapshots") / "taken.torsh"
            torsh("snapshot", target.pid, *arguments, "-o", path)
            report = read_report("report", path)
            expect_equal("thread_stacks" in report, has_stacks, "stacks")
        [frames] = stacks_of(path).values()
        assert "main" in frames and frames[-1] == "_start", frames
        # It waited in read, which goes on.
        target.send("s")
        target.end()


@case
def an_even_run_keeps_nothing():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:1m", TORSH_PROFILER_KEEP="slow:1000") as target:
        target.send("s" * 300)
        target.end()
        expect_equal(copies(target), [], "copies")
        expect_equal(steps_of(recording_of(target)), list(range(300)), "steps: the ring is not full")


@case
def a_recording_that_is_no_ring_keeps_when_asked_only():
    with Target(PACED, TORSH_PROFILER_KEEP="slow:2,hang:1s") as target:
        target.send("s" * 100 + "S")
        path = keep(target)
        expect_equal(steps_of(path), list(range(101)), "steps of the copy")
        target.end()
        expect_equal(copies(target), [path], "copies")


@case
def all_ranks_keep_what_one_keeps():
    meeting = scratch("meeting")
    variables = {"TORSH_PROFILER_RECORD": "ring:1m", "TORSH_PROFILER_KEEP": "none", "TORSH_PROFILER_KEEP_WITH": str(meeting)}
    with Target(PACED, output=scratch("first"), **variables) as first, \
            Target(PACED, output=scratch("second"), **variables) as second:
        first.send("s" * 50)
        second.send("s" * 60)
        asked = keep(first)
        wait_until(lambda: copies(second), "a copy of the other rank")
        assert "another rank kept a copy: torsh keep" in notes_of(copies(second)[0])
        expect_equal(steps_of(asked), list(range(50)), "steps of the first")
        expect_equal(steps_of(copies(second)[0]), list(range(60)), "steps of the second")
        first.end()
        second.end()
        expect_equal((len(copies(first)), len(copies(second))), (1, 1), "copies: no echo")


@case
def a_directory_that_is_not_there_is_noted():
    with Target(PACED, TORSH_PROFILER_RECORD="ring:1m", TORSH_PROFILER_KEEP_WITH="/nonexistent/meeting") as target:
        target.send("s" * 20)
        wait_until(lambda: "other ranks are not informed" in notes_of(keep(target)), "the note")
        target.end()


@case
def bad_values_are_named():
    for name, value in (("RECORD", "ring:"), ("RECORD", "ring:0steps"), ("RECORD", "ring:10"), ("RECORD", "ring:100ms"),
                        ("KEEP", "slow:1"), ("KEEP", "hang"), ("KEEP", "memory,often")):
        result = run(["/bin/true"], env=agent_environment(scratch(), **{f"TORSH_PROFILER_{name}": value}))
        assert f"{name}".encode() in result.stderr and b"torsh: " in result.stderr, (name, value, result.stderr)


if __name__ == "__main__":
    main()
