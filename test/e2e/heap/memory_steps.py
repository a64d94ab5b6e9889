#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Leaks and allocation sites at the peak have the steps of their allocation, against a program with
known steps."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402

PROGRAM = PROGRAMS / "held_by_step"
N_STEPS, PEAK, FIRST = 12, 7, 10
LAST = FIRST + N_STEPS - 1


def steps_of(entries, function):
    [entry] = entries_through(entries, function)
    return entry["first_step"], entry["last_step"]


def expect_leaks(output, n_steps=N_STEPS):
    found = leaks(output)["leaks"]
    expect_equal(steps_of(found, "make_weights"), (None, None), "steps of what was there before")
    expect_equal(steps_of(found, "write_history"), (FIRST, FIRST + n_steps - 1), "steps of what every step leaves")
    expect_equal(steps_of(found, "make_mistake"), (FIRST + 3, FIRST + 3), "the step of what one step left")


def expect_peak(holders):
    at_peak = FIRST + PEAK
    expect_equal(steps_of(holders, "make_peak"), (at_peak, at_peak), "the step of the peak")
    expect_equal(steps_of(holders, "make_activations"), (at_peak, at_peak), "the step of what is freed in the next one")
    expect_equal(steps_of(holders, "make_weights"), (None, None), "steps of what was there before")
    # Steps after the peak went on with it.
    expect_equal(steps_of(holders, "write_history"), (FIRST, at_peak), "steps of what had been left until then")


@case
def leaks_report_their_steps():
    output = record([PROGRAM, N_STEPS, PEAK])[1]
    expect_leaks(output)
    text = torsh("leaks", output)
    for words in (f"in steps {FIRST} to {LAST}", f"in step {FIRST + 3}"):
        assert words in text, f"'{words}' is not in\n{text}"


SOURCE = ROOT / "test/programs/heap/held_by_step.c"
MANY = 40


def line_of(text):
    """Where the source has it, once."""
    [number] = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return f"{SOURCE.relative_to(ROOT)}:{number}"


@case
def checks_name_the_line_behind_a_broken_budget():
    """What the program writes down in its source: 100 bytes a step, 50000 before, 1000000 at the peak."""
    output = record([PROGRAM, MANY, PEAK])[1]
    lines = {"growth": f"write_history {line_of('malloc(100)')}, 100 B a step",
             "leak": f"make_weights {line_of('malloc(50000)')}, 48.8 KiB",
             "peak": f"make_peak {line_of('malloc(1000000)')}, 977 KiB"}
    for budget, line in lines.items():
        text = run([TORSH, "check", output, f"--max-{budget}", "50"], cwd=ROOT).stdout.decode()
        assert f"mostly {line}\n" in text, (line, text)
        assert "mostly" not in torsh("check", output, f"--max-{budget}", "2M"), budget
    report = json.loads(torsh("check", output, "--max-growth", "100", "--json"))
    expect_equal([check["value"] for check in report["checks"]], [100], "growth that just fits")
    torsh("check", output, "--max-growth", "99", expect=1)


@case
def rows_of_leaks_show_growth_and_place():
    output = record([PROGRAM, MANY, PEAK])[1]
    rows = {}
    for line in run([TORSH, "leaks", output], cwd=ROOT).stdout.decode().splitlines():
        cells = line.split()
        if cells and cells[0].isdigit() and "%" in line:
            growth = next((" ".join(cells[i - 1:i + 1]) for i, cell in enumerate(cells) if cell == "B/step"), None)
            rows[next(cell for cell in cells if "held_by_step.c" in cell)] = (cells[4], growth)
    expect_equal(rows, {line_of("malloc(50000)"): ("1", None), line_of("malloc(100)"): (str(MANY), "100 B/step"),
                        line_of("malloc(77)"): ("1", None)}, "blocks and growth by line")


@case
def holders_at_the_peak_report_their_steps():
    expect_peak(peak(record([PROGRAM, N_STEPS, PEAK])[1])["holders"])


@case
def also_at_the_peak_of_several_processes():
    command = ["bash", "-c", f"{shell_words(PROGRAM, N_STEPS, PEAK)}; true"]
    report = peak(record(command)[1])
    assert len(report["processes"]) > 1, report["processes"]
    expect_peak(report["holders"])


@case
def a_schedule_changes_nothing():
    output = record([PROGRAM, N_STEPS, PEAK], env={"TORSH_PROFILER_SCHEDULE": "skip:100,active:1"})[1]
    expect_leaks(output)
    expect_peak(peak(output)["holders"])


@case
def many_steps_are_distinguished_by_strides():
    n_steps = 20000
    found = leaks(record([PROGRAM, n_steps, PEAK])[1])["leaks"]
    first, last = steps_of(found, "write_history")
    # 8192 marks at most: every fourth step has one.
    expect_equal((first, last), (FIRST, FIRST + (n_steps - 1) // 4 * 4), "steps of what every step leaves")


TRAINING = """
import torch

kept = []
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.Adam(model.parameters())
for i in range(6):
    loss = model(torch.ones(8, 256)).square().mean()
    if i == 4:
        kept.append(torch.ones(100_000))  # the line that step 4 leaves
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # state of Adam
peak = torch.ones(3_000_000)
"""


@case
@needs("torch")
def an_optimizer_reports_steps():
    script = scratch("script") / "train.py"
    script.write_text(TRAINING)
    result, output = record([torch_python(), script])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    lines = {number: line for number, line in enumerate(TRAINING.splitlines(), 1)}

    def steps_at(words):
        [number] = [number for number, line in lines.items() if words in line]
        entries = [entry for entry in peak(output, "--stacks", "python")["holders"] if entry["bytes"] >= 100_000
                   and (str(script), number) in [(frame.get("file"), frame.get("line")) for frame in entry["stack"]]]
        assert entries, f"nothing held by line {number}"
        return {(entry["first_step"], entry["last_step"]) for entry in entries}

    expect_equal(steps_at("the line that step 4 leaves"), {(4, 4)}, "the step of a tensor")
    expect_equal(steps_at("torch.nn.Linear"), {(None, None)}, "steps of the model")
    expect_equal(steps_at("state of Adam"), {(0, 0)}, "the step of the optimizer's state")


main()
