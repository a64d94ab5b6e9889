#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Annotations through torsh.h are in the recording; without the agent they do nothing and cost
almost nothing."""

import collections
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import nested, timeline  # noqa: E402

PROGRAM = PROGRAMS / "regions"
SOURCE = ROOT / "test/programs/ranges/regions.c"
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L", f"-I{ROOT}", "-pthread")
BARE = "alone\n0 0 0 0 0 0 0 0 42\n"
RECORDED = "there\n0 1 1 0 -1 2 0 0 42\n"
N_THREADS, N_ROUNDS = 4, 500


def expect_output(program, bare, recorded):
    result, output = record([program])
    expect_equal((result.returncode, result.stdout.decode()), (0, recorded), f"status and output ({result.stderr})")
    result = run([program])
    expect_equal((result.returncode, result.stdout.decode()), (0, bare), "status and output without the agent")
    return output


@case
def what_is_reported_is_recorded():
    events = timeline(expect_output(PROGRAM, BARE, RECORDED))
    expect_equal({event.get("source") for event in events}, {"torsh", None}, "sources")
    main = events[0]["thread"]
    expect_equal(nested(events, main), [(0, "outer"), (1, "middle"), (0, "scoped"), (1, "in scope"), (0, "left open")],
                 "ranges of the main thread, one pop too many among them")
    [other, request] = [event for event in events if event["event"] == "range_push" and event["domain"]]
    expect_equal((request["name"], request["domain"], request["payload"]), ("GET /", "torsh.request", None), "a request")
    expect_equal({key: other[key] for key in ("name", "domain", "category", "color", "payload")},
                 {"name": "with all", "domain": "other", "category": "kind", "color": 0xff336699, "payload": -5},
                 "attributes of a range")
    marks = [(event["name"], event["domain"], event["payload"]) for event in events if event["event"] == "mark"]
    expect_equal(marks, [("mark with all", "other", 0.25), ("older", None, None), ("here", None, None),
                         (None, None, None), (None, None, None), ("? not UTF-8", None, None), ("x" * 2999, None, None)],
                 "marks")
    values = [(event["name"], event["kind"], event["payload"]) for event in events if event["event"] == "value"]
    expect_equal(values, [("loss", 0, 0.5), ("items", 1, 3.0), ("length", 2, 17.0)], "values")
    expect_equal([event["number"] for event in events if event["event"] == "step"], [7, 2**64 - 1], "steps")


@case
def regions_are_summed():
    output = record([PROGRAM])[1]
    report = read_report("regions", output, "--limit", "0")
    calls = {(entry["domain"], entry["name"]): (entry["calls"], entry["threads"], entry["left_open"])
             for entry in report["regions"]}
    alone = {(None, name): (1, 1, 0) for name in ("outer", "middle", "scoped", "in scope", "handed over")}
    rounds = {(None, f"round {i}"): (N_ROUNDS, 1, 0) for i in range(N_THREADS)}
    expect_equal(calls, {**alone, **rounds, (None, "inner"): (N_THREADS * N_ROUNDS, N_THREADS, 0),
                         ("other", "with all"): (1, 1, 0), ("torsh.request", "GET /"): (1, 1, 0),
                         (None, "left open"): (1, 1, 1),
                         (None, "never ended"): (1, 1, 1)}, "regions")
    expect_equal((report["steps"], report["unpaired_ends"]), (2, 1), "steps, and pops too many")
    # Times are those between the events.
    events = timeline(output)
    begin = next(event for event in events if event.get("name") == "handed over")
    end = next(event for event in events if event["event"] == "range_end")
    [handed] = [entry for entry in report["regions"] if entry["name"] == "handed over"]
    expect_equal([handed[key] for key in ("total_ns", "avg_ns", "min_ns", "max_ns")], [end["at_ns"] - begin["at_ns"]] * 4,
                 "times of a region")
    by_thread = read_report("regions", output, "--by-thread", "--sort", "calls")
    expect_equal([entry["calls"] for entry in by_thread["regions"][:2 * N_THREADS]], [N_ROUNDS] * 2 * N_THREADS, "by thread")
    expect_equal(read_report("regions", output, "--source", "nvtx")["regions"], [], "what others printed")
    text = torsh("regions", output)
    for words in ("other/with all", "counted as ended there: 2", "ends without a region to end: 1", "items", "mark with all"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
def sums_are_clean_under_valgrind():
    need_command("valgrind")
    output = record([PROGRAM])[1]
    for arguments in ([], ["--json", "--by-thread"]):
        result = run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
                      TORSH, "regions", output, *arguments])
        expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr under valgrind")


@case
def ranges_are_started_here_and_ended_there():
    events = timeline(record([PROGRAM])[1])
    starts = {event["name"]: event for event in events if event["event"] == "range_start"}
    [end] = [event for event in events if event["event"] == "range_end"]
    expect_equal(end["range"], starts["handed over"]["range"], "number of the range that ended")
    assert end["thread"] != starts["handed over"]["thread"]
    assert end["at_ns"] > starts["handed over"]["at_ns"]
    assert starts["never ended"]["range"] not in (0, end["range"])


@case
def each_thread_nests_its_own_ranges():
    output = record([PROGRAM], env={"TORSH_PROFILER_RING": "64K"})[1]
    check_counts(leaks(output)["events"])
    events = timeline(output)
    threads = collections.Counter(event["thread"] for event in events if event["event"] == "range_push")
    rounds = [thread for thread, n in threads.items() if n == 2 * N_ROUNDS]
    expect_equal(len(rounds), N_THREADS, f"threads with all ranges ({threads})")
    for thread in rounds:
        ranges = nested(events, thread)
        expect_equal(ranges, [(0, ranges[0][1]), (1, "inner")] * N_ROUNDS, "ranges of a thread")


def strict(compiler, standard, *flags):
    need_command(compiler)
    program = scratch("built") / "regions"
    result = run([compiler, "-x", "c++" if "++" in compiler else "c", f"-std={standard}", *STRICT, *flags, "-o", program,
                  SOURCE])
    expect_equal((result.returncode, result.stderr.decode()), (0, ""), "status and warnings of the compiler")
    expect_output(program, BARE, RECORDED)


for compiler, standard in (("gcc", "c99"), ("clang", "c99"), ("g++", "c++11"), ("clang++", "c++11")):
    for flags in (("-O0", "-fPIE", "-pie"), ("-O2", "-fno-pie", "-no-pie")):
        add_case(f"{compiler.replace('+', 'p')}_{standard.replace('+', 'p')}_{flags[2].strip('-').replace('-', '_')}",
                 strict, compiler, standard, *flags)

GUARD = """
#include "shim/ranges/torsh.h"
#include <stdexcept>
static int work(bool fails)
{
	torsh::range guard("guarded");
	if (fails)
		throw std::runtime_error("out of it");
	return 1;
}
int main()
{
	work(false);
	try { work(true); } catch (const std::exception &) { torsh_mark("caught"); }
	return 0;
}
"""


@case
def a_cpp_guard_ends_with_its_scope():
    folder = scratch("built")
    (folder / "guard.cc").write_text(GUARD)
    result = run(["g++", "-std=c++11", *STRICT, "-o", folder / "guard", folder / "guard.cc"])
    expect_equal((result.returncode, result.stderr.decode()), (0, ""), "status and warnings of the compiler")
    events = timeline(expect_output(folder / "guard", "", ""))
    expect_equal([event["event"] for event in events], ["range_push", "range_pop"] * 2 + ["mark"], "events")


@case
def a_forked_child_reports_it_for_itself():
    program = scratch("built") / "forks"
    source = program.with_suffix(".c")
    source.write_text("""
#include "shim/ranges/torsh.h"
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	torsh_range_push("before");
	if (!fork()) {
		torsh_mark("in the child");
		torsh_range_push("of the child");
		torsh_range_pop();
		_exit(torsh_range_pop());
	}
	int status;
	wait(&status);
	torsh_mark("in the parent");
	torsh_range_pop();
	return WEXITSTATUS(status);
}
""")
    expect_equal(run(["gcc", f"-I{ROOT}", "-o", program, source]).returncode, 0, "status of the compiler")
    events = timeline(expect_output(program, "", ""))
    printed = collections.defaultdict(list)
    for event in events:
        printed[event["process"]].append(event.get("name") or event["event"])
    expect_equal(sorted(printed.values()), [["before", "in the parent", "range_pop"],
                                         ["in the child", "of the child", "range_pop", "range_pop"]], "what each printed")


@case
def requests_are_steps_that_overlap():
    """Two threads serve; what they do inside of a request as one is part of it."""
    output = record([PROGRAMS / "served"])[1]
    report = read_report("steps", output, "--limit", "0")
    expect_equal((report["rule"], report["certainty"]), ("requests", 1), "rule")
    steps = report["steps"]
    expect_equal(collections.Counter(step["name"] for step in steps), {"GET /main": 20, "GET /other": 20}, "requests")
    starts = [step["start_ns"] for step in steps]
    expect_equal(starts, sorted(starts), "order")
    by_name = {name: [step for step in steps if step["name"] == name] for name in ("GET /main", "GET /other")}
    for one, other in zip(*by_name.values()):
        ends = [step["start_ns"] + step["duration_ns"] for step in (one, other)]
        assert max(one["start_ns"], other["start_ns"]) < min(ends), (one, other)
    database = scratch("database") / "t.sqlite"
    torsh("export", "--format", "sqlite", "-o", database, output)
    expect_equal(sqlite3.connect(database).execute("select count(*), min(rule), max(rule) from steps").fetchone(),
                 (40, "requests", "requests"), "rows of steps")
    for form in ("chrome", "perfetto", "html", "json", "tensorboard"):
        torsh("export", "--format", form, "-o", scratch(form) / "file", output)


main()
