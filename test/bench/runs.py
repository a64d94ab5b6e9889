# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What there is to compare with, and how a program is run: bare, under the agent, and under each peer, taking turns."""

import ctypes
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
BENCH = BUILD / "bench"
WORK = BENCH / "work"
OUTPUT, MEMRAY_OUTPUT = WORK / "out", WORK / "memray.bin"
WORKLOADS = ROOT / "test/bench/workloads"
AGENT, NOOP, TORSH, WRITER = BUILD / "libtorshagent.so", BENCH / "libnoop_agent.so", BUILD / "torsh", BUILD / "torsh-writer"

BARE, NOOP_MODE, RAW, FULL = "bare", "no-op", "heaptrack record", "heaptrack full"
OURS, NATIVE, OURS_OBJECTS = "torsh", "torsh, native stacks", "torsh, each object"
HEAP, FIRST = "torsh, heap and Python", "torsh, first run"
SAMPLED, SAMPLED_PAUSED, OFF = "torsh, HEAP=sampled", "torsh, sampled, paused", "torsh, ENABLED=0"
DORMANT = "torsh, ENABLED=dormant"
SAMPLES_99, SAMPLES_1000 = "torsh, 99 Hz", "torsh, 1000 Hz"
ONE_SAMPLE, WAITS, BLAS = "torsh, samples", "torsh, waits", "torsh, blas"
JEMALLOC = "torsh's jemalloc, nothing recorded"
MEMRAY, MEMRAY_OBJECTS = "memray", "memray, each object"

# The agent's settings by mode, without the prefix of their names.
SETTINGS = {
    OURS: {}, FIRST: {}, HEAP: {"ACTIVITIES": "heap,python"}, NATIVE: {"ACTIVITIES": "heap,vm"},
    OURS_OBJECTS: {"PYTHON_ALLOCATORS": "1"}, SAMPLED: {"HEAP": "sampled"}, SAMPLED_PAUSED: {"HEAP": "sampled"},
    OFF: {"ENABLED": "0"}, DORMANT: {"ENABLED": "dormant"},
    SAMPLES_99: {"ACTIVITIES": "samples,python", "CPU_HZ": "99"}, SAMPLES_1000: {"ACTIVITIES": "samples,python", "CPU_HZ": "1000"},
    # As many of its own as there can be fewest: the program sends the signals.
    ONE_SAMPLE: {"ACTIVITIES": "samples,python", "CPU_HZ": "1"}, WAITS: {"ACTIVITIES": "waits"}, BLAS: {"ACTIVITIES": "blas"},
    JEMALLOC: {"ALLOCATOR": "jemalloc", "ENABLED": "0"},
}
# What the agent keeps between runs lies here; a first run finds nothing.
CACHE, EMPTY_CACHE = BENCH / "cache", WORK / "cache"


class Options:
    rounds = 5
    is_smoke = False


STARTED = time.monotonic()


def progress(text):
    """A line on stderr: where the time goes."""
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", file=sys.stderr, flush=True)


def output_of(command, timeout_s=60):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def scaled(n):
    return max(1, n // 100) if Options.is_smoke else n


# ---- tools ------------------------------------------------------------------------------------------------------------

def heaptrack_record_option():
    """--raw in 1.4, --record-only in 1.5; None where there is no heaptrack."""
    text = output_of(["heaptrack", "--help"])
    for option in ("--record-only", "--raw"):
        if option in text:
            return option
    return None


def environment_python(*name):
    """The Python of an environment, or None with a word on stderr."""
    found = subprocess.run([ROOT / "test/python/environment", *name], stdout=subprocess.PIPE, text=True)
    if found.returncode:
        progress(f"without {name[-1]}: its rows and columns stay empty")
        return None
    return found.stdout.strip()


def has_module(python, module):
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


class Machine:
    """What is here to compare with."""

    def __init__(self):
        self.heaptrack_option = heaptrack_record_option()
        self.memray_python = environment_python("memray")
        self.python = str(self.memray_python or sys.executable)
        self.torch_python = environment_python("--no-download", "torch")
        self.numpy_python = next((p for p in (self.python, self.torch_python) if p and has_module(p, "numpy")), None)

    def memray_path(self, python):
        """PYTHONPATH with which another Python finds memray, or None when it is of another version."""
        if not self.memray_python:
            return None
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        ours, theirs = (output_of([p, "-c", version]).strip() for p in (self.memray_python, python))
        folder = pathlib.Path(self.memray_python).parent.parent / f"lib/python{ours}/site-packages"
        return str(folder) if ours == theirs else None


# ---- one run of one program -------------------------------------------------------------------------------------------

def writers():
    """Pids of the writers that run from this build."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(WRITER):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def wait_for_writers():
    """The next measurement must not share the machine with what this one left. Orphans become children of this process, so
    that getrusage counts them once they are reaped."""
    deadline = time.monotonic() + 300
    while writers():
        if time.monotonic() > deadline:
            sys.exit("a writer did not end")
        reap()
        time.sleep(0.01)
    # One that is ending, and so runs nothing any more, is not reaped at once.
    deadline = time.monotonic() + 5
    while not reap() and time.monotonic() < deadline:
        time.sleep(0.01)


def adopt_orphans():
    """A writer leaves its target's process tree: it becomes a child of this process."""
    PR_SET_CHILD_SUBREAPER = 36  # noqa: N806, linux/prctl.h
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap():
    """Whether no child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    except ChildProcessError:
        return True


def cpu_of_children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_gnu_time(command, written):
    """The command, by GNU time, which leaves the most KiB that it took in the file written. The ru_maxrss of a child counts
    what its parent had when it was forked, and this process is larger than most programs that it measures."""
    return ["time", "--quiet", "--format", "%M", "--output", str(written), *map(str, command)]


def usage_of(command):
    """CPU seconds, seconds, MiB at most and exit status of a command that may print."""
    with tempfile.NamedTemporaryFile() as written:
        start = time.monotonic()
        child = subprocess.Popen(by_gnu_time(command, written.name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime, seconds, int(written.read()) / 1024, child.returncode


class Program:
    """A workload: a command, and the environment that it always has."""

    def __init__(self, name, command, env=None, is_python=False):
        self.name, self.command, self.env, self.is_python = name, [str(c) for c in command], env or {}, is_python


class Mode:
    """A way to run a program: how its command and environment change."""

    def __init__(self, name, machine):
        self.name, self.machine = name, machine

    def is_possible(self, program):
        if self.name in (RAW, FULL):
            return self.machine.heaptrack_option is not None
        if self.name in (MEMRAY, MEMRAY_OBJECTS):
            return program.is_python and self.machine.memray_path(program.command[0]) is not None
        return True

    def command(self, program):
        if self.name == RAW:
            return ["heaptrack", self.machine.heaptrack_option, "-o", str(WORK / "heaptrack"), *program.command]
        if self.name == FULL:
            return ["heaptrack", "-o", str(WORK / "heaptrack"), *program.command]
        if self.name in (MEMRAY, MEMRAY_OBJECTS):
            run = ["-m", "memray", "run", "--native", "-q", "-f", "-o", str(MEMRAY_OUTPUT)]
            objects = ["--trace-python-allocators"] if self.name == MEMRAY_OBJECTS else []
            return [program.command[0], *run, *objects, *program.command[1:]]
        return program.command

    def environment(self, program):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORSH_", "LD_", "MALLOC_", "PYTHON"))}
        cache = EMPTY_CACHE if self.name == FIRST else CACHE
        env = dict(kept, **program.env, XDG_CACHE_HOME=str(cache))
        if self.name == NOOP_MODE:
            env["LD_PRELOAD"] = str(NOOP)
        if self.name in SETTINGS:
            env.update(LD_PRELOAD=str(AGENT), TORSH_PROFILER_OUTPUT=str(OUTPUT), TORSH_PROFILER_SUMMARY="0")
            env.update((f"TORSH_PROFILER_{name}", value) for name, value in SETTINGS[self.name].items())
        if self.name == SAMPLED_PAUSED:
            env["PAIR_PAUSED"] = "1"
        if self.name in (MEMRAY, MEMRAY_OBJECTS):
            env["PYTHONPATH"] = self.machine.memray_path(program.command[0])
        return env


class Run:
    """cpu_s is of the program and its children, total_cpu_s also of the writer, lag_s until that was done."""

    def __init__(self, wall_s, cpu_s, total_cpu_s, lag_s, text):
        self.wall_s, self.cpu_s, self.total_cpu_s, self.lag_s, self.text = wall_s, cpu_s, total_cpu_s, lag_s, text

    @property
    def writer_cpu_s(self):
        return self.total_cpu_s - self.cpu_s


def run_once(program, mode, more_env=None):
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for folder in (CACHE, EMPTY_CACHE):
        folder.mkdir(mode=0o700, exist_ok=True)
    adopt_orphans()
    env = dict(mode.environment(program), **(more_env or {}))
    # Files, not pipes: a pipe would make this wait for whatever else holds its other end.
    with open(WORK / "stdout", "w+") as stdout, open(WORK / "stderr", "w+") as stderr:
        cpu_before_s, started = cpu_of_children_s(), time.perf_counter()
        status = subprocess.run(mode.command(program), env=env, cwd=WORK, stdin=subprocess.DEVNULL, stdout=stdout,
                                stderr=stderr).returncode
        ended, cpu_s = time.perf_counter(), cpu_of_children_s() - cpu_before_s
    wait_for_writers()
    lag_s, total_cpu_s = time.perf_counter() - ended, cpu_of_children_s() - cpu_before_s
    if status:
        printed = (WORK / "stderr").read_text(errors="replace")[-300:]
        print(f"{program.name} under {mode.name}: status {status}: {printed}", file=sys.stderr)
        return None
    return Run(ended - started, cpu_s, total_cpu_s, lag_s, (WORK / "stdout").read_text(errors="replace"))


def medians(runs, figure):
    """{mode: median of that figure} of what take_turns returns."""
    return {mode: statistics.median(getattr(run, figure) for run in of_mode) for mode, of_mode in runs.items() if of_mode}


def take_turns(program, modes, rounds):
    """Runs of each mode, interleaved; a mode that fails once is left out. One run before reads the files in."""
    runs = {mode.name: [] for mode in modes if mode.is_possible(program)}
    run_once(program, modes[0])
    for _ in range(rounds):
        for mode in modes:
            if mode.name not in runs:
                continue
            run = run_once(program, mode)
            if run is None and mode.name == BARE:
                sys.exit(f"{program.name} fails by itself")
            if run is None:
                del runs[mode.name]
            else:
                runs[mode.name].append(run)
    progress(f"measured: {program.name}")
    return runs
