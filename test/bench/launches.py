# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a kernel's launch costs on the simulated CUDA, with kernels that take no time: bare, with a client of CUPTI that does
nothing with what it gets, and with the agent; and what it takes in the recording.
"""

import json
import os
import statistics
import subprocess
import sys

from results import table
from runs import AGENT, BENCH, BUILD, OUTPUT, Options, TORSH, adopt_orphans, scaled, wait_for_writers

LIBRARIES = BUILD / "simcuda/lib"
LAUNCHES, CLIENT, AGENT_MODE = "bare", "CUPTI's own part", "the agent"
N_KERNELS = 3_000_000
TARGET_NS, TARGET_BYTES = 80, 60


def environment(mode):
    variables = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_KERNEL_NS": "0", "SIMCUDA_LAUNCH_NS": "0"}
    variables.pop("LD_PRELOAD", None)
    if mode == CLIENT:
        variables["CUDA_INJECTION64_PATH"] = str(BENCH / "libempty_cupti.so")
    if mode == AGENT_MODE:
        variables.update({"LD_PRELOAD": str(AGENT), "TORSH_PROFILER_OUTPUT": str(OUTPUT), "TORSH_PROFILER_SUMMARY": "0"})
    return variables


def clear():
    subprocess.run(["rm", "-rf", OUTPUT], check=True)


def recorded():
    """Kernels in the recording that is there, and bytes of it for each."""
    report = json.loads(subprocess.run([TORSH, "kernels", OUTPUT, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    n_kernels = sum(kernel["calls"] for kernel in report["kernels"])
    n_bytes = sum(path.stat().st_size for path in OUTPUT.rglob("*.torsh"))
    return n_kernels, n_bytes / n_kernels


def measure():
    """({mode: (ns a launch of CPU time, of wall time)}, bytes a kernel); None where there is no simulated CUDA."""
    if not (LIBRARIES / "libcuda.so.1").exists():
        print("no simulated CUDA was built: launches are not measured", file=sys.stderr)
        return None
    n_kernels, found = scaled(N_KERNELS), {mode: [] for mode in (LAUNCHES, CLIENT, AGENT_MODE)}
    adopt_orphans()
    for _ in range(Options.rounds):
        for mode in found:
            clear()
            ran = subprocess.run([BENCH / "launches", str(n_kernels)], env=environment(mode), stdout=subprocess.PIPE, check=True)
            wait_for_writers()
            result = json.loads(ran.stdout)
            found[mode].append((result["cpu_ns"], result["wall_ns"]))
    n_recorded, n_bytes = recorded()
    if n_recorded != n_kernels:
        raise SystemExit(f"{n_kernels} kernels were launched, {n_recorded} were recorded")
    medians = {mode: tuple(statistics.median(values) for values in zip(*runs)) for mode, runs in found.items()}
    return medians, n_bytes


def section(measured, verdicts):
    if not measured:
        verdicts.at_most("a launch on simulated CUDA, added beyond CUPTI's own part", TARGET_NS, None, "ns")
        return []
    ns, n_bytes = measured
    verdicts.at_most("a launch on simulated CUDA, added beyond CUPTI's own part", TARGET_NS,
                     ns[AGENT_MODE][0] - ns[CLIENT][0], "ns")
    verdicts.at_most("a kernel with its launch in the recording", TARGET_BYTES, n_bytes, "bytes")
    rows = [[mode, f"{cpu_ns:.0f}", f"{wall_ns:.0f}"] for mode, (cpu_ns, wall_ns) in ns.items()]
    return ["## Kernels on simulated CUDA: ns a launch", ""] + table(["", "CPU time", "wall time"], rows)


def sections(_machine, verdicts):
    return section(measure(), verdicts)
