# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A service under load: redis-server on loopback with redis-benchmark, one server for each way to run it, all there at once
and idle but for the one that is loaded. Turns are short, so that what else happens to the machine meets all of them.
"""

import contextlib
import csv
import ctypes
import shutil
import signal
import socket
import statistics
import subprocess
import time

from results import table
from runs import BARE, NOOP_MODE, OURS, SAMPLED, WORK, Mode, Options, Program, progress, scaled, wait_for_writers, writers

MODES = (BARE, NOOP_MODE, SAMPLED, OURS)
# name, redis-benchmark's options, requests a turn
LOADS = (("SET", ["-t", "set"], 60_000), ("GET", ["-t", "get"], 60_000),
         ("SET, 16 in a pipeline", ["-t", "set", "-P", "16"], 400_000))
JUDGED = ("SET", "GET")
CLIENTS, KEYS, VALUE_BYTES = 50, 100_000, 64
TURNS_A_ROUND = 3
LIMIT_PERCENT = 1
START_S, END_S, LOAD_S = 30, 30, 120
PR_SET_PDEATHSIG = 1


class Server:
    """A redis-server in one mode, with its writer's pid."""

    def __init__(self, mode, folder):
        folder.mkdir(parents=True)
        self.port, before = free_port(), set(writers())
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
                   "--daemonize", "no", "--dir", str(folder)]
        with open(folder / "output", "w") as output:
            self.process = subprocess.Popen(command, env=mode.environment(Program("redis-server", command)), stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, preexec_fn=end_with_parent)
        try:
            self.wait_until_ready()
            self.writer = next(iter(set(writers()) - before), None)
        except BaseException:
            self.end()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + START_S
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
            time.sleep(0.01)
        raise SystemExit("redis-server did not start")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_s(self):
        """Of the server so far, and of its writer."""
        return cpu_of_process_s(self.process.pid), cpu_of_process_s(self.writer) if self.writer else 0


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def cpu_of_process_s(pid):
    """All its threads: CPUCLOCK_SCHED of the process, as clock_getcpuclockid gives it."""
    return time.clock_gettime((~pid << 3) | 2)


def load(server, options, n):
    """Requests a second, p99 in ms, µs of CPU time a request of the server, and of its writer."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port), "-c", str(CLIENTS), "-n", str(n), "-r", str(KEYS),
               "-d", str(VALUE_BYTES), *options, "--csv"]
    before = server.cpu_s()
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=LOAD_S).stdout
    spent = [1e6 * (now - then) / n for then, now in zip(before, server.cpu_s())]
    row = next(csv.DictReader(printed.splitlines()))
    return float(row["rps"]), float(row["p99_latency_ms"]), *spent


def measure(machine):
    """{load: {mode: [(requests/s, p99 ms, server's µs, writer's µs) of each turn]}}; empty without redis."""
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        progress("no redis-server with redis-benchmark: no service is measured")
        return {}
    shutil.rmtree(WORK, ignore_errors=True)
    found = {name: {mode: [] for mode in MODES} for name, _, _ in LOADS}
    with contextlib.ExitStack() as ends:
        ends.callback(wait_for_writers)
        servers = []
        for i, name in enumerate(MODES):
            server = Server(Mode(name, machine), WORK / f"redis-{i}")
            ends.callback(server.end)
            servers.append((name, server))
        for turn in range(-1, TURNS_A_ROUND * Options.rounds):
            # Another one is the first of each turn. The turn before the first fills the servers.
            for mode, server in servers[turn % len(servers):] + servers[:turn % len(servers)]:
                for name, options, n in LOADS:
                    figures = load(server, options, scaled(n))
                    if turn >= 0:
                        found[name][mode].append(figures)
            progress(f"service: turn {turn + 1} of {TURNS_A_ROUND * Options.rounds}")
    return found


# ---- what is written --------------------------------------------------------------------------------------------------

def change_percent(turns, mode, figure):
    """Median over the turns of what a figure has more than that of the bare server in the same turn."""
    pairs = zip(turns[mode], turns[BARE])
    return statistics.median(100 * (ours[figure] / bare[figure] - 1) for ours, bare in pairs)


def section(found, verdicts):
    for name in JUDGED:
        turns = found.get(name)
        for words, figure, sign in (("requests a second", 0, -1), ("p99 latency", 1, 1), ("CPU time of the server", 2, 1)):
            value = sign * change_percent(turns, SAMPLED, figure) if turns else None
            verdicts.at_most(f"redis, {name}, with HEAP=sampled: {words}, {'lost' if sign < 0 else 'added'}", LIMIT_PERCENT, value,
                             "%", "{:+.1f}")
    if not found:
        return []
    rows = []
    for name, turns in found.items():
        for mode, figures in turns.items():
            rate, p99, server, writer = (statistics.median(of) for of in zip(*figures))
            changes = [change_percent(turns, mode, figure) for figure in range(3)]
            rows.append([name, mode, f"{rate:,.0f}", f"{changes[0]:+.1f} %", f"{p99:.3f}", f"{changes[1]:+.1f} %", f"{server:.2f}",
                         f"{changes[2]:+.1f} %", f"{writer:.2f}"])
    heading = ["load", "", "requests/s", "change", "p99 ms", "change of p99", "server's CPU µs a request", "change of that",
               "writer's CPU µs a request"]
    return ["## A service under load: redis-server with redis-benchmark on loopback", "",
            f"{CLIENTS} clients. Medians; changes are medians of those within each turn, from the bare server.", "", *table(heading, rows)]


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
