# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a kernel's launch costs on the simulated CUDA, with kernels that take no time: bare, with a client of CUPTI that does
nothing with what it gets, and with the agent; and what it takes in the recording. And what a collective of 8 bytes costs, by MPI
and by NCCL.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys

from results import table
from runs import AGENT, BENCH, BUILD, NOOP, NOOP_MODE, OUTPUT, ROOT, Options, TORSH, adopt_orphans, scaled, wait_for_writers

LIBRARIES = BUILD / "simcuda/lib"
LAUNCHES, CLIENT, AGENT_MODE = "bare", "CUPTI's own part", "the agent"
BY_PROFILER, BY_WRAPPERS = "the agent, nccl by its profiler", "the agent, nccl by wrapped functions"
N_KERNELS = 3_000_000
TARGET_NS, TARGET_BYTES = 80, 60
N_MPI_CALLS, N_NCCL_CALLS, MPI_RANKS = 500_000, 500_000, 2
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


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


# ---- collectives ------------------------------------------------------------------------------------------------------

def preloaded(mode):
    """The agent's variables, for the ranks alone."""
    agent = {"LD_PRELOAD": str(AGENT), "TORSH_PROFILER_OUTPUT": str(OUTPUT), "TORSH_PROFILER_SUMMARY": "0"}
    nccl = {**agent, "TORSH_PROFILER_ACTIVITIES": "cuda,nccl"}
    return {LAUNCHES: {}, NOOP_MODE: {"LD_PRELOAD": str(NOOP)}, AGENT_MODE: agent, BY_PROFILER: {**nccl, "SIMCUDA_NCCL_INTERFACE": "6"},
            BY_WRAPPERS: {**nccl, "SIMCUDA_NCCL_INTERFACE": "0"}}[mode]


def run_mpi(mode):
    """What rank 0 printed; None where there is no MPI."""
    compiler, runner = shutil.which("mpicc"), shutil.which("mpirun")
    program = BENCH / "mpi_allreduce"
    if not compiler or not runner:
        return None
    subprocess.run([compiler, "-O2", ROOT / "test/bench/native/mpi_allreduce.c", "-o", program], check=True)
    variables = [f"{name}={value}" for name, value in preloaded(mode).items()]
    return subprocess.run([runner, "--oversubscribe", "-n", str(MPI_RANKS), "env", *variables, program, str(scaled(N_MPI_CALLS))],
                          env={**os.environ, **MPI}, stdout=subprocess.PIPE, check=True).stdout


def run_nccl(mode):
    if not (LIBRARIES / "libnccl.so.2").exists():
        return None
    return subprocess.run([BENCH / "nccl_allreduce", str(scaled(N_NCCL_CALLS))], env={**environment(LAUNCHES), **preloaded(mode)},
                          stdout=subprocess.PIPE, check=True).stdout


def mpi_calls():
    """All-reduces of all ranks in the recording that is there."""
    report = json.loads(subprocess.run([TORSH, "ranks", OUTPUT, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    return sum(row["calls"] for row in report["collectives"] if "all" in row["name"].lower() and "reduce" in row["name"].lower())


def collective_rows(name, run, count, *modes):
    """Rows of the table, one for each mode, with what is added to the bare program. count: of the calls in the recording."""
    found = {mode: [] for mode in (LAUNCHES, NOOP_MODE, *modes)}
    for _ in range(Options.rounds):
        for mode, runs in found.items():
            clear()
            printed = run(mode)
            wait_for_writers()
            if printed is None:
                print(f"{name}: there is no such library, nothing is measured", file=sys.stderr)
                return []
            runs.append(json.loads(printed))
            if mode in modes and count() != runs[-1]["calls"] * runs[-1]["ranks"]:
                raise SystemExit(f"{name}: {runs[-1]} were made, {count()} were recorded")
    ns = {mode: [statistics.median(one[key] for one in runs) for key in ("cpu_ns", "wall_ns")] for mode, runs in found.items()}
    return [[name if mode == LAUNCHES else "", mode, *(f"{value:.0f}" for value in ns[mode]),
             *("" if mode == LAUNCHES else f"{value - bare:.0f}" for value, bare in zip(ns[mode], ns[LAUNCHES]))] for mode in ns]


def collective_sections(_machine, _verdicts):
    adopt_orphans()
    rows = collective_rows(f"MPI_Allreduce, {MPI_RANKS} ranks", run_mpi, mpi_calls, AGENT_MODE)
    # Each has a kernel.
    rows += collective_rows("ncclAllReduce, simulated", run_nccl, lambda: recorded()[0], AGENT_MODE, BY_PROFILER, BY_WRAPPERS)
    return ["## Collectives of 8 bytes: ns a call", ""] + table(
        ["", "", "CPU time", "wall time", "added CPU time", "added wall time"], rows) if rows else []
