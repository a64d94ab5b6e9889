#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A target killed with SIGKILL at a random moment: every event committed before the kill is in its
report. In test/run each case runs for some seconds and prints the number of kills; by hand
FAULT_KILLS sets their number."""

import itertools
import math
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

N_KILLS = int(os.environ.get("FAULT_KILLS", 20 if IS_QUICK else 200))
SECONDS = math.inf if "FAULT_KILLS" in os.environ else 8  # of each case
LEAST_KILLS = 1 if IS_QUICK else 5  # of each case, however long they take
N_TREES = int(os.environ.get("FAULT_TREES", 5 if IS_QUICK else 20))
SEED = int(os.environ.get("FAULT_SEED", random.randrange(1 << 30)))
numbers = itertools.count()
N_BLOCKS = 1 << 40  # it never gets there


def kill_once(rng, n_threads, n_before):
    # A folder for each: where the target was killed early, the child that makes its recording may still be at work.
    number = next(numbers)
    output, counts = scratch(f"out{number}"), committed.Counts(scratch(f"counts{number}"))
    with started(committed.command(counts, N_BLOCKS, n_threads), agent_environment(output)) as process:
        wait_until(lambda: counts.kept() >= n_before or process.poll() is not None, f"{n_before} blocks")
        assert process.poll() is None, f"the target ended by itself with {process.returncode}"
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = counts.kept()
    if not recordings(output):
        assert kept == 0, f"no recording, but {kept} blocks were allocated"
        return
    result = run([TORSH, "leaks", output, "--json"])
    if result.returncode == 2 and b"has no process in it" in result.stderr:
        assert kept == 0, f"killed before it printed hello, but {kept} blocks were allocated"
        return
    blocks, n_bytes = committed.reported(output)
    # What a thread was about to count when it was killed may be there or not.
    assert kept <= blocks <= kept + n_threads, f"{kept} blocks were counted by {n_threads} threads, {blocks} reported"
    assert n_bytes == blocks * committed.KEPT_BYTES, f"{n_bytes} bytes in {blocks} blocks"


def kill_often(n_threads, share):
    print(f"seed {SEED}")
    rng = random.Random(SEED + n_threads)
    for _ in in_time(range(max(1, N_KILLS * share // 100)), SECONDS, LEAST_KILLS, f"kills from seed {SEED} on"):
        kill_once(rng, n_threads, int(10 ** rng.uniform(0, 4.7)))


@case
def nothing_is_invented_when_the_kill_comes_first():
    for _ in range(3 if IS_QUICK else 20):
        kill_once(random, 1, 0)


@case
def what_a_killed_tree_left_is_read_to_its_end():
    # Some are dying still when the reader comes: it waits for the writer, as it does for those that are dead.
    for number in range(N_TREES):
        output, counts = scratch(f"out{number}"), [committed.Counts(scratch(f"counts{number}.{i}")) for i in range(3)]
        script = "".join(shell_words(*committed.command(part, N_BLOCKS)) + " & " for part in counts) + "wait"
        with started(["sh", "-c", script], agent_environment(output), start_new_session=True) as process:
            wait_until(lambda: all(part.kept() > 10_000 for part in counts), "blocks of all")
            os.killpg(process.pid, signal.SIGKILL)
            recording = leaks(output)["recording"]
        assert recording["complete"] and not recording["being_written"], f"run {number}: {recording}"


for row in ((1, 40), (2, 30), (8, 20), (20, 10)):
    add_case(f"what_was_committed_by_{row[0]}_threads_is_reported", kill_often, *row)

main()
