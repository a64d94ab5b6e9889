#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Of loops that keep what is sensible to keep none grows, of loops that leak each does: in Python and C, over steps and requests, and
over time where nothing tells of steps.
"""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

SCRIPT, SOURCE = ROOT / "test/python/growth/many_loops.py", ROOT / "test/programs/heap/many_loops.c"
STEPS = 240
LOOP = re.compile(r"^(?:def |LOOP\()((?:keep|leak)s?_\w+)", re.MULTILINE)
N_OF_EACH = 30  # at least, in both languages together


def growth(*command):
    result, output = record(command, env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    return output, read_report("leaks", output, "--growth", "--limit", "0")


def loops(source):
    return LOOP.findall(source.read_text())


def growing(report, source):
    """The entries of each loop that grows; of no loop: None."""
    names, found = set(loops(source)), collections.defaultdict(list)
    for entry in report["growth"]:
        found[next((frame["function"] for frame in entry["stack"] if frame["function"] in names), None)].append(entry)
    return found


def check(report, source):
    found = growing(report, source)
    expect_equal({loop: found[loop] for loop in found if not (loop or "").startswith("leak")}, {}, "what grows and is sensible")
    expect_equal(sorted(found), sorted(loop for loop in loops(source) if loop.startswith("leak")), "loops that leak")
    for loop, entries in found.items():
        for entry in entries:
            # Slopes are significant: they are more than three errors.
            assert entry["bytes_per_step"] > 3 * entry["bytes_per_step_error"] >= 0, (loop, entry)
            assert entry["blocks_per_step_error"] >= 0, (loop, entry)
    rates = [entry["bytes_per_step"] for entry in report["growth"]]
    assert min(rates) >= sum(rates) / 1000, "an entry below 0.1 % of the growth is not folded"
    return {loop: sum(entry["bytes_per_step"] for entry in entries) for loop, entries in found.items()}


def check_near(rate, expected):
    assert abs(rate - expected) <= expected / 50, (rate, expected)


@case
def there_are_as_many_loops_as_they_should_be():
    counts = collections.Counter(loop[:4] for source in (SCRIPT, SOURCE) for loop in loops(source))
    assert counts["keep"] >= N_OF_EACH and counts["leak"] >= N_OF_EACH, counts


@case
def of_loops_in_python_those_that_leak_grow():
    output, report = growth(sys.executable, SCRIPT, STEPS)
    expect_equal((report["over"], report["steps"]), ("steps", STEPS), "what growth is over")
    rates = check(report, SCRIPT)
    check_near(rates["leaks_each_step"], 901)
    check_near(rates["leaks_every_tenth_step"], 500.1)
    # Buffers of dicts and queues.
    assert report["small"]["groups"] > 0 and report["small"]["bytes"] > 0, report["small"]
    assert "of less than 0.1 % of the growth" in torsh("leaks", output, "--growth")


@case
def of_loops_in_c_those_that_leak_grow():
    output, report = growth(PROGRAMS / "many_loops", STEPS)
    expect_equal((report["over"], report["steps"]), ("steps", STEPS), "what growth is over")
    rates = check(report, SOURCE)
    check_near(rates["leak_each_step"], 300)
    check_near(rates["leak_every_eighth_step"], 250)
    check_near(rates["leak_below_a_ring"], 250)
    # A budget is of all that grows.
    torsh("check", output, "--max-growth", str(int(sum(rates.values())) + 2))
    torsh("check", output, "--max-growth", str(int(sum(rates.values())) - 2), expect=1)


@case
def over_requests_it_is_the_same():
    _, report = growth(PROGRAMS / "many_loops", STEPS, "requests")
    expect_equal((report["over"], report["steps"], report["enough_steps"]), ("steps", STEPS, True), "what growth is over")
    expect_equal([process["rule"] for process in report["processes"]], ["one request that the program served"], "rule")
    check_near(check(report, SOURCE)["leak_each_step"], 300)


@case
def over_time_it_is_the_same():
    # More of them: where the machine is busy, the first ones take longer, and tables are filled later.
    output, report = growth(PROGRAMS / "many_loops", 2 * STEPS, "unmarked")
    expect_equal((report["over"], report["steps"], report["enough_steps"]), ("time", 0, True), "what growth is over")
    check(report, SOURCE)
    text = torsh("leaks", output, "--growth")
    assert "What grows, over time" in text and "/s " in text, text


main()
