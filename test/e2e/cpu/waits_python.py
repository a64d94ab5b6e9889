#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What Python's threads waited for, Python's lock apart, and what steps consist of: against the clocks of the programs."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from schema import expect_fits  # noqa: E402
import pythons  # noqa: E402

FOLDER = ROOT / "test/python/waits"
ENVIRONMENT = {"TORSH_PROFILER_ACTIVITIES": "waits,python", "PYTHONDONTWRITEBYTECODE": "1"}
KINDS = {"wait_for_lock": "semaphore", "wait_for_queue": "semaphore", "wait_for_sleep": "sleep", "wait_for_select": "poll",
         "wait_for_pipe": "read", "wait_for_socket": "receive", "wait_for_child": "child"}
N_STEPS = 6


def record_script(python, name, *arguments, **variables):
    result, output = record([python, FOLDER / name, *arguments], env={**ENVIRONMENT, **variables})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    return json.loads(result.stdout), output


def of_kind(thread, kind):
    return next((row for row in thread["kinds"] if row["kind"] == kind), {"count": 0, "total_ns": 0})


def fight(python, n):
    """
    A thread waits for the lock while it neither computes nor waits for a CPU; it may do so in a call for the lock, or right
    before one: whoever gets the lock may take the CPU from the one that gave it away.
    """
    told, output = record_script(python.path, "gil.py", "fight", n)
    report = read_report("cpu", output, "--gil")
    expect_fits("cpu", report)
    threads = {thread["tid"]: thread for thread in report["threads"]}
    passed = min(own["passed_ns"] for own in told)
    for own in told:
        waited = threads[own["tid"]]["total_ns"] + threads[own["tid"]]["shorter_ns"]
        idle = own["passed_ns"] - own["took_ns"]
        least = idle - own["delayed_ns"] if own["delayed_ns"] is not None else 0
        assert least - 0.1 * passed <= waited <= idle + 0.1 * passed, f"{own} waited {waited} ns, of {least} to {idle} ns"
        expect_equal([row["kind"] for row in threads[own["tid"]]["kinds"]], ["gil"], "kinds")
    inner = [row for row in report["waits"] if any(frame["function"] == "compute" for frame in row["stack"])]
    assert sum(row["total_ns"] for row in inner) >= 0.8 * sum(threads[own["tid"]]["total_ns"] for own in told), report["waits"]


def check_gil(python):
    if python.is_free_threaded:
        raise Skip("it has no global lock")
    fight(python, 2)
    _, output = record_script(python.path, "gil.py", "alone")
    report = read_report("cpu", output, "--gil")
    # The main thread waits for the other one without the lock.
    own = [row for row in report["waits"] if any(frame["function"] == "compute" for frame in row["stack"])]
    assert sum(row["total_ns"] for row in own) < 50_000_000, own


for python in pythons.find_all():
    add_case(f"a_fight_for_the_lock_is_measured_in_{python.name}", check_gil, python)


@case
def three_threads_wait_for_two_others():
    found = [python for python in pythons.find_all() if not python.is_free_threaded]
    if not found:
        missing("there is no CPython")
    fight(found[-1], 3)


@case
def waits_have_the_functions_that_waited():
    found = pythons.find_all()
    if not found:
        missing("there is no CPython")
    clock, output = record_script(found[len(found) // 2].path, "waits.py")
    report = read_report("cpu", output, "--off", "--limit", "0")
    expect_fits("cpu", report)
    expect_equal(set(clock), set(KINDS), "functions")
    for name, ns in clock.items():
        within = [row for row in report["waits"] if any(frame["function"] == name for frame in row["stack"])]
        total = sum(row["total_ns"] for row in within if row["kind"] == KINDS[name])
        # A child waits for its interpreter, too; most of it is in the report of subprocess's pipe.
        assert total <= ns and (total >= 10_000_000 or name == "wait_for_child"), f"{name}: {total} of {ns} ns: {within}"
        assert sum(row["total_ns"] for row in within) <= ns, within
    by_kind = {row["kind"]: row["total_ns"] for row in report["kinds"]}
    for kind, total in by_kind.items():
        expect_equal(sum(row["total_ns"] for row in report["waits"] if row["kind"] == kind), total, f"sites of {kind}")
        expect_equal(sum(of_kind(thread, kind)["total_ns"] for thread in report["threads"]), total, f"threads of {kind}")


@case
@needs("torch")
def the_parts_of_a_step_are_the_step():
    told, output = record_script(torch_python(), "steps.py", ROOT / "tools/python",
                                 TORSH_PROFILER_ACTIVITIES="waits,python,torch")
    report = read_report("cpu", output, "--off", "--limit", "0")
    expect_fits("cpu", report)
    steps = [step for step in report["steps"] if step["index"] < N_STEPS]
    expect_equal([step["index"] for step in steps], list(range(N_STEPS)), "steps")
    for step, own in zip(steps, told):
        parts = step["parts"]
        expect_equal(sum(parts.values()), step["duration_ns"], "the sum of the parts")
        assert 8_000_000 <= parts["data"] <= own["data"], (parts, own)
        assert 4_000_000 <= parts["other_waits"] <= own["sleep"] + 2_000_000, (parts, own)
        assert 3_000_000 <= parts["locks"] <= own["lock"] + 2_000_000, (parts, own)
        assert 0.5 * own["gc"] <= parts["gc"] <= own["gc"], (parts, own)
        assert 0 < parts["operators"] <= own["operators"] + own["data"], (parts, own)
        assert parts["between"] >= 0.9 * (own["python"] + own["cycles"]), (parts, own)
    text = torsh("cpu", output, "--off")
    assert "waiting for data" in text and "collecting garbage" in text, text


if __name__ == "__main__":
    main()
