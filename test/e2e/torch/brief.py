#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The brief of slow programs names what slows them, at its line: each is built to have one cure. What the brief says in numbers
is what the program's own clock says, or the report.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from schema import expect_fits  # noqa: E402

BYTES_MAX = 6144
TRAINING = """
import gc, json, sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept, waited, whole = [], 0, 0
{setup}
def load(step):
    {load}
    return torch.ones(32, 256), torch.zeros(32, dtype=torch.long)
for step in range({steps}):
    begin = time.perf_counter()
    optimizer.zero_grad()
    x, y = load(step)
    loaded = time.perf_counter()
    {work}
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step:
        waited, whole = waited + loaded - begin, whole + time.perf_counter() - begin
print(json.dumps([waited, whole]))
"""
# What slows a training, and the rule whose cure it is.
SLOW = {
    "it_waits_between_operators": ({"load": "time.sleep(0.03)"}, "step_waits"),
    "it_converts_types": ({"setup": "half = torch.ones(8000000, dtype=torch.float16)", "work": "half.float(); half.float()"}, "dtype_copies"),
    "it_collects_garbage": ({"setup": "kept = [[i] for i in range(800000)]", "work": "gc.collect()"}, "gc_pauses"),
    "it_keeps_memory": ({"work": "kept.append(bytearray(200000))", "steps": 40}, "growth"),
}
SHORT = ("it_waits_between_operators", "it_keeps_memory")


def recorded(python, text, name="train.py", **env):
    script = scratch("script") / name
    script.write_text(text)
    result, output = record([python, script], env=env, timeout=300)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-2000:]})")
    return script, result.stdout.decode(), output


def brief_of(output):
    brief = json.loads(torsh("brief", output, "--json"))
    expect_fits("brief", brief)
    text = torsh("brief", output)
    assert len(text.encode()) <= BYTES_MAX, len(text.encode())
    for hypothesis in brief["hypotheses"][:1]:
        assert f"1. **{hypothesis['rule']}**: {hypothesis['sentence']}" in text, text
    return brief, text


def slow(parts, rule):
    text = TRAINING.format(**{"setup": "", "load": "pass", "work": "pass", "steps": 20} | parts)
    script, _, output = recorded(torch_python(), text, OMP_NUM_THREADS=1)
    brief, page = brief_of(output)
    assert brief["hypotheses"], page
    # Of its own kind: what would gain time comes before memory, and a step of a millisecond may lose its core.
    hypothesis = next(one for one in brief["hypotheses"] if (one["gain_bytes"] is not None) == (rule == "growth"))
    expect_equal(hypothesis["rule"], rule, f"the first hypothesis of\n{page}")
    if rule == "growth":
        assert hypothesis["place"].endswith(f"train.py:{line_with(script, 'kept.append')}"), hypothesis
    report = json.loads(torsh("report", output, "--json"))
    found = {one["rule"]: one for one in reversed(report["inefficiencies"])}
    for hypothesis in brief["hypotheses"]:
        if hypothesis["speedup_at_most"] is not None:
            share = found[hypothesis["rule"]]["share_pct"]
            expect_equal(hypothesis["gain_pct"], share, "its gain")
            assert abs(hypothesis["speedup_at_most"] - 100 / (100 - share)) < 1e-9, hypothesis


def line_with(script, text):
    return next(number for number, line in enumerate(script.read_text().splitlines(), 1) if text in line)


for what, (changes, cure) in SLOW.items():
    add = add_case if what in SHORT else add_long_case
    add(f"the_first_hypothesis_is_right_where_{what}", slow, changes, cure)


@case
def the_gain_is_the_time_that_the_program_waits():
    parts = {"setup": "", "load": "time.sleep(0.03)", "work": "pass", "steps": 20}
    _, printed, output = recorded(torch_python(), TRAINING.format(**parts), OMP_NUM_THREADS=1)
    waited, whole = json.loads(printed)
    brief, _ = brief_of(output)
    gain = brief["hypotheses"][0]["gain_pct"]
    assert brief["hypotheses"][0]["speedup_at_most"] > 1, brief["hypotheses"]
    assert abs(gain - 100 * waited / whole) < 10, (gain, waited, whole)


@case
def lines_of_operators_are_quoted():
    text = """
import torch
torch.set_num_threads(1)
a = torch.ones(700, 700)
for i in range(20):
    b = a @ a  # here
    c = b + 1
"""
    script, _, output = recorded(torch_python(), text, OMP_NUM_THREADS=1)
    brief, page = brief_of(output)
    first = brief["costs"][0]
    expect_equal((first["kind"], first["name"], first["frame"]["line"], first["quoted"]),
                 ("operator", "aten::mm", line_with(script, "# here"), "b = a @ a  # here"), "the most costly")
    assert "700,700" in first["inputs"] and "b = a @ a  # here" in page, page
    ops = {row["name"]: row for row in json.loads(torsh("ops", output, "--json", "--merge-nested"))["ops"]}
    expect_equal((first["ns"], first["count"]), (ops["aten::mm"]["self_cpu_ns"], ops["aten::mm"]["calls"]), "its time and calls")
    # A line of a file that changed later may be another one.
    script.write_text(text.replace("# here", "# gone"))
    os.utime(script, (2 ** 31, 2 ** 31))
    changed = brief_of(output)[0]["costs"][0]
    expect_equal((changed["quoted"], changed["unquoted_reason"]), (None, "its file has changed since"), "a changed file")
    script.unlink()
    gone = brief_of(output)[0]["costs"][0]
    expect_equal((gone["quoted"], gone["unquoted_reason"]), (None, "its file is not on this machine"), "a file that is gone")


@case
def a_program_without_a_framework_has_its_memory():
    text = "kept = bytearray(30000000)  # here\n"
    script, _, output = recorded(sys.executable, text, "plain.py")
    brief, page = brief_of(output)
    cost = next(cost for cost in brief["costs"] if cost["kind"] == "peak")
    expect_equal((cost["frame"]["line"], cost["quoted"]), (1, text.strip()), "what holds most memory")
    assert 30000000 <= cost["bytes"] < 30100000, cost
    assert brief["run"]["program"] == "plain.py" and "# plain.py: what costs" in page, page


@case
def leaks_are_a_hypothesis_with_their_line():
    _, output = record([PROGRAMS / "entries"])
    brief, _ = brief_of(output)
    leaked = json.loads(torsh("leaks", output, "--json"))
    first = brief["hypotheses"][0]
    expect_equal((first["rule"], brief["run"]["leaked_bytes"]), ("leak", leaked["leaked_bytes"]), "what leaked")
    assert first["place"], first


@case
def it_is_written_to_a_file_or_refused():
    _, output = record([PROGRAMS / "entries"])
    file = scratch("briefs") / "brief.md"
    expect_equal(torsh("brief", output, "-o", file), "", "standard output")
    expect_equal(file.read_text(), torsh("brief", output), "the file")
    torsh("brief", output, "-o", file.parent / "none/brief.md", expect=2)
    torsh("brief", scratch("nothing"), expect=2)


main()
