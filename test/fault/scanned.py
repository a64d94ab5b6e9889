#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A process that is stopped and read again and again while it runs at full speed: it computes what it computes without,
gets no signal, no call of it fails, and each verdict is right.
"""

import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import session_of, socket_of  # noqa: E402

REQUEST = struct.Struct("QIIII")
MAGIC, VERSION, JUDGED = 0x3171726873726F74, 1, 7

# Threads that allocate and hash, and one that reads what another process writes. Ends with its standard input.
SCRIPT = """
import hashlib, os, subprocess, sys, threading
def hashed(seed, rounds):
    value = seed.to_bytes(4, "big")
    for i in range(rounds):
        blocks = [bytearray(600 + (i * k) % 3000) for k in range(20)]
        blocks[7][:len(value)] = value
        value = hashlib.sha256(b"".join(blocks)).digest()
    return value.hex()
done, results = threading.Event(), [[] for _ in range(3)]
def work(seed):
    while not done.is_set():
        results[seed].append(hashed(seed, 200))
lines = subprocess.Popen(["yes", "a line"], stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]})
n_read = 0
def read():
    global n_read
    while not done.is_set():
        n_read += len(os.read(lines.stdout.fileno(), 4096))
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)] + [threading.Thread(target=read)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
done.set()
for thread in threads:
    thread.join()
lines.kill()
lines.wait()
assert n_read
print(all(value == hashed(seed, 200) for seed in range(3) for value in set(results[seed])), sum(map(len, results)))
"""


def scan(path, pid):
    """Requests a snapshot of judged blocks; returns the answer's result and its descriptors."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(path)
        client.send(REQUEST.pack(MAGIC, VERSION, JUDGED, 0, pid))
        answer, fds, _, _ = socket.recv_fds(client, 64, 2)
        for fd in fds:
            os.close(fd)
    return struct.unpack_from("QIi", answer)[2], len(fds)


def scans_change_nothing(n_scans):
    output = scratch()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], env=agent_environment(output), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as target:
        expect_equal(target.stdout.readline(), b"ready\n", "first line")
        path = socket_of(session_of(target.pid)["writer_pid"])
        for i in range(n_scans):
            expect_equal(scan(path, target.pid), (0, 2), f"scan {i}")
        judged = json.loads(torsh("leaks", "--now", target.pid, "--json"))
        out, error = target.communicate(b"", timeout=TIMEOUT_S)
        expect_equal((target.returncode, error), (0, b""), "status and stderr")
    same, n = out.decode().split()
    expect_equal(same, "True", "whether all hashes are right")
    print(f"note: {n} results while it was scanned")
    expect_equal(judged["reachability"], {"judged": True, "reason": None}, "whether the last scan judged")
    expect_equal((judged["by_class"]["lost"]["blocks"], judged["by_class"]["indirect"]["blocks"]), (0, 0), "what is lost")
    expect_equal(total_losses(output), 0, "lost events")


add_case("a_hundred_scans_change_nothing", scans_change_nothing, 100)
add_long_case("a_thousand_scans_change_nothing", scans_change_nothing, 1000)


# A child that shares its parent's objects and blocks, and only waits.
FORKED = """
import os, sys
kept = [[i] for i in range(100000)] + [bytearray(100000) for _ in range(100)]
if not os.fork():
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


def shared_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith(("Shared_Clean", "Shared_Dirty")))


@case
def what_forked_processes_share_stays_shared():
    with subprocess.Popen([sys.executable, "-c", FORKED], env=agent_environment(scratch()), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as target:
        child = int(target.stdout.readline())
        before = [shared_kib(pid) for pid in (target.pid, child)]
        assert min(before) > 20000, before
        for pid in target.pid, child:
            judged = json.loads(torsh("leaks", "--now", pid, "--json"))
            assert judged["reachability"]["judged"], judged["reachability"]
        after = [shared_kib(pid) for pid in (target.pid, child)]
        # They write to some of it themselves.
        assert all(now > then * 0.9 for now, then in zip(after, before)), f"{before} KiB shared before, {after} after it"
        target.communicate(timeout=TIMEOUT_S)
    expect_equal(target.returncode, 0, "status")


def total_losses(output):
    return read_report("report", output)["events"]["dropped"]


main()
