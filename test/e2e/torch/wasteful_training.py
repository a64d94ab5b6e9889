#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The rules about operators, DataLoaders and waits, on programs of PyTorch that waste in one way each, and on the same ones that
do not: what is found is what the program did, what it gains is a time of it, and the page shows where.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from html_report import opened  # noqa: E402

PROGRAM = ROOT / "test/python/wasteful/training.py"
OPERATORS = ("scalar_reads", "contiguous_copies", "growing_cat", "constant_tensors", "float64_operators", "gradient_fills",
             "optimizer_loop", "dense_embedding_gradients", "training_layers", "unused_graph", "graph_growth", "guard_checks")
LOADERS = ("loader_without_workers", "loader_behind", "loader_restarts", "loader_too_many_workers", "loader_small_operators")
WAITS = ("sleeps", "file_waits", "network_waits", "python_lock_waits")
GROUPS = {"operators": OPERATORS, "loaders": LOADERS, "waits": WAITS}
WITHOUT_TIME = {"unused_graph": "the time that recording the graph takes was not measured",
                "loader_too_many_workers": "how much the workers slow each other down was not measured"}
EXACT = ("reads_per_step", "copies_per_step", "copied_times", "lookups_per_step", "layers_per_step", "rows", "indices", "restarts", "workers",
         "batches")
TIMEOUT_S = 900


def recorded(group):
    """The recording of a group, and by program and whether it wastes its pid and what it knows."""
    def make(folder):
        result, _ = record([torch_python(), PROGRAM, *GROUPS[group]], folder / "out", timeout=TIMEOUT_S,
                           env={"TORSH_PROFILER_ACTIVITIES": "cpu,torch,python,waits", "OMP_NUM_THREADS": 1})
        expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
        return str(folder / "out"), [json.loads(line) for line in result.stdout.decode().splitlines()]
    output, lines = once(f"wasteful-{group}", make)
    return output, {(name, is_wasteful): (pid, known) for name, is_wasteful, pid, known in lines}


def report_of(group, rule, is_wasteful):
    """The row of the program's process, its findings of the rule, the rule's state in all programs, and what is known."""
    output, programs = recorded(group)
    report = once(f"wasteful-report-{group}", lambda folder: read_report("report", output))
    pid, known = programs[rule, is_wasteful]
    [state] = [one["state"] for one in report["rules"] if one["rule"] == rule]
    [process] = [one for one in report["processes"] if one["pid"] == pid]
    return process, [one for one in report["inefficiencies"] if one["rule"] == rule and one["where"]["pid"] == pid], state, known


def expect_known(finding, known):
    evidence = {one["name"]: one["value"] for one in finding["evidence"]}
    for name, value in known.items():
        if name in EXACT:
            expect_equal(evidence[name], value, f"{name} ({finding['sentence']})")
    if "seconds" in known:
        assert evidence["waited_ns"] > 0.8e9 * known["seconds"], (evidence, known)
    if "parameters" in known:
        assert evidence["calls_per_step"] >= known["parameters"], (evidence, known)
    if "operators" in known:
        assert evidence["operators_per_batch"] >= known["operators"], (evidence, known)


@needs("torch")
def fires(group, rule):
    process, found, state, known = report_of(group, rule, True)
    assert found, f"{rule} did not fire: it is {state}"
    finding = found[0]
    expect_known(finding, known)
    assert "an unknown one" not in finding["sentence"], finding["sentence"]
    if rule in WITHOUT_TIME:
        expect_equal((finding["gain_ns"], finding["gain_bytes"], finding["no_gain"]), (None, None, WITHOUT_TIME[rule]), "gain")
        return
    whole_ns = process["end_ns"] - process["start_ns"]
    assert 0 < finding["gain_ns"] < whole_ns and finding["no_gain"] is None, (finding, whole_ns)
    if finding["shown_at"]:
        times = finding["shown_at"]
        assert process["start_ns"] <= times["from_ns"] < times["until_ns"] <= process["end_ns"], (times, process)
        assert times["until_ns"] - times["from_ns"] <= 2.01 * finding["gain_ns"], (times, finding)


@needs("torch")
def is_silent(group, rule):
    _, found, state, _ = report_of(group, rule, False)
    expect_equal(found, [], f"{rule} of the program that does not waste")
    assert state != "not_judged", rule


for of, rules in GROUPS.items():
    for name in rules:
        add_case(f"{name}_fires_where_a_program_wastes", fires, of, name)
        add_case(f"{name}_is_silent_where_it_does_not", is_silent, of, name)


@case
@needs("torch")
def the_page_opens_where_a_finding_shows():
    output, programs = recorded("operators")
    pid, _ = programs["growing_cat", True]
    findings = read_report("report", output, "--pid", str(pid))["inefficiencies"]
    number = next(i for i, one in enumerate(findings, 1) if one["rule"] == "growing_cat")
    folder = scratch("page")
    result = run([TORSH, "report", output, "--pid", pid, "--open", number], cwd=folder)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    address, anchor = result.stdout.decode().strip().split("#")
    expect_equal(f"#{anchor}", findings[number - 1]["anchor"], "anchor")
    page = pathlib.Path(address.removeprefix("file://"))
    expect_equal(page.parent, folder.resolve(), "folder of the page")
    with opened(page) as report:
        report.open(anchor)
        report.until("!!document.getElementById('shown-finding')?.textContent")
        expect_equal(report.js("document.getElementById('shown-finding').textContent"), findings[number - 1]["sentence"], "finding shown")
        assert report.js("document.getElementById('timeline').getBoundingClientRect().top") < 100, "the timeline is not in view"
        assert "span" in report.js("document.querySelector('#timeline [role=status]').textContent"), "no spans"
        report.open("findings")
        link = report.js(f"document.querySelector('#finding-{number} a').getAttribute('href')")
        expect_equal(link, f"#{anchor}", "the link of the finding's card")
    for bad in ("0", "x", str(len(findings) + 1)):
        assert run([TORSH, "report", output, "--pid", pid, "--open", bad], cwd=folder).returncode == 2, bad


main()
