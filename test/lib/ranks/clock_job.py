# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Jobs whose second rank is on a host of its own, which is simulated on this machine: its CLOCK_MONOTONIC by a time namespace, whose
offset is the kernel's, and its wall clock by a library in the writer.
"""

import json
import pathlib
import random
import socket
import subprocess

from harness import *  # noqa: F403
from torch_python import torch_python

SECRET = "of the test"
SHIFT_NS = 11_560_000_000  # the raw offset of simpler #2099
NAMESPACE_S = 11_560


def free_port():
    """A port that nobody has, of UDP and of TCP, below those that the kernel gives to whoever asks for any."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            try:
                udp.bind(("127.0.0.1", port))
                tcp.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def environment(output, port, **variables):
    return agent_environment(output, **{"TORSH_PROFILER_REACHABILITY": "0", "TORSH_PROFILER_CLOCK_PEERS": f"127.0.0.1:{port}",
                                        "TORSH_PROFILER_CLOCK_KEY": SECRET, **variables})


def of_job(rank, port):
    return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "OMP_NUM_THREADS": 1, "TORSH_PROFILER_ACTIVITIES": "torch,python", "TORSH_PROFILER_WITH_STACK": 0}


def shifted_agent(shift_ns):
    """An agent beside which lies a writer whose wall clock is ahead."""
    folder = scratch("shifted")
    (folder / "libtorshagent.so").symlink_to(pathlib.Path(AGENT).resolve())
    writer = folder / "torsh-writer"
    writer.write_text(f"#!/bin/sh\nSHIFT_NS={shift_ns} LD_PRELOAD={PROGRAMS / 'libshifted_clock.so'} "
                      f"exec {BUILD.resolve() / 'torsh-writer'} \"$@\"\n")
    writer.chmod(0o755)
    return folder / "libtorshagent.so"


def in_time_namespace():
    need_root()
    need_command("unshare")
    inside = ["unshare", "--time", "--monotonic", str(NAMESPACE_S), "--fork"]
    if run([*inside, "true"]).returncode:
        raise Skip("no time namespace can be made here")
    return inside


def below(inside, env):
    """What begins a session inside of a namespace: unshare itself has no agent."""
    own = {name: value for name, value in env.items() if name not in clean_environment()}
    return [*inside, "env", *(f"{name}={value}" for name, value in own.items())]


def started_in(inside, command, env, **options):
    return started([*below(inside, env), *command], clean_environment(), **options)


def dumped(output):
    return [json.loads(line) for path in recordings(output) for line in torsh("dump", path).splitlines()]


def exchanges(output):
    """sent, received, replied and returned of all exchanges in a recording."""
    found = []
    for row in dumped(output):
        one, sent = row.get("clock_exchanges"), 0
        for i in range(len(one["sent_step"]) if one else 0):
            sent += one["sent_step"][i]
            received = sent + one["received_after"][i]
            found.append((sent, received, received + one["replied_after"][i], sent + one["returned_after"][i]))
    return found


def session(output):
    return next(row["session"] for row in dumped(output) if "session" in row)


def largest_error_ns(output, end_ns):
    """What the slowest exchange leaves open, and a drift of 1 in 1,000 until that time of its clock: on a busy machine that is more."""
    ways = [(returned - sent) - (replied - received) for sent, received, replied, returned in exchanges(output)]
    return max(ways) + (end_ns - session(output)["start_monotonic_ns"]) // 1000


def session_offset(outputs):
    """Of times in the first recording less those in the second, by the kernel: the same clock, less the namespace's offset."""
    first, second = (session(output)["start_monotonic_ns"] for output in outputs)
    return second - NAMESPACE_S * 10**9 - first


def job(inside=(), shift_ns=0, steps=40, stamps=None, **variables):
    """
    A job of two ranks, the second one on a host of its own. Returns the folders of recordings. stamps: a folder for what the ranks
    say themselves.
    """
    outputs, port = (scratch("first"), scratch("second")), free_port()
    command = [torch_python(), "-W", "ignore", ROOT / "test/python/ranks/clock_ranks.py", steps, 0.05, *([stamps] if stamps else [])]
    env = [environment(output, port, **of_job(rank, port), **variables) for rank, output in enumerate(outputs)]
    env[1]["LD_PRELOAD"] = str(shifted_agent(shift_ns))
    with started(command, env[0], stderr=subprocess.PIPE) as first, \
            started_in(inside, command, env[1], stderr=subprocess.PIPE) as second:
        for process in (first, second):
            _, errors = process.communicate(timeout=TIMEOUT_S)
            expect_equal(process.returncode, 0, f"status\n{errors.decode()}\n")
    for output in outputs:
        torsh("report", output)
    return outputs
