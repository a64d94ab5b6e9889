# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The parts of the benchmark, in the order of the results, and what each found: kept below build/bench with the commit that
was measured, so that what was interrupted goes on, and the whole is put together from parts of one commit.
"""

import json
import subprocess
import time

import allocator
import beside_memray
import beside_torch
import helpers
import import_time
import launch_memory
import launches
import pairs
import programs
import python_frames
import readers
import samples
import service
import starts
import timelines
import traces
import verdicts_at_exit
import writer_memory
from results import Verdicts
from runs import BENCH, ROOT, Options, progress, wait_for_writers

# name: (machine, verdicts) -> lines of the results
PARTS = {
    "import": import_time.sections,
    "torch": beside_torch.sections,
    "programs": programs.sections,
    "memray": beside_memray.sections,
    "pair": pairs.sections,
    "cold": pairs.cold_sections,
    "service": service.sections,
    "python": python_frames.sections,
    "samples": samples.sections,
    "start": starts.process_sections,
    "loader": starts.loader_sections,
    "threads": starts.thread_sections,
    "regions": helpers.region_sections,
    "cuda": launches.sections,
    "launches": launch_memory.sections,
    "collectives": launches.collective_sections,
    "allocator": allocator.sections,
    "capture": helpers.capture_sections,
    "fold": helpers.fold_sections,
    "bytes": programs.bytes_sections,
    "verdicts": verdicts_at_exit.sections,
    "writer-memory": writer_memory.sections,
    "readers": readers.sections,
    "exports": timelines.sections,
    "traces": traces.sections,
    "merge": traces.merge_sections,
}
CHANGED = " with changes"  # what follows the commit's id where files differ from it


def measured_commit():
    """The commit that is checked out."""
    def git(*arguments):
        run = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return run.stdout.strip() if run.returncode == 0 else None

    changes = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!test/bench/RESULTS.md")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (CHANGED if changes else "")


def path_of(name):
    return BENCH / ("parts-smoke" if Options.is_smoke else "parts") / f"{name}.json"


def stored(name):
    """What a part found the last time, or None."""
    path = path_of(name)
    return json.loads(path.read_text()) if path.exists() else None


def is_of(part, commit):
    return part is not None and part["commit"] == commit and part["rounds"] == Options.rounds


def measure(name, machine, commit):
    verdicts, started = Verdicts(), time.monotonic()
    progress(f"part {name}")
    wait_for_writers()  # of the part before
    lines = PARTS[name](machine, verdicts)
    seconds = time.monotonic() - started
    part = {"name": name, "commit": commit, "rounds": Options.rounds, "seconds": round(seconds), "targets": verdicts.rows, "lines": lines}
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(part, indent=1, ensure_ascii=False))
    unfinished.replace(path)
    progress(f"part {name} took {seconds:.0f} s")
    return part
