# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Many ranks. Traces of PyTorch's profiler: torsh ranks --from-chrome beside HolisticTraceAnalysis on the same files. Folds of a job
of 16,384 ranks, made from one rank's with noise: torsh merge.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import sys
import time

from results import cell, table
from runs import BUILD, ROOT, TORSH, WORK, Options, progress, scaled

RANKS, STEPS, KERNELS = 2, 5, 6000  # kernels of a step of a rank
OURS, THEIRS = "torsh ranks --from-chrome", "HolisticTraceAnalysis"
TIMES_FASTER, TIMES_LESS = 50, 20
MANY_RANKS, OPERATORS = 16384, 202  # of one job; operators of the rank that all are made from
MERGE_S, MERGE_MIB = 60, 1024
HTA = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_idle_time_breakdown(ranks=analysis.t.get_ranks(), visualize=False)
rows = analysis.get_temporal_breakdown(visualize=False)
print(json.dumps(rows["idle_time_pctg"].tolist()))
"""


def memory_of_group(leader):
    """MiB that a process and its children hold now, shared pages divided."""
    total = 0
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and os.getpgid(int(folder.name)) == leader:
                total += int((folder / "smaps_rollup").read_text().partition("Pss:")[2].split()[0])
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    return total / 1024


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command):
    """Seconds, CPU seconds and MiB that it and its children took at most, and its output."""
    # A file: nobody reads a pipe meanwhile.
    with tempfile.TemporaryFile("w+") as output:
        start, cpu, most = time.monotonic(), children_cpu_s(), 0.0
        child = subprocess.Popen(list(map(str, command)), stdout=output, stderr=subprocess.DEVNULL, start_new_session=True)
        while child.poll() is None:
            most = max(most, memory_of_group(child.pid))
            time.sleep(0.005 if time.monotonic() - start < 1 else 0.05)
        if not most:
            raise SystemExit(f"{command[0]} ended before its memory was read")
        seconds = time.monotonic() - start
        if child.returncode:
            raise SystemExit(f"{command[0]} failed")
        output.seek(0)
        return seconds, children_cpu_s() - cpu, most, output.read()


def ours(folder):
    """The fastest of some runs. The memory is what the kernel counts, of this program alone: its parent is larger."""
    found = []
    for _ in range(min(3, Options.rounds)):
        start, cpu, most = time.monotonic(), children_cpu_s(), 0
        command = [TORSH, "ranks", "--from-chrome", folder, "--json", "-j", str(RANKS)]  # HTA too reads all ranks at once
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            status = pathlib.Path(f"/proc/{child.pid}/status")
            os.set_blocking(child.stdout.fileno(), False)
            output = b""
            while child.poll() is None:
                peak = status.read_text().partition("VmHWM:")[2].split()
                most = max(most, int(peak[0]) if peak else 0)
                output += child.stdout.read() or b""
                time.sleep(0.001)
            seconds = time.monotonic() - start
            output += child.stdout.read() or b""
        if child.returncode:
            raise SystemExit("torsh ranks failed")
        found.append((seconds, children_cpu_s() - cpu, most / 1024, output))
    return min(found)


def hta_python():
    made = subprocess.run([ROOT / "test/python/environment", "consumers"], stdout=subprocess.PIPE, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


def make():
    folder = WORK / "traces"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = [sys.executable, ROOT / "test/lib/kineto/traces.py", folder, RANKS, STEPS, scaled(KERNELS)]
    n_events = int(subprocess.run(list(map(str, program)), check=True, stdout=subprocess.PIPE).stdout)
    return folder, n_events, sum(path.stat().st_size for path in folder.iterdir()) / 1048576


def sections(_machine, verdicts):
    folder, n_events, mib = make()
    progress(f"made traces of {n_events} events")
    seconds, cpu, memory, output = ours(folder)
    rows = [[OURS, cell(seconds, "{:.2f}"), cell(cpu, "{:.2f}"), cell(memory, "{:.0f}")]]
    python = hta_python()
    if python:
        theirs_s, theirs_cpu, theirs_mib, theirs = measure([python, "-W", "ignore", "-c", HTA, folder])
        rows.append([THEIRS, cell(theirs_s, "{:.1f}"), cell(theirs_cpu, "{:.1f}"), cell(theirs_mib, "{:.0f}")])
        idle = [rank["idle_percent"] for rank in json.loads(output)["breakdown"]["ranks"]]
        apart = max(abs(a - b) for a, b in zip(idle, json.loads(theirs)))
        verdicts.at_least("traces: times faster than HTA", TIMES_FASTER, theirs_s / seconds, "×")
        verdicts.at_least("traces: times less memory than HTA", TIMES_LESS, theirs_mib / memory, "×")
        verdicts.at_most("traces: idle time apart from HTA's", 0.01, apart, "points", "{:.3f}")
    else:
        verdicts.add("traces: times faster than HTA", f"≥ {TIMES_FASTER} ×", None, False)
    shutil.rmtree(folder)
    heading = f"## Traces of PyTorch's profiler: {RANKS} ranks, {n_events} events, {mib:.0f} MiB of gzip"
    return [heading, "", "Memory of HTA: it and its processes, shared pages divided.", ""] + table(["", "s", "CPU s", "MiB of memory"], rows)


def make_folds(n):
    """A folder with the folds of so many ranks, and MiB of them."""
    folder = WORK / "folds"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "all").mkdir(parents=True)
    run = subprocess.run
    run([BUILD / "test/synthetic", folder / "one.torsh", str(OPERATORS), "2"], check=True, stdout=subprocess.DEVNULL)
    run([TORSH, "fold", folder / "one.torsh", "--rank", "0", "-o", folder / "one.fold"], check=True)
    run([BUILD / "test/fold_synthesis", folder / "one.fold", str(n), folder / "all"], check=True)
    return folder, sum(path.stat().st_size for path in (folder / "all").iterdir()) / 1048576


def merge_sections(_machine, verdicts):
    n, rows = scaled(MANY_RANKS), []
    folder, mib = make_folds(n)
    progress(f"made folds of {n} ranks")
    for jobs in (1, 2):
        seconds, cpu, memory, _ = measure([TORSH, "merge", folder / "all", "-j", jobs, "-o", folder / f"merged-{jobs}"])
        rows.append([f"torsh merge -j {jobs}", cell(seconds, "{:.1f}"), cell(cpu, "{:.1f}"), cell(memory, "{:.0f}")])
    merged = [(folder / f"merged-{jobs}").read_bytes() for jobs in (1, 2)]
    # CPU seconds of two processes on two cores: what others do there doesn't count.
    verdicts.at_most(f"merge of {n} ranks on two cores", MERGE_S, cpu / 2, "s", "{:.1f}", note="CPU time / 2")
    verdicts.at_most("memory of that", MERGE_MIB, memory, "MiB", "{:.0f}")
    verdicts.add("both make the same bytes", "yes", "yes" if merged[0] == merged[1] else "no", merged[0] == merged[1])
    seconds, cpu, memory, _ = measure([TORSH, "ranks", folder / "merged-2", "--json"])
    rows.append(["torsh ranks of the merged fold", cell(seconds, "{:.1f}"), cell(cpu, "{:.1f}"), cell(memory, "{:.0f}")])
    shutil.rmtree(folder)
    heading = f"## Folds of a job of {n} ranks: {mib:.0f} MiB, merged {len(merged[0]) / 1048576:.0f} MiB"
    return [heading, "", "Memory of all its processes, shared pages divided.", ""] + table(["", "s", "CPU s", "MiB of memory"], rows)
