#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A writer killed with SIGKILL at a random moment: the file has everything up to its last
checkpoint, contains its time, and lacks no more than TORSH_PROFILER_CHECKPOINT allows. At full
speed few programs (by hand FAULT_WRITER_KILLS=100), with checkpoints as often as they cost 1 %
of a core; a hundred slow ones with cheap checkpoints."""

import concurrent.futures
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_KILLS = int(os.environ.get("FAULT_WRITER_KILLS", 6))
N_SLOW_KILLS, N_TOGETHER = (10 if IS_QUICK else 100), 10
SEED = int(os.environ.get("FAULT_SEED", random.randrange(1 << 30)))
INTERVAL_S = 0.2
# Others run on this machine: the writer may not get a CPU in time. Free of them the sum is INTERVAL_S and some ms.
SLACK_S = float(os.environ.get("FAULT_SLACK_S", 5))
# That one writer in two is late by so much no load explains; without checkpoints half of them would lack more than a second.
MEDIAN_SLACK_S = 0.4
SECONDS, SLOW_SECONDS = (0.3, 2.0), (2.0, 3.0)  # from the first blocks to the kill
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
        blocks = counts.kept()  # before the time: other threads may run between them
        seen.append((time.time(), blocks))
        wait_until(lambda at=seen[-1][0]: time.time() > at + 0.01, "the next moment")
    return seen


def kill_once(seconds, number, how="return"):
    """Seconds without data, for a writer that is killed so long after the first blocks."""
    output, counts = scratch(f"out{number}"), committed.Counts(scratch(f"counts{number}"))
    env = agent_environment(output, TORSH_PROFILER_CHECKPOINT=f"{int(INTERVAL_S * 1000)}ms")
    with started(committed.command(counts, N_BLOCKS, 1, how), env) as process:
        writer = wait_until(lambda: writer_of(output), "a writer")
        wait_until(lambda: counts.kept() > 100, "blocks")
        seen = watch(counts, seconds)
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
    assert least <= blocks <= kept + 1, f"{least} blocks were there before the last checkpoint, {blocks} reported of {kept}"
    assert n_bytes == blocks * committed.KEPT_BYTES, f"{n_bytes} bytes in {blocks} blocks"
    first_line = torsh("leaks", output)
    assert re.search(r"writer was killed, and nothing is known of what came later than .* after the start", first_line), first_line
    return killed_at - known_at


def random_moments(n, seconds):
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    return [rng.uniform(*seconds) for _ in range(n)]


def expect_within_bound(lost_s):
    """The longest one and the median, which is more meaningful when a busy machine delays a writer
    now and then."""
    longest, median = max(lost_s), statistics.median(lost_s)
    assert longest < INTERVAL_S + SLACK_S and median < INTERVAL_S + MEDIAN_SLACK_S, f"lost {sorted(lost_s)} s"
    print(f"note: {len(lost_s)} kills, of each at most {longest:.3f} s lost, {median:.3f} s in the median")


@case
@waits
def a_killed_writers_file_lacks_no_more_than_it_reports():
    lost_s = [kill_once(seconds, number) for number, seconds in enumerate(random_moments(N_KILLS, SECONDS))]
    print(f"note: {N_KILLS} kills, of each at most {max(lost_s):.3f} s lost")


@case
def a_hundred_killed_writers_files_lack_no_more_than_is_stated():
    with concurrent.futures.ThreadPoolExecutor(N_TOGETHER) as pool:
        lost_s = pool.map(lambda row: kill_once(row[1], row[0], "slowly"),
                          enumerate(random_moments(N_SLOW_KILLS, SLOW_SECONDS)))
        expect_within_bound(list(lost_s))


@case
@waits
def checkpoints_use_their_room_again():
    output = scratch()
    command = [sys.executable, "-c", "import time\nwhile True:\n    held = bytearray(10000)\n    time.sleep(0.002)"]
    with started(command, agent_environment(output, TORSH_PROFILER_CHECKPOINT="50ms")):
        recording = wait_until(lambda: recordings(output), "a recording")[0]

        # In its loop the program prints nothing new.
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
@waits
def a_peak_of_all_processes_together_uses_its_room_again():
    """It rises with every checkpoint, and each contains the stacks' parts of it."""
    output = scratch()
    with started([sys.executable, "-c", TREE], agent_environment(output, TORSH_PROFILER_CHECKPOINT="50ms")):
        recording = wait_until(lambda: recordings(output), "a recording")[0]

        wait_until(lambda: newest(recording) > 150, "checkpoints")
        size, last = recording.stat().st_size, newest(recording)
        wait_until(lambda: newest(recording) > last + 400, "400 chunks more", 300)
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
