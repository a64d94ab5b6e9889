# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Memory over very many launches on the simulated CUDA: of the program under the agent, of its
writer, and of the report. The kernel reports the peak of each; the writer is adopted by this
process when the program has ended."""

import ctypes
import os
import subprocess
from pathlib import Path

from launches import AGENT_MODE, LIBRARIES, clear, environment, recorded
from results import table
from runs import BENCH, OUTPUT, TORSH, WORK, by_gnu_time, scaled, usage_of

FEW, MANY = 5_000_000, 50_000_000
GROWTH = 1.1  # what ten times the launches may take more
PR_SET_CHILD_SUBREAPER = 36
MIB = 1 << 10  # of the KiB that ru_maxrss counts


def _adopt_orphans(is_on):
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def wait_for_all(first):
    """MiB at most of the one writer that the child first left; the copies of processes that were judged are orphans, too.
    A writer is forked from its program when that is still small."""
    most = []
    while True:
        try:
            pid = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            _, status, usage = os.wait4(pid, 0)
        except ChildProcessError:
            break
        if pid == first or name == "torsh-writer":
            if status:
                raise SystemExit(f"process {pid} ended with status {status}")
            most += [usage.ru_maxrss / MIB] * (pid != first)
    (of_writer,) = most
    return of_writer


def _run(n_kernels):
    """MiB of the program, of the writer, bytes a kernel, seconds and MiB of the report."""
    clear()
    env, of_program = environment(AGENT_MODE), WORK / "of_program"
    preloaded = ["env", f"LD_PRELOAD={env.pop('LD_PRELOAD')}"]  # not into what measures
    command = by_gnu_time([*preloaded, BENCH / "launches", n_kernels], of_program)
    program = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    of_writer = wait_for_all(program.pid)
    program.returncode = 0  # it was waited for
    n_recorded, n_bytes = recorded()
    if n_recorded != n_kernels:
        raise SystemExit(f"{n_kernels} kernels were launched, {n_recorded} were recorded")
    _, seconds, memory, status = usage_of([TORSH, "kernels", OUTPUT, "--json"])
    if status:
        raise SystemExit(f"torsh kernels ended with status {status}")
    clear()
    return int(of_program.read_text()) / MIB, of_writer, n_bytes, seconds, memory


def measure():
    """{kernels: result of _run}; None without simulated CUDA."""
    if not (LIBRARIES / "libcuda.so.1").exists():
        return None
    _adopt_orphans(True)
    measured = {n: _run(n) for n in (scaled(FEW), scaled(MANY))}
    _adopt_orphans(False)
    return measured


def section(measured, verdicts):
    rows = list(measured.items()) if measured else []
    for i, measured in enumerate(("program under the agent", "writer")):
        ratio = rows[1][1][i] / rows[0][1][i] if rows else None
        verdicts.at_most(f"memory of the {measured}, {MANY // 1_000_000} million launches beside {FEW // 1_000_000} million", GROWTH, ratio, "×", "{:.2f}")
    if not rows:
        return []
    text = [[f"{n:,}", *(f"{value:.1f}" for value in values)] for n, values in rows]
    heading = ["launches", "program, MiB", "writer, MiB", "bytes a kernel", "`torsh kernels`, s", "MiB"]
    return ["## Memory over many launches on simulated CUDA", ""] + table(heading, text)


def sections(_machine, verdicts):
    return section(measure(), verdicts)
