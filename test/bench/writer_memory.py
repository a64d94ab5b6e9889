# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Memory of the writer: one process that imports PyTorch, and four of them at once in one session; as many as a host has
ranks, that import modules of the standard library and are all alive at once."""

import os
import subprocess
import sys

from launch_memory import wait_for_all
from results import table
from runs import AGENT, OUTPUT, WORK, adopt_orphans

PROGRAM = """
import subprocess, sys
for child in [subprocess.Popen([sys.executable, "-c", "import torch"]) for _ in range({n})]:
    child.wait()
"""
# Each waits until all have imported.
RANKS_PROGRAM = """
import subprocess, sys
imports = "import argparse, asyncio, concurrent.futures, decimal, email.mime.text, http.server, json, logging.config"
imports += ", multiprocessing.pool, pydoc, sqlite3, sys, unittest.mock, urllib.request, xml.dom.minidom, xmlrpc.client"
child = imports + "; print(flush=True); sys.stdin.read()"
children = [subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range({n})]
for child in children:
    child.stdout.readline()
for child in children:
    child.stdin.close()
for child in children:
    child.wait()
"""
MANY, RANKS = 4, 64
TARGET_MIB, TARGET_RATIO = 150, 1.3
TARGET_RANKS_MIB = 2048


def _run(python, text, n):
    """MiB of the writer at most."""
    subprocess.run(["rm", "-rf", OUTPUT], check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(AGENT), "TORSH_PROFILER_OUTPUT": str(OUTPUT), "TORSH_PROFILER_SUMMARY": "0"}
    program = subprocess.Popen([python, "-c", text.format(n=n)], env=env, stdout=subprocess.DEVNULL)
    of_writer = wait_for_all(program.pid)
    program.returncode = 0  # it was waited for
    return of_writer


def measure(machine):
    """{processes: MiB} of those that import PyTorch, None without it; MiB of the ranks."""
    adopt_orphans()
    of_torch = {n: _run(machine.torch_python, PROGRAM, n) for n in (1, MANY)} if machine.torch_python else None
    return of_torch, _run(sys.executable, RANKS_PROGRAM, RANKS)


def section(measured, verdicts):
    of_torch, of_ranks = measured or (None, None)
    one, many = (of_torch[1], of_torch[MANY]) if of_torch else (None, None)
    verdicts.at_most("memory of the writer, one process that imports PyTorch", TARGET_MIB, one, "MiB", "{:.0f}")
    verdicts.at_most(f"memory of the writer, {MANY} such processes at once beside one", TARGET_RATIO,
                     many / one if of_torch else None, "×", "{:.2f}")
    verdicts.at_most("memory of the writer, each further such process", TARGET_RANKS_MIB // RANKS,
                     (many - one) / (MANY - 1) if of_torch else None, "MiB", "{:.0f}")
    verdicts.at_most(f"memory of the writer, {RANKS} processes that import the standard library", TARGET_RANKS_MIB,
                     of_ranks, "MiB", "{:.0f}")
    if not measured:
        return []
    rows = [[f"{n} × PyTorch", f"{mib:.0f}"] for n, mib in (of_torch or {}).items()]
    rows.append([f"{RANKS} × modules of the standard library", f"{of_ranks:.0f}"])
    return ["## Memory of the writer: processes that import at once", ""] + table(["processes", "MiB"], rows)


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
