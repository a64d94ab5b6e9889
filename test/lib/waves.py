# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A recording of threads that start in waves, with checkpoints of the recording between them, and what the threads were."""

import subprocess

from harness import PROGRAMS, agent_environment, expect_equal, recordings, scratch, started, wait_until

WAVES, THREADS, RANGES = 4, 6, 20


def _size(output):
    return sum(path.stat().st_size for path in recordings(output))


def _read_wave(pipe):
    """(tid, allocations) of each thread of a wave."""
    return [tuple(map(int, line.split())) for line in iter(pipe.readline, "\n")]


def recorded_waves():
    """The folder of the recording, and of each thread in the order of their waves its tid and its allocations."""
    output, truth = scratch(), []
    env = agent_environment(output, TORSH_PROFILER_RECORD="full")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with started([PROGRAMS / "waves", THREADS], env, **pipes) as process:
        for _ in range(WAVES):
            before = _size(output)
            process.stdin.write("\n")
            truth += _read_wave(process.stdout)
            wait_until(lambda: _size(output) > before, "a checkpoint after the wave")
        process.stdin.close()
        expect_equal(process.wait(), 0, "status")
    expect_equal(len(truth), WAVES * THREADS, "threads")
    return output, truth


def expect_own_tids(ranges, what):
    """Pairs of a range's name and the tid that an export has for it: the name contains the expected
    one."""
    wrong = [(name, tid) for name, tid in ranges if name != f"tid {tid}"]
    assert not wrong, f"{what}: {len(wrong)} of {len(ranges)} ranges are recorded on another thread, such as {wrong[0]}"
    expect_equal(len(ranges), WAVES * THREADS * RANGES, f"{what}: ranges")
