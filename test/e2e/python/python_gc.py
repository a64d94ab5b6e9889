#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs of CPython's garbage collector, against callbacks of the program's own around them, on every CPython of this machine."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402

PROGRAM = pythons.SOURCES / "gc/runs.py"
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
NAMES = ("generation", "collected", "uncollectable")


def a_python():
    found = pythons.find_all()
    if not found:
        raise Skip("there is no CPython on this machine")
    return found[len(found) // 2]


def dump(output):
    return [json.loads(line) for line in torsh("dump", output).splitlines()]


def record_runs(python, way, **env):
    """The recording's rows, what the program wrote down (of its child after a comma), and its result."""
    truth = scratch("truth") / "truth.json"
    result, output = record([python.path, PROGRAM, way, truth], env={**ENVIRONMENT, **env})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    truths = [json.loads(path.read_text()) for path in sorted(truth.parent.glob(truth.name + "*"))]
    return dump(output), truths, result, output


def runs_of(rows, process):
    return [row for row in rows if row.get("event") == "python_gc" and row["process"] == process]


def process_numbers(rows):
    """The numbers of the recorded processes, by pid."""
    return {row["process"]["pid"]: row["process"]["process"] for row in rows if isinstance(row.get("process"), dict)}


def expect_runs(rows, truth, process):
    """The program's runs are recorded in their order, with times between those of the callbacks around the agent's."""
    found, expected = runs_of(rows, process), truth["runs"]
    if truth["version"] != [3, 14]:  # its first releases count increments otherwise
        expect_equal([sum(run["generation"] == generation for run in expected) for generation in range(3)],
                     truth["collections"], "the program's runs, and gc.get_stats()")
    assert len({run["thread"] for run in expected}) >= 3 and sum(run["collected"] for run in expected) > 10_000, expected
    places = [i for i in range(len(found) - len(expected) + 1)
              if all(ours[name] == run[name] for ours, run in zip(found[i:], expected) for name in NAMES)]
    assert len(places) == 1, f"{len(found)} recorded, {len(expected)} of the program, at {places}"
    ours = found[places[0]:][:len(expected)]
    for mine, run in zip(ours, expected):
        assert run["inner_stop_ns"] - run["inner_start_ns"] <= mine["duration_ns"] \
            <= run["outer_stop_ns"] - run["outer_start_ns"], (mine, run)
        assert mine["begin_ns"] + mine["duration_ns"] <= mine["at_ns"] + 1_000_000, mine
    threads = {}
    for mine, run in zip(ours, expected):
        threads.setdefault(run["thread"], set()).add(mine["thread"])
    assert all(len(numbers) == 1 for numbers in threads.values()) and len(set.union(*threads.values())) == len(threads), threads
    assert all(mine["stack"] for mine in ours), ours
    return places[0]


def check_runs(python):
    rows, [truth], result, _ = record_runs(python, "watch")
    [process] = process_numbers(rows).values()
    n_before = expect_runs(rows, truth, process)
    # Those of the interpreter's own start come before the entry.
    assert n_before <= sum(truth["collections_before"]) + 1, (n_before, truth["collections_before"])
    # Beside the entry of gc.callbacks the program finds nothing of the agent's.
    path = scratch("bare") / "truth.json"
    bare_result = run([python.path, PROGRAM, "watch", path], env={**clean_environment(), **ENVIRONMENT})
    bare = json.loads(path.read_text())
    expect_equal((result.returncode, result.stdout), (bare_result.returncode, bare_result.stdout), "status and stdout")
    expect_equal(result.stderr.count(b"in a finalizer"), bare_result.stderr.count(b"in a finalizer"), "stderr")
    expect_equal((truth["objects"], truth["callbacks"]), (bare["objects"] + 1, bare["callbacks"] + 1), "objects, callbacks")
    for same in ("modules", "collections_at_start", "collections"):
        expect_equal(truth[same], bare[same], same)
    print(f"{python.path} {python.version}: {len(truth['runs'])} runs, {n_before} before them")


@case
def a_forked_child_has_its_own_runs():
    rows, truths, *_ = record_runs(a_python(), "fork")
    numbers = process_numbers(rows)
    expect_equal(len(truths), 2, "processes")
    for truth in truths:
        expect_runs(rows, truth, numbers[truth["pid"]])


@case
def a_program_that_clears_the_callbacks_is_reported():
    rows, [truth], _, output = record_runs(a_python(), "clear")
    [process] = process_numbers(rows).values()
    first = expect_runs(rows, truth, process)
    expect_equal(len(runs_of(rows, process)), first + len(truth["runs"]), "no run after the program removed the entry")
    notes = read_report("report", output)["notes"]
    assert any("removed the profiler's entry of gc.callbacks" in note for note in notes), notes


@case
def the_entry_bears_any_call_at_any_time():
    rows, [truth], result, _ = record_runs(a_python(), "misuse")
    [process] = process_numbers(rows).values()
    expect_runs(rows, truth, process)
    expect_equal(result.stdout, b"done\n", "stdout")


@case
def runs_belong_to_the_activity_of_python():
    python = a_python()
    rows, [truth], *_ = record_runs(python, "watch", TORSH_PROFILER_ACTIVITIES="heap")
    expect_equal((truth["callbacks"], [row for row in rows if row.get("event") == "python_gc"]), (0, []), "without python")
    rows, [truth], *_ = record_runs(python, "watch", TORSH_PROFILER_ACTIVITIES="python,vm")
    expect_equal(truth["callbacks"], 1, "entries without the heap")
    expect_equal(len(runs_of(rows, *process_numbers(rows).values())) >= len(truth["runs"]), True, "runs without the heap")


COLLECTING = """\
import gc
gc.disable()
kept = [[] for _ in range(200_000)]

def churn():
    for _ in range(20):
        gc.collect()

if COLLECTS:
    churn()
"""


def finding_of(collects):
    """The finding about collections, the state of the rule and the process's own figures."""
    program = scratch("collecting") / "app.py"
    program.write_text(COLLECTING.replace("COLLECTS", str(collects)))
    result, output = record([a_python().path, program], env=ENVIRONMENT)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    report = read_report("report", output)
    [state] = [rule["state"] for rule in report["rules"] if rule["rule"] == "gc_pauses"]
    found = [finding for finding in report["inefficiencies"] if finding["rule"] == "gc_pauses"]
    return found, state, report["processes"][0]["python_gc"], output


@case
def long_collections_are_a_finding_at_their_line():
    [finding], state, figures, output = finding_of(True)
    evidence = {each["name"]: each["value"] for each in finding["evidence"]}
    expect_equal(state, "fired", "state")
    assert "in churn" in finding["place"] or "churn" in finding["place"], finding["place"]
    assert figures["generations"][2]["runs"] >= 20 and evidence["longest_generation"] == 2, (figures, evidence)
    assert finding["sentence"].startswith("Python's garbage collector took "), finding["sentence"]
    expect_equal(evidence["gc_ns"], sum(each["ns"] for each in figures["generations"]), "time")
    expect_equal(evidence["longest_ns"], figures["longest_ns"], "longest")
    assert evidence["runs"] == sum(each["runs"] for each in figures["generations"]), (figures, evidence)
    assert "Garbage collector of Python" in torsh("report", "-v", output), "torsh report -v"


@case
def a_program_that_does_not_collect_has_no_such_finding():
    found, state, figures, _ = finding_of(False)
    expect_equal((found, state), ([], "clear"), "finding")
    expect_equal(figures["generations"][2]["runs"] <= 1, True, "runs of the end")


for python in pythons.find_all():
    add_case(f"runs_are_those_of_the_program_{python.name}", check_runs, python)
main()
