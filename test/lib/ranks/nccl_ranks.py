# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ranks that use the simulated NCCL, what it logs of their calls, and what their recordings have of it."""

import json
import subprocess
import sys

from harness import *  # noqa: F403
from simcuda import LIBRARIES, need_simcuda, read_truth, recording_environment

PROGRAM = ROOT / "test/simcuda/programs/collectives.py"
PRELOAD = ":".join(str(LIBRARIES / name) for name in ("libsimcuda.so", "libcuda.so.1", "libnccl.so.2"))
LABELS = ("name", "function", "datatype", "algorithm", "protocol")
BYTES = {"ncclInt8": 1, "ncclFloat16": 2, "ncclFloat32": 4, "ncclInt64": 8}
UNKNOWN = (1 << 64) - 1


def nccl_events(output):
    """The events of NCCL of the only process that has some, with labels as texts."""
    texts, found = {}, []
    for line in torsh("dump", output, "--only", "functions,events,timeline").splitlines():
        row = json.loads(line)
        if "functions" in row:
            table = row["functions"]
            texts.setdefault(table["process"], {}).update(enumerate(table["name"], table["first"] + 1))
        elif row.get("event", "").startswith("nccl_"):
            found.append(row)
    for event in found:
        for field in LABELS:
            if field in event:
                event[field] = texts[event["process"]][event[field]] if event[field] else ""
    expect_equal(len({event["process"] for event in found}), 1, "processes with events of NCCL")
    return found


def play(activities, interface, ranks=2, env=None):
    """Both ranks at once. Returns the recording and the truth of each."""
    need_simcuda()
    meeting, started_ranks = scratch("meeting"), []
    for rank in range(ranks):
        output, truth = scratch(f"rank{rank}"), scratch(f"truth{rank}") / "truth"
        variables = recording_environment(output, truth, {"TORSH_PROFILER_ACTIVITIES": activities,
                                                          "SIMCUDA_NCCL_INTERFACE": str(interface), "RANK": str(rank),
                                                          "WORLD_SIZE": str(ranks), **(env or {})})
        variables["LD_PRELOAD"] = f"{AGENT}:{PRELOAD}"
        started_ranks.append((subprocess.Popen([sys.executable, PROGRAM, str(rank), str(ranks), meeting], env=variables,
                                               stderr=subprocess.PIPE), output, truth))
    found = []
    for process, output, truth in started_ranks:
        stderr = process.communicate(timeout=120)[1]
        expect_equal((process.returncode, stderr), (0, b""), "status and stderr")
        wait_until(lambda: recordings(output), "a recording")
        found.append((output, read_truth(truth)))
    return found


def said(truth, what):
    return [line for line in truth if line["kind"] == "nccl" and line["what"] == what]
