#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Clocks of hosts by exchanges of times between writers. Other hosts are simulated on this machine: their CLOCK_MONOTONIC by a time
namespace, whose offset is the kernel's, and their wall clock by a library in the writer. Truth is what was planted.
"""

import contextlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from ranks.clock_job import (NAMESPACE_S, SECRET, SHIFT_NS, below, dumped, environment, exchanges, free_port,  # noqa: E402
                             in_time_namespace, job, largest_error_ns, of_job, session, session_offset, shifted_agent, started_in)
from ranks.clock_place import REPLY, REQUEST, Place, key_of, packet, unpacked  # noqa: E402
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

# Waits until its standard input ends.
WAITS = [sys.executable, "-c", "import sys; sys.stdin.read()"]
READY = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
HOSTILE = 1_000_000


def clocks_of(*outputs):
    report = json.loads(torsh("ranks", *outputs, "--json"))
    expect_fits("ranks", report)
    return report, {rank["rank"]: rank["clock"] for rank in report["ranks"]}


@case
@needs("torch")
def a_planted_offset_is_found_by_probes():
    outputs = job(in_time_namespace(), SHIFT_NS)
    report, clocks = clocks_of(*outputs)
    print(clocks)
    expect_equal(clocks[0]["source"], "same clock", "of the first recording")
    expect_equal(clocks[1]["source"], "probes", "of the other one")
    limit_ns = largest_error_ns(outputs[1], time.monotonic_ns() + NAMESPACE_S * 10**9)
    assert abs(clocks[1]["offset_ns"] + SHIFT_NS) <= clocks[1]["error_ns"] <= limit_ns, (clocks, limit_ns)
    first, second = (session(output)["start_realtime_ns"] for output in outputs)
    assert abs(clocks[1]["offset_ns"] - (first - second + session_offset(outputs))) <= clocks[1]["error_ns"], clocks
    # Both count the ticks of one machine.
    assert abs(clocks[1]["drift_ppm"]) < 200, clocks
    assert report["collectives_compared"] > 0, report
    text = torsh("ranks", *outputs)
    assert "contradict" not in text and "probes" in text, text
    # Each exchange bounds the offset from both sides.
    assert len(exchanges(outputs[1])) > 3 and not exchanges(outputs[0])
    for sent, received, replied, returned in exchanges(outputs[1]):
        assert received - sent >= session_offset(outputs) >= replied - returned, (sent, received, replied, returned)


@case
@needs("torch")
def recordings_of_one_kernel_have_one_clock():
    """However wrong the wall clock is, and without any exchange."""
    outputs = job(shift_ns=SHIFT_NS, TORSH_PROFILER_CLOCK_PEERS="")
    _, clocks = clocks_of(*outputs)
    print(clocks)
    expect_equal(clocks[1]["source"], "same clock", "its source")
    assert clocks[1]["error_ns"] <= 2_000 and clocks[1]["drift_ppm"] == 0, clocks
    first, second = (session(output) for output in outputs)
    expect_equal(clocks[1]["offset_ns"], first["start_realtime_ns"] - first["start_monotonic_ns"]
                 - second["start_realtime_ns"] + second["start_monotonic_ns"], "offset, by the kernel")
    assert abs(clocks[1]["offset_ns"] + SHIFT_NS) < 50_000_000, clocks


@case
@needs("torch")
def what_collectives_contradict_is_not_used():
    """A place that lies about the time by a second knows the key: nobody leaves an all-reduce before the last has entered."""
    inside, outputs = in_time_namespace(), (scratch("first"), scratch("second"))
    begin = time.time_ns()
    places = [Place(SECRET, begin), Place(SECRET, begin, ahead_ns=10**9)]
    command = [torch_python(), "-W", "ignore", ROOT / "test/python/ranks/clock_ranks.py", 20, 0.05]
    port = free_port()
    # The same recording by its number, at two places with different times.
    envs = [dict(environment(output, places[rank].port), **{name: str(value) for name, value in of_job(rank, port).items()})
            for rank, output in enumerate(outputs)]
    with started(command, envs[0]) as first, started_in(inside, command, envs[1]) as second:
        expect_equal([first.wait(TIMEOUT_S), second.wait(TIMEOUT_S)], [0, 0], "status")
    for output in outputs:
        torsh("report", output)
    _, clocks = clocks_of(*outputs)
    print(clocks)
    expect_equal(clocks[1]["source"], "collectives", "its source")
    assert abs(clocks[1]["offset_ns"]) <= clocks[1]["error_ns"], clocks
    assert "1 clock: collectives contradict" in torsh("ranks", *outputs)


@case
def drift_and_unequal_delays_stay_within_the_bound():
    """Two recordings that only ever ask a third place, whose clock gains 50 ppm, and is far from one of them by half a way."""
    inside, outputs = in_time_namespace(), (scratch("first"), scratch("second"))
    begin = time.time_ns()
    near = Place(SECRET, begin, ahead_ns=3 * 10**9, drift=50e-6)
    far = Place(SECRET, begin, drift=50e-6, back_ns=4_000_000)
    far.begin_ns, far.ahead_ns = near.begin_ns, near.ahead_ns
    envs = [environment(output, place.port, RANK=rank, WORLD_SIZE=2) for rank, (output, place) in
            enumerate(zip(outputs, (near, far)))]
    envs[1]["LD_PRELOAD"] = str(shifted_agent(SHIFT_NS))
    with started(WAITS, envs[0], stdin=subprocess.PIPE) as first, \
            started_in(inside, WAITS, envs[1], stdin=subprocess.PIPE) as second:
        wait_until(lambda: min(near.answered, far.answered) > 60, "answers")
        first.stdin.close(), second.stdin.close()
        expect_equal([first.wait(TIMEOUT_S), second.wait(TIMEOUT_S)], [0, 0], "status")
    for output in outputs:
        torsh("report", output)
    _, clocks = clocks_of(*outputs)
    print(clocks)
    expect_equal(clocks[1]["source"], "probes", "its source")
    first, second = (session(output)["start_realtime_ns"] for output in outputs)
    truth = first - second + session_offset(outputs)
    # Half of the way back is what nobody can know.
    assert 2_000_000 < clocks[1]["error_ns"] < 40_000_000, clocks
    assert abs(clocks[1]["offset_ns"] - truth) <= clocks[1]["error_ns"], (clocks, truth)


def sockets(pid):
    """Of the internet, by the inodes that the kernel lists."""
    inodes = {line.split()[9] for kind in ("udp", "udp6", "tcp", "tcp6", "raw")
              for line in pathlib.Path(f"/proc/net/{kind}").read_text().splitlines()[1:]}
    return [link for link in links(pid) if link.startswith("socket:[") and link[8:-1] in inodes]


def links(pid):
    """What its descriptors are. A writer opens files for a moment."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(fd.readlink()))
    return found


def threads(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))


def writer_of(output):
    return wait_until(lambda: next((row["session"]["writer_pid"] for row in dumped(output) if "session" in row), None)
                      if recordings(output) else None, "a writer")


@case
def only_a_writer_that_is_asked_to_opens_a_socket():
    """And the program has none, and no thread, in any case."""
    output, port = scratch(), free_port()
    of_all = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": 0, "WORLD_SIZE": 4, "LOCAL_RANK": 0}
    cases = [({"TORSH_PROFILER_CLOCK_PEERS": ""}, 0), ({"TORSH_PROFILER_CLOCK_PEERS": "", **of_all, "LOCAL_WORLD_SIZE": 1}, 0),
             ({"TORSH_PROFILER_CLOCK_PEERS": "auto"}, 0), ({"TORSH_PROFILER_CLOCK_PEERS": "auto", **of_all, "LOCAL_WORLD_SIZE": 4}, 0),
             ({"TORSH_PROFILER_CLOCK_PEERS": "auto", **of_all, "LOCAL_WORLD_SIZE": 1}, 1), ({}, 1)]
    seen = []
    for variables, n in cases:
        output = scratch()
        env = environment(output, port, **variables)
        with started(READY, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            expect_equal(process.stdout.readline(), b"ready\n", "output")
            writer = writer_of(output)
            if n:
                wait_until(lambda: len(sockets(writer)) == n, f"a socket with {variables}")
                answer = asked(port, key_of(SECRET))
                assert answer and answer[0] == REPLY and answer[2] == session(output)["start_realtime_ns"], answer
            expect_equal(len(sockets(writer)), n, f"sockets of the writer with {variables}")
            seen.append((len(sockets(process.pid)), threads(process.pid), len(links(process.pid))))
            process.stdin.close()
            expect_equal(process.wait(TIMEOUT_S), 0, "status")
        report = torsh("report", output)
        assert "clocks of hosts" not in report, report
    with started(WAITS, clean_environment(), stdin=subprocess.PIPE) as process:
        expect_equal({one[:2] for one in seen}, {(0, threads(process.pid))}, "sockets and threads, as without the agent")
    expect_equal(len({one[2] for one in seen}), 1, "descriptors of the program")


def asked(port, key):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(5)
        one.sendto(packet(key, REQUEST, 99), ("127.0.0.1", port))
        data = one.recv(2048)
        expect_equal(len(data), 56, "bytes of a reply to 56 bytes")
        return unpacked(key, data)


def hostile_packets(key):
    """Noise, cut and long ones, of another key, replies, and one that was heard and comes again and again."""
    random.seed(17)
    heard, other = packet(key, REQUEST, 1234), packet(key_of("another"), REQUEST, 5)
    reply = packet(key, REPLY, 6, 7, 8, 9)
    noise = [random.randbytes(random.choice([0, 1, 55, 56, 57, 200, 1400])) for _ in range(200)]
    changed = [bytes(heard[:i]) + bytes([heard[i] ^ 1 << i % 8]) + heard[i + 1:] for i in range(56)]
    return [*noise, *(heard[:n] for n in range(56)), heard + b"x", other, reply, *changed], heard


def cpu_seconds(pid):
    """Of its threads, by the scheduler."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def resident_kib(pid):
    return int(next(line.split()[1] for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")))


@case
def a_million_hostile_packets_do_no_harm():
    output, port = scratch(), free_port()
    key = key_of(SECRET)
    packets, heard = hostile_packets(key)
    with started(WAITS, environment(output, port), stdin=subprocess.PIPE) as process, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
        writer = writer_of(output)
        wait_until(lambda: sockets(writer), "the place")
        asked(port, key)
        attacker.setblocking(False)
        attacker.connect(("127.0.0.1", port))
        rss, cpu, begin = resident_kib(writer), cpu_seconds(writer), time.monotonic()
        sent = bytes_sent = bytes_back = n_back = 0
        while sent < HOSTILE:
            for one in (*packets, heard):
                try:
                    bytes_sent += attacker.send(one)
                except BlockingIOError:
                    continue
                sent += 1
            try:
                while True:
                    bytes_back += len(attacker.recv(2048))
                    n_back += 1
            except BlockingIOError:
                pass
        seconds = time.monotonic() - begin
        cpu = cpu_seconds(writer) - cpu
        more = resident_kib(writer) - rss
        print(f"{sent} packets in {seconds:.1f} s: writer {cpu / seconds:.1%} of a core, {more} KiB more; {n_back} replies")
        # Only what was heard before is answered, with as many bytes.
        assert n_back <= sent / len(packets) + 1 and bytes_back == 56 * n_back, (n_back, bytes_back)
        assert cpu / seconds < 0.25, (cpu, seconds)
        assert more < 4096, more
        # It still answers who has the key: what is in the kernel's buffer comes first.
        attacker.close()
        wait_until(lambda: answers(port, key), "an answer")
        process.stdin.close()
        expect_equal(process.wait(TIMEOUT_S), 0, "status")
    check_counts(json.loads(torsh("report", output, "--json"))["events"])
    peer = [row["clock_peer"] for row in dumped(output) if "clock_peer" in row][-1]
    assert peer["refused"] > 1000 and peer["is_here"] and peer["replies"] > 0, peer
    expect_equal(exchanges(output), [], "exchanges")


def answers(port, key):
    try:
        return asked(port, key)
    except TimeoutError:
        return None


@case
def replies_that_nobody_asked_for_are_dropped():
    """A place with another key, and one that answers with other numbers, teach a writer nothing."""
    for place in (Place("another key", 1), Forger(SECRET, 1)):
        output = scratch()
        with started(WAITS, environment(output, place.port), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            wait_until(lambda: place.heard > 60, "requests")
            process.stdin.close()
            expect_equal(process.wait(TIMEOUT_S), 0, "status")
        report = torsh("report", output)
        assert f"clocks of hosts were not compared: 127.0.0.1:{place.port}" in " ".join(report.split()), report
        expect_equal(exchanges(output), [], "exchanges")


class Forger(Place):
    """Has the key, and answers with a nonce that was never sent, with one from before, and twice."""

    def run(self):
        while True:
            data, sender = self.socket.recvfrom(2048)
            _, nonce, *_ = unpacked(self.key, data)
            self.heard += 1
            for other in (nonce ^ 1, 0):
                self.socket.sendto(packet(self.key, REPLY, other, self.clock, 5, 6), sender)
            self.socket.sendto(packet(self.key, REQUEST, nonce), sender)


TROUBLES = {
    "a_name_that_does_not_resolve": ("nowhere.invalid", (), "nowhere.invalid: "),
    "a_network_that_is_not_there": ("192.0.2.1:9", ("unshare", "--net"), "192.0.2.1:9: Network is unreachable"),
    "what_is_no_list": ("a:b", (), "TORSH_PROFILER_CLOCK_PEERS takes auto, or a comma list"),
}


def expect_trouble(peers, inside, sentence):
    """One sentence on standard error, and in the report; the recording is whole, and the program as it is."""
    if inside:
        need_root()
    output = scratch()
    env = environment(output, 1)
    env.update(TORSH_PROFILER_CLOCK_PEERS=peers, TORSH_PROFILER_SUMMARY="1")
    errors = scratch("errors") / "stderr"
    with open(errors, "w") as file:
        program = "import sys, time; time.sleep(0.5); print('as it is'); sys.exit(3)"
        result = subprocess.run([*below(inside, env), sys.executable, "-c", program], env=clean_environment(), stdout=subprocess.PIPE,
                                stderr=file, timeout=TIMEOUT_S)
    expect_equal((result.returncode, result.stdout), (3, b"as it is\n"), "status and output")
    text = " ".join(torsh("report", output).split())
    expect_equal(text.count("clocks of hosts were not compared"), 1, f"sentences in the report: {text}")
    assert f"clocks of hosts were not compared: {sentence}" in text, text
    report = json.loads(torsh("report", output, "--json"))
    expect_equal(errors.read_text().count("clocks of hosts were not compared"), 1, f"sentences on stderr:\n{errors.read_text()}")
    check_counts(report["events"])


for _name, _arguments in TROUBLES.items():
    add_case(f"{_name}_is_said_once", expect_trouble, *_arguments)


@case
def a_port_that_another_program_has_is_said_once():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        output = scratch()
        port = other.getsockname()[1]
        with started(WAITS, environment(output, port), stdin=subprocess.PIPE) as process:
            other.settimeout(30)
            for _ in range(60):
                expect_equal(len(other.recv(2048)), 56, "bytes of a request")
            process.stdin.close()
            expect_equal(process.wait(TIMEOUT_S), 0, "status")
        report = " ".join(torsh("report", output).split())
        assert f"127.0.0.1:{port} is taken by another program, which doesn't answer" in report, report


main()
