#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Steps of programs that only infer: forwards in bursts, tokens of a transformer, and programs without steps."""

import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from torch_python import OPERATORS_ONLY, TORCH, torch_python  # noqa: E402

SCRIPT = ROOT / "test/python/inference/inference.py"
BURSTS, FORWARDS = 3, 40
PAUSE_NS = 150_000_000
WITHOUT_MODULES = {"TORSH_PROFILER_WITH_MODULES": "0"}


def recorded(what, *numbers, **variables):
    """The recording of the program, and the time that it says it took."""
    def make(folder):
        result, output = record([torch_python(), SCRIPT, what, *numbers], folder / "out", env={**OPERATORS_ONLY, **variables})
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
        return str(output), int(result.stdout)
    return once("-".join(["inference", what, *map(str, numbers), *variables, TORCH]), make)


def steps_of(output):
    report = json.loads(torsh("steps", output, "--json", "--limit", "0"))
    expect_fits("steps", report)
    return report


def expect_bursts(what, certainty, **variables):
    """120 forwards in three bursts are 120 steps of three bursts, and neither the pauses nor the end are in one."""
    output, busy_ns = recorded(what, **variables)
    report = steps_of(output)
    steps = report["steps"]
    expect_equal(report["rule"], "period", "rule")
    expect_equal({step["kind"] for step in steps}, {None}, "kinds")
    # A machine that is busy makes pauses of its own, which end a burst as well: shorter ones than the program's.
    lengths, median_ns = [0], sorted(step["duration_ns"] for step in steps)[len(steps) // 2]
    for before, after in zip([None, *steps], steps):
        if before:
            gap_ns = after["start_ns"] - before["start_ns"] - before["duration_ns"]
            expect_equal(after["burst"] - before["burst"] in ((1,) if gap_ns >= PAUSE_NS else (0, 1)), True, (before, after))
            assert gap_ns >= (3 * median_ns if after["burst"] != before["burst"] else 0), (before, after)
            lengths += [0] * (gap_ns >= PAUSE_NS)
        lengths[-1] += 1
    expect_equal(lengths, [FORWARDS] * BURSTS, "steps between the program's pauses")
    assert sum(step["duration_ns"] for step in steps) <= busy_ns, (steps, busy_ns)
    low, high = certainty
    assert low <= report["certainty"] <= high, report["certainty"]
    return output, report


@case
@long
def forwards_in_bursts_are_steps_each():
    output, report = expect_bursts("bursts", (.9, 1))
    expect_equal({step["calls"] for step in report["steps"]}, {report["steps"][0]["calls"]}, "operators of each step")
    text = torsh("steps", output)
    n_bursts = report["steps"][-1]["burst"] + 1
    for words in ("120 steps", "almost certain (certainty", f"in {n_bursts} bursts"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
@long
def also_without_modules():
    expect_bursts("bursts", (.4, .75), **WITHOUT_MODULES)


@case
def models_called_in_turn_are_one_step():
    expect_bursts("stages", (.8, 1))


@case
def equal_layers_are_no_steps():
    expect_bursts("layers", (.9, 1))


@case
@long
def equal_layers_without_modules_are_a_guess():
    """Nothing says which of the 3600 equal layers belong together: the certainty is low."""
    output, _ = recorded("layers", **WITHOUT_MODULES)
    report = steps_of(output)
    assert report["certainty"] <= .25, report["certainty"]
    assert "hardly more than a guess" in torsh("steps", output)


def expect_tokens(output, calls, tokens):
    """Of each call the first token is made from the prompt, in which its forward reads all tokens but one of it."""
    report = steps_of(output)
    expect_equal(report["rule"], "period", "rule")
    expect_equal([step["kind"] for step in report["steps"]], (["prefill"] + (tokens - 1) * ["decode"]) * calls, "kinds")
    prompts = {step["flops"] for step in report["steps"] if step["kind"] == "prefill"}
    others = {step["flops"] for step in report["steps"] if step["kind"] == "decode"}
    assert min(prompts) > 8 * max(others), (prompts, others)  # a prompt of twelve tokens
    return report


@case
def tokens_are_steps_of_prompts_and_decoding():
    output, busy_ns = recorded("generate")
    report = expect_tokens(output, 3, 40)
    assert sum(step["duration_ns"] for step in report["steps"]) <= busy_ns, (report["steps"], busy_ns)
    assert report["certainty"] >= .6, report["certainty"]
    text = torsh("steps", output)
    for words in ("120 steps", "3 of prefill, median ", "117 of decode, median "):
        assert words in text, f"'{words}' is not in\n{text}"


@case
@long
def tokens_without_modules():
    expect_tokens(recorded("generate", **WITHOUT_MODULES)[0], 3, 40)


@case
@long
def short_answers_have_as_many_prompts():
    expect_tokens(recorded("generate", 12, 3)[0], 12, 3)


@case
def without_inputs_tokens_have_no_kind():
    report = steps_of(recorded("generate", TORSH_PROFILER_RECORD_SHAPES="0")[0])
    expect_equal([step["kind"] for step in report["steps"]], 120 * [None], "kinds")


@case
@long
def without_a_cache_each_token_is_a_forward():
    report = steps_of(recorded("recompute")[0])
    expect_equal([step["kind"] for step in report["steps"]], 120 * [None], "kinds")


@case
def what_runs_once_has_no_steps():
    for variables in ({}, WITHOUT_MODULES):
        report = steps_of(recorded("once", **variables)[0])
        expect_equal((report["rule"], report["certainty"], report["steps"]), ("none", None, []), "steps")


@case
def readers_of_steps_take_them():
    """Operators by step, a choice of steps and exports have the same steps."""
    output, _ = recorded("bursts")
    steps = steps_of(output)["steps"]
    calls = {row["step"]: row["calls"] for row in read_report("ops", output, "--group", "step", "--limit", "0")["ops"]}
    del calls[None]
    expect_equal(calls, {step["index"]: step["calls"] for step in steps}, "operators by step")
    chosen = read_report("steps", output, "--steps", "39-41")["steps"]
    expect_equal([(step["index"], step["burst"]) for step in chosen], [(39, 0), (40, 1), (41, 1)], "chosen steps")
    path = scratch("database") / "t.sqlite"
    torsh("export", "--format", "sqlite", "-o", path, output)
    rows = sqlite3.connect(path).execute("select number, start_ns, end_ns, rule from steps order by number").fetchall()
    expect_equal(rows, [(step["index"], step["start_ns"], step["start_ns"] + step["duration_ns"], "period") for step in steps],
                 "rows of steps")


WORKERS = """
import torch
class Noise(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.rand(64, 64).mul(2).sub(1).clamp(0).sum(0)
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(Noise(), batch_size=4, num_workers=2):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


@case
def workers_of_a_loader_have_no_steps():
    """What they repeat are samples of another process's step: no finding is about their own."""
    result, output = record([torch_python(), "-c", WORKERS], env=OPERATORS_ONLY)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    # Whoever loads PyTorch may start compilers and ldconfig.
    processes = {process["pid"] for process in read_report("report", output)["processes"] if "python" in process["program"]}
    expect_equal(len(processes), 3, "processes of Python")
    report = steps_of(output)
    training = {step["pid"] for step in report["steps"]}
    expect_equal((report["rule"], len(report["steps"]), len(training)), ("optimizer", 16, 1), "rule, steps, processes")
    for pid in processes - training:
        of_worker = json.loads(torsh("steps", output, "--json", "--pid", pid))
        expect_equal((of_worker["rule"], of_worker["steps"]), ("none", []), "steps of a worker")
    about = {finding["where"]["pid"] for finding in read_report("report", output)["inefficiencies"]}
    assert about <= training | {None}, (about, training)


main()
