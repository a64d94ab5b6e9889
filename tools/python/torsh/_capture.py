# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calls a function as the steps of a recording: some that warm up, then some that are measured."""

import sys
import time


class Captured:
    """What capture measured: the last call's result, and nanoseconds of each measured call, with what devices still did."""

    __slots__ = ("output", "durations_ns", "first_step")

    def __init__(self, output: object, durations_ns: "list[int]", first_step: int) -> None:
        self.output, self.durations_ns, self.first_step = output, durations_ns, first_step

    def __repr__(self) -> str:
        return f"Captured(durations_ns={self.durations_ns!r}, first_step={self.first_step!r})"


def capture(function: "object", *arguments: object, warmup_iters: int = 2, measure_iters: int = 1, name: str = "capture",
            **named: object) -> Captured:
    """
    Call function(*arguments, **named) warmup_iters times, then measure_iters times within a range of that name, each call as a
    step with its number, from 0. Returns a Captured.

    `torsh steps --region capture` and `torsh ops --region capture` then show the measured calls alone. After each call it
    waits for the device, if the program has imported PyTorch and CUDA is in use. A step begins after the last call, so that
    this one ends there. Without the agent it calls and measures the same.
    """
    import torsh

    if warmup_iters < 0 or measure_iters < 1:
        raise ValueError("capture needs 0 or more warmup_iters and 1 or more measure_iters")
    for number in _count(0, warmup_iters):
        _call(torsh.step, number, function, arguments, named)
    durations_ns = []
    with torsh.range(name):
        for number in _count(warmup_iters, warmup_iters + measure_iters):
            output, duration_ns = _call(torsh.step, number, function, arguments, named)
            durations_ns.append(duration_ns)
    torsh.step(warmup_iters + measure_iters)
    return Captured(output, durations_ns, warmup_iters)


def _count(first, end):
    return range(first, end)


def _call(step, number, function, arguments, named):
    step(number)
    begin_ns = time.perf_counter_ns()
    output = function(*arguments, **named)
    _synchronize()
    return output, time.perf_counter_ns() - begin_ns


def _synchronize():
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
