#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What requests and tasks of asyncio allocate, keep and run, interleaved on one thread, against the program's own account, on
every CPython of this machine; and that programs are as without the agent."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from environments import environment_python  # noqa: E402
from schema import expect_fits  # noqa: E402

PROGRAM = ROOT / "test/python/requests/interleaved.py"
UNTOUCHED = ROOT / "test/python/requests/untouched.py"
GREENLETS = ROOT / "test/python/requests/greenlets.py"
SWITCHES = ROOT / "test/python/requests/switches.py"
GEVENTS = ROOT / "test/python/requests/gevents.py"
TRACES = ROOT / "test/python/requests/traces.py"
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"}
ON = {"TORSH_PROFILER_REQUESTS": "1"}
# What Python itself allocates for a request: far less than one of its blocks.
OF_PYTHON = 1 << 19


def requests_of(output, *arguments):
    report = json.loads(torsh("requests", output, "--json", "--limit", "0", *arguments))
    expect_fits("requests", report)
    return report


def expect_amount(found, wanted, what):
    assert wanted <= found < wanted + OF_PYTHON, f"{what}: {found} bytes, and the program has {wanted}"


def expect_like(single, mine, what):
    expect_amount(single["allocated_bytes"], mine["allocated"], f"{what} allocated")
    expect_amount(single["kept_bytes"], mine["kept"], f"{what} kept")
    # By the same clock, of which the program sees a part.
    assert single["cpu_ns"] >= mine["cpu_ns"], (what, single, mine)
    assert single["duration_ns"] >= mine["took"], (what, single, mine)
    assert single["run_ns"] >= single["cpu_ns"] * 0.9, (what, single)
    assert single["peak_bytes"] <= single["allocated_bytes"], (what, single)


def expect_sums(row, mine):
    expect_equal((row["count"], row["ended"], row["shared"]), (len(mine), len(mine), 0), f"requests of {row['name']}")
    wanted = sum(one["allocated"] for one in mine)
    assert wanted <= row["allocated_bytes"] < wanted + len(mine) * OF_PYTHON, (row, wanted)
    assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"], row
    wanted = sum(one["kept"] for one in mine)
    assert wanted <= row["kept_bytes"] < wanted + len(mine) * OF_PYTHON, (row, wanted)


def has_line(row, function):
    """Whether the largest of what is kept was allocated in that function."""
    return any(frame["function"] == function for frame in row["kept"][0]["stack"])


def requests_have_what_they_did(python):
    result, output = record([python.path, PROGRAM], env=ENVIRONMENT)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = json.loads(result.stdout)
    report = requests_of(output)
    traced = {int(one["trace_id"][-4:], 16) - 1: one for one in report["requests"] if one["trace_id"]}
    expect_equal(len(traced), 10, "requests with a trace")
    for number, single in traced.items():
        what = single["name"] + str(number)
        expect_equal(single["trace_id"], "4bf92f3577b34da6a3ce929d0e0e%04x" % (number + 1), "trace")
        expect_equal(single["span_id"], "00f067aa0ba902b7", "span")
        expect_like(single, mine[what], what)
    decorated = sorted((one for one in report["requests"] if one["name"] == "GET /decorated"), key=lambda one: one["start_ns"])
    for number, single in enumerate(decorated, 10):
        expect_like(single, mine[f"GET /decorated{number}"], f"decorated {number}")
    rows = {row["name"]: row for row in report["names"]}
    expect_equal(sorted(rows), ["GET /clean", "GET /decorated", "GET /leaks"], "names")
    for name, row in rows.items():
        expect_sums(row, [one for one in mine.values() if one["name"] == name])
    expect_equal(rows["GET /leaks"]["keeping"], 5, "requests that kept blocks")
    assert has_line(rows["GET /leaks"], "allocate"), rows["GET /leaks"]["kept"][0]
    leaking = requests_of(output, "--sort", "leaked")
    expect_equal(leaking["names"][0]["name"], "GET /leaks", "what leaks most")
    expect_equal({one["name"] for one in leaking["requests"][:5]}, {"GET /leaks"}, "what leaks most, one by one")


def tasks_have_what_they_did(python):
    result, output = record([python.path, PROGRAM, "tasks"], env={**ENVIRONMENT, **ON})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = json.loads(result.stdout)
    report = requests_of(output)
    singles = {one["task"]: one for one in report["requests"] if one["name"] == "serve"}
    expect_equal(sorted(singles), sorted(mine), "tasks by their names")
    for name, one in mine.items():
        expect_like(singles[name], one, name)
        expect_equal(singles[name]["kind"], "asyncio", "kind")
    main = [one for one in report["requests"] if one["name"] == "main"]
    expect_equal(len(main), 1, "the first task")
    assert main[0]["allocated_bytes"] < OF_PYTHON, main
    # Whatever ran in a task is of one task only.
    assert sum(one["cpu_ns"] for one in report["requests"]) <= mine["leaks9"]["process_cpu_ns"], report["requests"]


def programs_are_as_without_the_agent(python):
    """Modules, contexts, names of tasks, exceptions, cancellation, the methods of contexts."""
    bare = run([python.path, UNTOUCHED], {**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record([python.path, UNTOUCHED], env={"PYTHONDONTWRITEBYTECODE": "1", **ON})
    expect_equal((result.returncode, result.stdout.decode()), (0, bare.stdout.decode()), f"the program ({result.stderr.decode()})")
    names = {row["name"]: row for row in requests_of(output)["names"]}
    for name in ("main", "fails", "waits", "Parent.child"):
        assert name in names, (name, sorted(names))
    expect_equal({name: names[name]["ended"] for name in ("fails", "waits", "Parent.child")},
                 {"fails": 1, "waits": 1, "Parent.child": 3}, "tasks that ended")


@case
def a_clean_program_has_none():
    _, output = record([sys.executable, "-c", "print(1)"], env=ON)
    report = requests_of(output)
    expect_equal((report["names"], report["requests"]), ([], []), "requests")
    assert "No requests or tasks were recorded" in torsh("requests", output)


@case
@needs("tasks")
def greenlets_have_what_they_did():
    result, output = record([environment_python("tasks"), GREENLETS], env=ENVIRONMENT)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = json.loads(result.stdout)
    report = requests_of(output)
    singles = {one["name"]: one for one in report["requests"]}
    expect_equal(sorted(singles), sorted(mine), "requests")
    for name, one in mine.items():
        expect_amount(singles[name]["allocated_bytes"], one["allocated"], f"{name} allocated")
        expect_amount(singles[name]["kept_bytes"], one["kept"], f"{name} kept")


def expect_rows(report, mine, counts):
    """The rows of greenlets by their names, against the program's own account; nothing else has any."""
    rows = {row["name"]: row for row in report["names"]}
    expect_equal({name: (row["kind"], row["count"]) for name, row in rows.items()},
                 {name: ("greenlet", count) for name, count in counts.items()}, "greenlets")
    for name, row in rows.items():
        allocated, cpu_ns = mine.get(name, (0, 0))
        expect_amount(row["allocated_bytes"], allocated, name)
        assert cpu_ns <= row["cpu_ns"] < cpu_ns + 20_000_000, (name, cpu_ns, row)


@case
@needs("tasks")
def greenlets_are_tasks():
    result, output = record([environment_python("tasks"), SWITCHES], env={**ENVIRONMENT, **ON})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = json.loads(result.stdout)
    of_serve = {name: mine["allocated"].pop(name) for name in ("serve0", "serve1", "serve2")}
    cpu = mine["cpu"]
    by_name = {name: (bytes_, cpu[name]) for name, bytes_ in mine["allocated"].items() if name != "nobody"}
    by_name["serve"] = (sum(of_serve.values()), sum(cpu[name] for name in of_serve))
    report = requests_of(output)
    names = ("ping", "pong", "parent", "child", "catches", "dropped", "follows", "Own.run", "elsewhere.<locals>.of_thread")
    expect_rows(report, by_name, {**dict.fromkeys(names, 1), "serve": 3, "never_starts": 1})
    singles = sorted((one for one in report["requests"] if one["name"] == "serve"), key=lambda one: one["allocated_bytes"])
    for single, wanted in zip(singles, sorted(of_serve.values())):
        expect_amount(single["allocated_bytes"], wanted, "one of serve")
    # pong waits for ever, and is dropped when the interpreter ends.
    expect_equal({row["name"]: row["ended"] for row in report["names"] if row["ended"] < row["count"] and row["name"] != "pong"}, {},
                 "greenlets that did not end")


@case
@needs("tasks")
def greenlets_of_gevent_are_tasks():
    result, output = record([environment_python("tasks"), GEVENTS], env={**ENVIRONMENT, **ON})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    mine = {name: (one["allocated"], one["cpu"]) for name, one in json.loads(result.stdout).items()}
    report = requests_of(output)
    # gevent's own loop is one, too.
    hub = [row["name"] for row in report["names"] if row["name"] not in mine]
    expect_equal(len(hub), 1, f"gevent's own ({hub})")
    expect_rows(report, mine, {"load": 5, "pooled": 3, "Own._run": 2, "killed": 1, hub[0]: 1})
    expect_equal({row["name"]: row["ended"] for row in report["names"] if row["name"] != hub[0]},
                 {"load": 5, "pooled": 3, "Own._run": 2, "killed": 1}, "greenlets that ended")


@case
@needs("tasks")
def greenlets_are_as_without_the_agent():
    command = [environment_python("tasks"), SWITCHES, "plain"]
    bare = run(command, {**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record(command, env={"PYTHONDONTWRITEBYTECODE": "1", **ON})
    expect_equal((result.returncode, result.stdout.decode()), (0, bare.stdout.decode()), f"the program ({result.stderr.decode()})")
    expect_equal({row["kind"] for row in requests_of(output)["names"]}, {"greenlet"}, "kinds")


@case
@needs("tasks")
def traces_are_those_of_opentelemetry():
    result, output = record([environment_python("tasks"), TRACES], env=ENVIRONMENT)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    wanted = json.loads(result.stdout)
    found = {one["name"]: [one["trace_id"], one["span_id"]] for one in requests_of(output)["requests"]}
    expect_equal(found, wanted, "traces")


for python in pythons.find_all():
    add_case("requests_have_what_they_did_by_" + python.name, requests_have_what_they_did, python)
    add_case("tasks_have_what_they_did_by_" + python.name, tasks_have_what_they_did, python)
    add_case("programs_are_as_without_the_agent_by_" + python.name, programs_are_as_without_the_agent, python)

main()
