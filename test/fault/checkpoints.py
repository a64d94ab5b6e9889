#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A writer killed with SIGKILL at a random moment: the file has all up to its last checkpoint, says when that was, and lacks
no more than TORSH_PROFILER_CHECKPOINT allows. FAULT_WRITER_KILLS=100 is the long form, by hand.
"""

import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_KILLS = int(os.environ.get("FAULT_WRITER_KILLS", 6))
SEED = int(os.environ.get("FAULT_SEED", random.randrange(1 << 30)))
INTERVAL_S = 0.2
# Others run on this machine: the writer may not get a CPU in time. Free of them the sum is INTERVAL_S and some ms.
SLACK_S = float(os.environ.get("FAULT_SLACK_S", 5))
N_BLOCKS = 1 << 40  # it never gets there


def writer_of(recording):
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "exe").resolve().name == "torsh-writer" and \
                    str(recording).encode() in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except OSError:
            pass
    return None


def watch(counts, seconds):
    """Blocks that were there at some moments: (time, blocks)."""
    seen, end = [], time.time() + seconds
    while time.time() < end:
        seen.append((time.time(), counts.kept()))
        wait_until(lambda at=seen[-1][0]: time.time() > at + 0.01, "the next moment")
    return seen


def kill_once(rng, number):
    """Seconds of which nothing is known."""
    output, counts = scratch(f"out{number}"), committed.Counts(scratch(f"counts{number}"))
    env = agent_environment(output, TORSH_PROFILER_CHECKPOINT=f"{int(INTERVAL_S * 1000)}ms")
    with started(committed.command(counts, N_BLOCKS, 1), env) as process:
        writer = wait_until(lambda: writer_of(output), "a writer")
        wait_until(lambda: counts.kept() > 1000, "blocks")
        seen = watch(counts, rng.uniform(0.3, 2.0))
        killed_at = time.time()
        os.kill(writer, signal.SIGKILL)
        kept = counts.kept()
        process.kill()
        process.wait()
    recording = leaks(output)["recording"]
    assert not recording["complete"] and not recording["being_written"], recording
    known_at = recording["start_realtime_ns"] / 1e9 + recording["known_until_ns"] / 1e9
    blocks, n_bytes = committed.reported(output)
    least = max((blocks for at, blocks in seen if at < known_at - 0.005), default=0)
    assert least <= blocks <= kept + 1, f"{least} blocks were there before what is known ends, {blocks} reported of {kept}"
    assert n_bytes == blocks * committed.KEPT_BYTES, f"{n_bytes} bytes in {blocks} blocks"
    first_line = torsh("leaks", output)
    assert re.search(r"writer was killed, and nothing is known of what came later than .* after the start", first_line), first_line
    return killed_at - known_at


@case
def a_killed_writers_file_lacks_no_more_than_it_says():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    lost_s = [kill_once(rng, number) for number in range(N_KILLS)]
    print(f"lost at most {max(lost_s):.3f} s in {N_KILLS} kills")
    assert max(lost_s) < INTERVAL_S + SLACK_S, f"{max(lost_s)} s are lost"


@case
def checkpoints_use_their_room_again():
    output = scratch()
    command = [sys.executable, "-c", "import time\nwhile True:\n    held = bytearray(10000)\n    time.sleep(0.002)"]
    with started(command, agent_environment(output, TORSH_PROFILER_CHECKPOINT="50ms")):
        recording = wait_until(lambda: recordings(output), "a recording")[0]

        # As soon as the program is in its loop it says nothing new.
        wait_until(lambda: newest(recording) > 60, "checkpoints")
        size, last = recording.stat().st_size, newest(recording)
        wait_until(lambda: newest(recording) > last + 100, "100 chunks more", 120)
        assert recording.stat().st_size < size + 40_000, f"{size} bytes became {recording.stat().st_size}"
    report = leaks(output)
    assert report["recording"]["complete"] and not report["recording"]["damaged"], report["recording"]


TREE = """
import os, time
if os.fork() == 0:
    while os.getppid() != 1:
        time.sleep(0.1)
    os._exit(0)
held = []
while True:
    held.append(bytearray(1000))
    time.sleep(0.002)
"""


@case
def a_peak_of_all_processes_together_uses_its_room_again():
    """It rises with every checkpoint, and each says which stacks had which part of it."""
    output = scratch()
    with started([sys.executable, "-c", TREE], agent_environment(output, TORSH_PROFILER_CHECKPOINT="50ms")):
        recording = wait_until(lambda: recordings(output), "a recording")[0]

        wait_until(lambda: newest(recording) > 150, "checkpoints")
        size, last = recording.stat().st_size, newest(recording)
        wait_until(lambda: newest(recording) > last + 400, "400 chunks more", 120)
        assert recording.stat().st_size < size + 100_000, f"{size} bytes became {recording.stat().st_size}"


def headers(data):
    """(number, kinds) of each chunk."""
    at, found = 32, []
    while at + 40 <= len(data) and data[at:at + 4] == b"tchk":
        kinds, number, stored = (int.from_bytes(data[at + a:at + b], "little") for a, b in ((6, 8), (8, 12), (12, 16)))
        found.append((number, kinds))
        at += 40 + stored
    return found


def newest(recording):
    return max((number for number, _ in headers(recording.read_bytes())), default=0)


main()
