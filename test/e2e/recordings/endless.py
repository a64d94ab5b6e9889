#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A flight recorder's writer and its file do not grow with the run: a training at full speed, whose events of a week come in
seconds. ENDLESS_EVENTS=1e10 test/e2e/recordings/endless.py, by hand, makes so many of them, and prints what they took.
"""

import os
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import Target, session_of  # noqa: E402

PROGRAM = PROGRAMS / "endless"
EVENTS = float(os.environ.get("ENDLESS_EVENTS") or 6e6)
BATCHES = 20
WARM_UP = 6  # batches until all that is bounded has its size
MOST_GROWTH_BYTES = 2 << 20
MOST_BYTES = 32 << 20
MOST_FILE_BYTES = 4 << 20
MIB = 1 << 20


def resident(pid):
    """RssAnon: files that are mapped are no memory of the writer's own."""
    return int(re.search(r"RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


def on_disk(path):
    return path.stat().st_blocks * 512


def run_for_long(limit):
    """(memory, bytes of the file) after each batch, and the folder."""
    sizes, begin = [], time.monotonic()
    with Target((PROGRAM, int(EVENTS / BATCHES)), TORSH_PROFILER_RECORD=limit, TORSH_PROFILER_KEEP="none",
                TORSH_PROFILER_CHECKPOINT="200ms") as target:
        target.send("x")
        writer = wait_until(lambda: session_of(target.pid), "the session")["writer_pid"]
        [recording] = recordings(target.output)
        for _ in range(BATCHES - 1):
            target.send("x")
            sizes.append((resident(writer), on_disk(recording)))
        target.end()
    events = read_report("report", target.output)["events"]
    check_counts(events)
    assert events["produced"] >= EVENTS * 0.99, events
    print(f"note: {limit}: {events['produced']:.2e} events in {time.monotonic() - begin:.0f} s; the writer has "
          f"{sizes[WARM_UP][0] / MIB:.1f} MiB after {WARM_UP + 1} batches and {sizes[-1][0] / MIB:.1f} MiB after {BATCHES}, "
          f"the file {sizes[WARM_UP][1] / MIB:.1f} and {sizes[-1][1] / MIB:.1f} MiB")
    return sizes


def stays_flat(limit):
    sizes = run_for_long(limit)
    before, after = sizes[:WARM_UP + 1], sizes[WARM_UP + 1:]
    # A pass over many events may have a few more MiB for a moment.
    growth = statistics.median(memory for memory, _ in after) - max(memory for memory, _ in before)
    most = max(memory for memory, _ in sizes)
    assert growth <= MOST_GROWTH_BYTES, f"the writer grew by {growth / MIB:.1f} MiB: {[memory >> 10 for memory, _ in sizes]}"
    assert most <= MOST_BYTES, f"the writer had {most / MIB:.1f} MiB"
    largest = max(size for _, size in sizes)
    assert largest <= MOST_FILE_BYTES, f"the file has {largest / MIB:.1f} MiB"


for limit in ("ring:1M", "ring:200steps"):
    add_case(f"flat_with_{limit.replace(':', '_')}", stays_flat, limit)

main()
