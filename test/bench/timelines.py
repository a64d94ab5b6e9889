# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exports of synthetic timelines: ten million operators, and ten million kernels."""

import os
import pathlib
import subprocess

from results import table
from runs import BUILD, TORSH, WORK, progress, scaled, usage_of

# format, file, seconds that it may take
EXPORTS = (("perfetto", "t.pftrace", 6), ("chrome", "t.json", 20), ("chrome", "t.json.gz", None))
OPERATORS = 10_000_000
KERNELS_EXPORTS = (("perfetto", "k.pftrace", 10), ("chrome", "k.json", None))
KERNELS, KERNELS_OF_OPERATOR = 10_000_000, 10


def export(recording, name, path):
    """Seconds, and MiB of memory at most."""
    _, seconds, memory, status = usage_of([TORSH, "export", recording, "--format", name, "-o", path])
    if status:
        raise SystemExit(f"the export to {name} failed")
    return seconds, memory


def measure(exports, operators, kernels_of_operator=0):
    """Format, file, the target in s, s, MiB of memory, MiB of the file, of one run each; bytes of the recording. Files are
    in memory."""
    synthetic = BUILD / "test/synthetic"
    folder = pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else WORK
    recording = WORK / "timeline.torsh"
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run([synthetic, recording, str(scaled(operators)), "0", str(kernels_of_operator)], check=True,
                   stdout=subprocess.DEVNULL)
    rows = []
    for name, file, limit in exports:
        path = folder / f"torsh-bench-{os.getpid()}-{file}"
        seconds, memory = export(recording, name, path)
        size = path.stat().st_size
        path.unlink()
        rows.append((name, file, limit, seconds, memory, size / 1048576))
        progress(f"exported: {file}")
    bytes_recorded = recording.stat().st_size
    recording.unlink()
    return rows, bytes_recorded


def rows_of(rows):
    return table(["format", "file", "s", "MiB of memory", "MiB"],
                 [[name, file, f"{seconds:.1f}", f"{memory:.0f}", f"{size:.0f}"] for name, file, _, seconds, memory, size in rows])


def kernels_section(rows, bytes_recorded, verdicts):
    for name, _, limit, seconds, memory, _ in rows:
        if limit:
            verdicts.at_most(f"10 million kernels to {name}", limit, seconds, "s")
            verdicts.at_most("memory of that", 512, memory, "MiB", "{:.0f}")
    heading = "## Exports of a timeline with 10 million kernels, 10 of each operator"
    return [heading, "", f"{bytes_recorded / scaled(KERNELS):.1f} bytes a kernel in the recording.", ""] + rows_of(rows)


def operators_section(rows, bytes_recorded, verdicts):
    for name, _, limit, seconds, _, _ in rows:
        if limit:
            verdicts.at_most(f"10 million operators to {name}", limit, seconds, "s")
    verdicts.at_most("memory of an export", 512, max(row[4] for row in rows), "MiB", "{:.0f}")
    json_bytes = next(row[5] for row in rows if row[1] == "t.json") * 1048576
    verdicts.at_most("recording against Kineto's JSON", 0.1, bytes_recorded / json_bytes, "×", "{:.3f}")
    return ["## Exports of a timeline with 10 million operators", ""] + rows_of(rows)


def sections(_machine, verdicts):
    return (operators_section(*measure(EXPORTS, OPERATORS), verdicts)
            + kernels_section(*measure(KERNELS_EXPORTS, KERNELS // KERNELS_OF_OPERATOR, KERNELS_OF_OPERATOR), verdicts))
