#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
How long tensors that a training keeps have been alive, and which operator read them last and when: against a training that
keeps what it read in known steps, with operators that it chose. The program is as without us.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import torch_python  # noqa: E402
from harness import *  # noqa: E402,F403
from live_targets import Target  # noqa: E402
from schema import expect_fits  # noqa: E402

STEPS = 30
# By the bytes of each tensor that is kept: in which step it is made and read last, and by what.
KEPT = {40000: (2, 2, "aten::atan"), 44000: (4, 20, "aten::logical_not"), 48000: (5, 9, "aten::cat"), 52000: (6, 6, None)}

TRAINING = f"""
import json, sys, torch
net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def unread():
    # Only its view is read, without a name of its own: torch.empty reads nothing.
    return torch.empty(13000)
def learn(step):
    if step == 2:
        kept["read at once"] = torch.full((10000,), 2.0)
        kept["read at once"].atan()
    if step == 4:
        kept["read for long"] = torch.full((11000,), 2.0)
    if 4 <= step <= 20 and step % 2 == 0:
        # A view has the same memory.
        kept["read for long"].view(100, 110)[3:7].logical_not()
    if step == 5:
        kept["read in lists"] = torch.full((12000,), 2.0)
    if step in (7, 9):
        # Among more than have a text.
        torch.cat([torch.ones(3)] * 60 + [kept["read in lists"]])
    if step == 6:
        kept["never read"] = unread()
    optimizer.zero_grad()
    net(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
kept = {{}}
for step in range({STEPS}):
    learn(step)
print(json.dumps([t.sum().item() for t in ()]), flush=True)
sys.stdin.read(1)
"""


def number_of(report, size):
    found = [i + 1 for i, row in enumerate(report["leaks"]) if (row["blocks"], row["bytes"]) == (1, size)]
    expect_equal(len(found), 1, f"rows of {size} bytes")
    return str(found[0])


def now(target, *arguments):
    return json.loads(torsh("leaks", "--now", target.pid, "--json", "--limit", "0", *arguments))


def way_to(target, report, size):
    way = now(target, "--why", number_of(report, size))
    expect_fits("leaks-why", way)
    return way


def program():
    path = scratch("program") / "train.py"
    path.write_text(TRAINING)
    return path


@case
@needs("torch")
def the_last_operator_and_its_step_are_shown():
    with Target([torch_python(), program()]) as target:
        target.process.stdout.readline()
        report = now(target)
        for size, (made, read, operator) in KEPT.items():
            way = way_to(target, report, size)
            expect_equal(way["alive_steps"], STEPS - made, f"steps that the block of {size} is alive")
            if not operator:
                expect_equal((way["last_read"], way["last_read_reason"]), (None, "no recorded operator read it"), "never read")
                continue
            last = way["last_read"]
            expect_equal((last["operator"], last["step"]), (operator, read), f"last read of {size} bytes")
            assert 0 < last["ns_ago"] <= way["alive_ns"], way
        text = torsh("leaks", "--now", target.pid, "--limit", "0", "--why", number_of(report, 44000))
        assert f"Alive for {STEPS - 4} steps, last read by aten::logical_not in step 20.\n" in text, text
        target.process.stdin.write(b"x")
        target.end()


@case
@long
@needs("torch")
def without_inputs_it_is_not_known():
    with Target([torch_python(), program()], TORSH_PROFILER_RECORD_SHAPES=0) as target:
        target.process.stdout.readline()
        way = way_to(target, now(target), 40000)
        reason = "inputs of operators were not recorded, or not all"
        expect_equal((way["last_read"], way["last_read_reason"]), (None, reason), "without inputs")
        target.process.stdin.write(b"x")
        target.end()


@case
def what_is_no_tensor_has_none():
    script = "import sys\nkept = [bytearray(50000) for _ in range(30)]\nprint(flush=True)\nsys.stdin.read(1)"
    with Target([sys.executable, "-c", script]) as target:
        target.process.stdout.readline()
        way = now(target, "--why", "1")
        expect_fits("leaks-why", way)
        expect_equal((way["last_read"], way["last_read_reason"]), (None, "it is no memory of a tensor"), "use")
        expect_equal(way["alive_steps"], None, "steps")
        target.process.stdin.write(b"x")
        target.end()


main()
