# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs tasks, several at a time if that is asked for, and makes a result of each recording."""

import concurrent.futures
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time

from torsh._recording import RecordingError, find_command, run_command
from torsh.workloads._tasks import write_result
from torsh.workloads._worker import TURN

TAIL_LINES = 20
QUIET_LOOKS, QUIET_LOOK_S, QUIET_SHARE = 20, 0.1, 0.9
# Of a device's work: the operator profile, the map of kernels to it, operators by kernel, and layers.
EXPORTS = (("profile", "profile.json"), ("manifest", "manifest.json"), ("corr", "corr.json"), ("part", "part.json"))


class Failed(Exception):
    """A task's program or one of its reports failed; the text says how."""


def _processor_ticks():
    """Idle and all time of all processors, in ticks."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _wait_for_quiet():
    """Writers go on for a while when what they record was stopped. Where others use the machine it is never quiet."""
    for _ in range(QUIET_LOOKS):
        idle, all_ticks = _processor_ticks()
        time.sleep(QUIET_LOOK_S)
        idle_now, all_now = _processor_ticks()
        if idle_now - idle >= QUIET_SHARE * (all_now - all_ticks):
            return


class Turns:
    """
    One process measures at a time; the others that run are stopped meanwhile, and none is started or reported on. Each asks
    by a byte, gets one as the answer, and closes its pipe when it has measured or ends.
    """

    def __init__(self, processes):
        self.turn = threading.Lock()
        self.processes = processes

    def serve(self, process, requests, answers):
        """Until the process has closed its end."""
        if os.read(requests, 1):
            with self.turn:
                self._signal_others(process, signal.SIGSTOP)
                _wait_for_quiet()
                try:
                    os.write(answers, b"!")
                    os.read(requests, 1)
                except BrokenPipeError:
                    pass  # it was killed
                finally:
                    self._signal_others(process, signal.SIGCONT)
        os.close(requests)
        os.close(answers)

    def _signal_others(self, process, number):
        for other in list(self.processes):
            if other is not process:
                _kill(other, number)


class Runner:
    """The processes that run, so that all can be ended."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()  # guards the next two
        self.processes = set()
        self.is_ended = False
        self.turns = Turns(self.processes)

    def end(self):
        with self.lock:
            self.is_ended = True
            for process in self.processes:
                _kill(process)

    def run(self, task):
        """Returns the result of a task, which it also writes."""
        begin = time.monotonic()
        shutil.rmtree(task.folder, ignore_errors=True)
        os.makedirs(task.folder)
        result = {"key": task.key, "status": "ok", "reason": None, "seen": None, "measured": None, "files": []}
        try:
            result["seen"] = self._record(task)
            with self.turns.turn:
                result["measured"] = _measure(task, result["seen"])
                result["files"] = _export(task, result["seen"])
        except (Failed, RecordingError, OSError) as error:
            result.update(status="failed", reason=str(error))
        result["seconds"] = round(time.monotonic() - begin, 3)
        with self.lock:
            if not self.is_ended:
                write_result(task.result_path, result)
        return result

    def _record(self, task):
        seen, output = os.path.join(task.folder, "seen.json"), os.path.join(task.folder, "output.txt")
        with open(output, "wb") as file:
            status = self._wait(task, self._command(task, seen), file)
        if status is None:
            raise Failed(f"it was still running after {self.options.timeout:g} s\n{_tail(output)}")
        if status:
            how = f"status {status}" if status > 0 else f"signal {signal.Signals(-status).name}"
            raise Failed(f"{how}\n{_tail(output)}")
        try:
            with open(seen) as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise Failed(f"it wrote no result: {error}\n{_tail(output)}")

    def _command(self, task, seen):
        options = self.options
        counters = ["--counters", options.counters] if options.counters and task.device == "cuda" else []
        worker = [options.python, "-m", "torsh.workloads._worker", task.workload, task.variant, task.device, options.size or "",
                  str(options.warmup_iters), str(options.measure_iters), seen, str(os.getpid())]
        return [*shlex.split(options.launcher or ""), find_command(), "run", "--no-follow", *counters, "-o",
                os.path.join(task.folder, "recording"), "--", *worker]

    def _environment(self, task, turn):
        cache = os.path.join(os.path.dirname(os.path.dirname(task.folder)), "cache")
        # Compiled in the process itself: no pool of workers that outlives the run.
        ours = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"), "TRITON_CACHE_DIR": os.path.join(cache, "triton"),
                "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        return {**{name: value for name, value in ours.items() if name not in os.environ}, **os.environ, TURN: turn}

    def _wait(self, task, command, file):
        """Returns the status, or None if it took too long."""
        requests, its_requests = os.pipe()
        its_answers, answers = os.pipe()
        its = (its_answers, its_requests)
        try:
            with self.turns.turn, self.lock:
                if self.is_ended:
                    raise Failed("the run was ended")
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, pass_fds=its,
                                           env=self._environment(task, "%d,%d" % its), start_new_session=True)
                self.processes.add(process)
        finally:
            for descriptor in its:
                os.close(descriptor)
        threading.Thread(target=self.turns.serve, args=(process, requests, answers), daemon=True).start()
        try:
            return process.wait(timeout=self.options.timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
            return None
        finally:
            with self.lock:
                self.processes.discard(process)


def _kill(process, number=signal.SIGKILL):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _tail(path):
    with open(path, errors="replace") as file:
        lines = [line.rstrip() for line in file if line.strip() and not line.startswith("torsh: ")]
    return "\n".join(lines[-TAIL_LINES:])


def _median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) // 2


def _measure(task, seen):
    """The figures of the measured steps, from the recording."""
    recording = os.path.join(task.folder, "recording")
    numbers = range(seen["first_step"], seen["first_step"] + len(seen["durations_ns"]))
    steps = json.loads(run_command("steps", recording, "--json", "--limit", "0", "--steps", f"{numbers[0]}-{numbers[-1]}"))["steps"]
    if [step["index"] for step in steps] != list(numbers):
        raise Failed(f"the recording has the steps {[step['index'] for step in steps]}, not {list(numbers)}: see torsh steps {recording}")

    def of(name):
        values = [step[name] for step in steps]
        return None if None in values else _median(values)

    peaks = [step["peak_bytes"] for step in steps]
    return {"steps": len(steps), "step_ns": of("duration_ns"), "device_ns": of("device_ns"), "operators": of("calls"),
            "flops": of("flops"), "flops_all": of("flops_all"), "peak_bytes": None if None in peaks else max(peaks)}


def _export(task, seen):
    """The names of the files of the operator profiler; of what a CPU did there are none."""
    if task.device != "cuda":
        return []
    names = ["--model-name", task.label, "--device-name", seen["device_name"] or task.device]
    for form, name in EXPORTS:
        of_model = names if form in ("profile", "manifest") else []
        run_command("export", os.path.join(task.folder, "recording"), "--format", form, *of_model, "-o",
                    os.path.join(task.folder, name))
    return [name for _, name in EXPORTS]


class Folder:
    """The output folder, which one run at a time has."""

    def __init__(self, path):
        os.makedirs(path, exist_ok=True)
        self.file = open(os.path.join(path, ".lock"), "w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"torsh: {path} is in use by another torsh workloads run")


def run_all(tasks, options, report):
    """Runs the tasks; report(task, result) as each ends. Returns the results in the order of the tasks."""
    runner = Runner(options)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs)
    try:
        futures = {pool.submit(runner.run, task): task for task in tasks}
        for future in concurrent.futures.as_completed(futures):
            report(futures[future], future.result())
        return {futures[future]: future.result() for future in futures}
    except BaseException:
        runner.end()
        for future in futures:
            future.cancel()
        raise
    finally:
        pool.shutdown()
