#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh ranks --from-chrome, of traces of PyTorch's profiler: every number that HolisticTraceAnalysis gives is the same, computed by
it on the same files, of traces that are made up and of two of its own. Collectives and stragglers are those that were made up.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from kineto import traces as made_up  # noqa: E402
from consumers import ask_hta_for_figures  # noqa: E402
from exported import memory_of  # noqa: E402
from schema import expect_fits  # noqa: E402

OF_HTA = ROOT / "test/e2e/ranks/recordings"
POINTS = 0.01  # of a percentage: HTA rounds to two digits
US = 1.001  # of sums: HTA's are whole


def broken_down(*paths):
    report = json.loads(torsh("ranks", "--from-chrome", "--json", "--limit", "0", *paths))
    expect_fits("ranks", report)
    return report


def expect_near(found, expected, error, what):
    assert (found is None) == (expected is None), f"{what}: {found}, HTA has {expected}"
    assert found is None or abs(found - expected) <= error, f"{what}: {found}, HTA has {expected}"


def compare_temporal(ranks, rows):
    expect_equal([row["rank"] for row in rows], list(ranks), "ranks")
    for row in rows:
        for name, ours in (("idle_time", "idle"), ("compute_time", "compute"), ("non_compute_time", "non_compute")):
            expect_near(ranks[row["rank"]][ours + "_percent"], row[name + "_pctg"], POINTS / 2 + 1e-9, f"{name} of rank {row['rank']}")
            expect_near(ranks[row["rank"]][ours + "_ns"] / 1000, row[name + "(us)"], US, f"us of {name} of rank {row['rank']}")
        expect_near(ranks[row["rank"]]["total_ns"] / 1000, row["kernel_time(us)"], US, f"time of rank {row['rank']}")


def compare_types(types, rows):
    found = {" overlapping ".join(name.upper() for name in row["types"]): row for row in types}
    expected = {row["kernel_type"]: row for row in rows if row["sum"]}
    expect_equal(sorted(found), sorted(expected), "types of kernels")
    for name, row in expected.items():
        expect_near(found[name]["ns"] / 1000, row["sum"], US, f"us of {name}")
        expect_near(found[name]["percent"], row["percentage"], 0.05 + 1e-9, f"share of {name}")  # one digit


def compare_kernels(ranks, rows):
    found = {(rank, kernel["name"]): kernel for rank, of in ranks.items() for kernel in of["kernels"]}
    expect_equal(sorted(found), sorted((row["rank"], row["name"]) for row in rows), "kernels")
    for row in rows:
        kernel = found[row["rank"], row["name"]]
        expect_equal(kernel["type"], row["kernel_type"].lower(), f"type of {row['name']}")
        for ours, theirs in (("total_ns", "sum (us)"), ("min_ns", "min (us)"), ("max_ns", "max (us)"), ("mean_ns", "mean (us)"),
                             ("deviation_ns", "stddev")):
            expect_near(kernel[ours] / 1000, row[theirs], 1e-3 + 1e-9 * abs(row[theirs]), f"{theirs} of {row['name']}")


def compare_idle(ranks, rows):
    """HTA rounds the ratio to two digits: the us are exact."""
    expected = {(row["rank"], row["stream"], row["idle_category"]): row for row in rows}
    found = {(rank, stream["stream"], kind): stream[kind + "_ns"] / 1000
             for rank, of in ranks.items() for stream in of["streams"] for kind in ("host_wait", "kernel_wait", "other")}
    for key, us in found.items():
        expect_near(us, expected[key]["idle_time"] if key in expected else 0, 0.011, f"idle time of {key}")
    assert set(expected) <= set(found), set(expected) - set(found)
    for key, row in expected.items():
        whole = sum(us for other, us in found.items() if other[:2] == key[:2])
        if row["idle_time_ratio"] is not None:
            expect_near(found[key] / whole, row["idle_time_ratio"], 0.005 + 1e-9, f"share of idle time of {key}")


def compare(folder):
    report, hta = broken_down(folder), ask_hta_for_figures(folder)
    breakdown = report["breakdown"]
    ranks = {rank["rank"]: rank for rank in breakdown["ranks"]}
    compare_temporal(ranks, hta["temporal"])
    compare_types(breakdown["kernel_types"], hta["types"])
    compare_kernels(ranks, hta["kernels"])
    compare_idle(ranks, hta["idle"])
    for row in hta["overlap"]:
        expect_near(ranks[row["rank"]]["overlap_percent"], row["comp_comm_overlap_pctg"], POINTS / 2 + 1e-9, f"overlap of {row['rank']}")
    return report


def made_traces_are_as_hta_has_them(seed, options):
    ranks = made_up.make_ranks(seed, **options)
    folder = scratch("traces")
    made_up.write_traces(folder, ranks)
    report = compare(folder)
    values = [rank["compute_ns"] for rank in report["breakdown"]["ranks"]]
    ratio = next(row["ratio"] for row in report["breakdown"]["imbalance"] if row["part"] == "compute")
    expect_near(ratio, (max(values) - sum(values) / len(ranks)) / max(values), 1e-9, "imbalance of computation")


for name, options in (("with_fractions", {}), ("in_whole_microseconds", {"is_whole": True}), ("of_one_step", {"steps": 1}),
                      ("of_two_steps", {"steps": 2}), ("of_many_ranks", {"world": 8, "steps": 3}), ("of_one_rank", {"world": 1})):
    for seed in range(3):
        add_case(f"traces_{name}_{seed}", made_traces_are_as_hta_has_them, f"{name} {seed}", options)


@case
def traces_of_hta_are_as_hta_has_them():
    compare(OF_HTA)


@case
def ranks_are_read_alike_by_several_threads():
    folder = scratch("traces")
    made_up.write_traces(folder, made_up.make_ranks("threads", world=6))
    expect_equal(torsh("ranks", "--from-chrome", folder, "--json", "-j", "4"), torsh("ranks", "--from-chrome", folder, "--json"), "JSON")


def exposed_us(collective, computed):
    """Not covered by any kernel: brute force over all their ends."""
    _, _, start, end = collective
    bounds = sorted({start, end, *(at for span in computed for at in span if start < at < end)})
    return sum(b - a for a, b in zip(bounds, bounds[1:]) if not any(s <= a and b <= e for s, e in computed))


@case
def collectives_are_those_that_were_made_up():
    ranks, folder = made_up.make_ranks("collectives", world=3, steps=5), scratch("traces")
    made_up.write_traces(folder, ranks)
    report = broken_down(folder)
    expected = {}
    for rank in ranks:
        for one in rank.collectives:
            row = expected.setdefault((one[0], one[1].bit_length()), {"calls": 0, "bytes": 0, "total": 0, "exposed": 0})
            row["calls"] += 1
            row["bytes"] += one[1]
            row["total"] += one[3] - one[2]
            row["exposed"] += exposed_us(one, rank.computed)
    found = {(row["name"], (row["bytes"] // row["calls"]).bit_length()): row for row in report["collectives"]}
    expect_equal(sorted(found), sorted(expected), "collectives")
    for key, row in expected.items():
        expect_equal((found[key]["calls"], found[key]["bytes"]), (row["calls"], row["bytes"]), f"calls and bytes of {key}")
        expect_near(found[key]["total_ns"] / 1000, row["total"], 0.01 * row["calls"], f"us of {key}")
        expect_near(found[key]["exposed_ns"] / 1000, row["exposed"], 0.01 * row["calls"], f"exposed us of {key}")
        expect_equal((found[key]["group"], found[key]["group_size"]), ("0 of 3 ranks: [0, 1, 2]", 3), f"group of {key}")
    expect_equal(report["world_size"], 3, "world size")
    expect_equal([rank["steps"] for rank in report["ranks"]], [5] * 3, "steps")


@case
def a_late_rank_is_found_though_clocks_differ():
    folder = scratch("traces")
    made_up.write_traces(folder, made_up.make_ranks("late", world=4, steps=12, late=2))
    report = broken_down(folder)
    expect_equal([straggler["rank"] for straggler in report["stragglers"]], [2], "stragglers")
    # Without the first step, of three collectives: the first one of each step waits for it.
    assert 11 <= report["stragglers"][0]["times_last"] <= 33, report["stragglers"]
    text = torsh("ranks", "--from-chrome", folder)
    assert "Rank 2 was last in" in text and "as HolisticTraceAnalysis counts it" in text, text


@case
def nobody_is_late_where_nobody_is():
    folder = scratch("traces")
    made_up.write_traces(folder, made_up.make_ranks("even", world=4, steps=12))
    expect_equal(broken_down(folder)["stragglers"], [], "stragglers")


@case
def kernels_below_a_microsecond_are_exact_where_hta_gives_up():
    """HTA's rounding gives each a length of -1 us, and it ends with an assertion; here nothing is rounded then."""
    folder = scratch("traces")
    rank = made_up.make_ranks("short", world=1, steps=1, kernels=1)[0]
    rank.events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 1, "ts": rank.start_us + i * 2 + 0.25, "dur": 0.5,
                    "args": {"stream": 7, "correlation": i + 1}} for i in range(100)]
    made_up.write_trace(folder / "rank0.json.gz", rank, 1)
    of = broken_down(folder)["breakdown"]["ranks"][0]
    expect_equal((of["rounded"], of["total_ns"], of["compute_ns"], of["idle_ns"]), (False, 198_500, 50_000, 148_500), "figures")
    try:
        ask_hta_for_figures(folder)
    except AssertionError as error:
        assert "assert idle_time <= kernel_time" in str(error), error
    else:
        raise AssertionError("HTA has figures")


@case
def memory_does_not_grow_with_what_the_host_did():
    """Ten times the events of operators, and as many kernels: as much memory, of one rank as of several in turn."""
    folder = scratch("traces")
    rank = made_up.make_ranks("memory", world=1, steps=2)[0]
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 3, "args": {"Input Dims": [[64, 512], []]}}
    made = {}
    for n in (10_000, 100_000):
        host = [{**operator, "ts": rank.start_us + i} for i in range(n)]
        made[n] = made_up.write_trace(folder / f"{n}.json.gz", rank, 1, rank.events + host)
    few, many = (memory_of("ranks", "--from-chrome", made[n]) for n in made)
    assert many < few + 1024, f"{few} KiB, with ten times the operators {many}"


# ---- broken input ------------------------------------------------------------------------------


def expect_sentence(words, *paths):
    result = run([TORSH, "ranks", "--from-chrome", *paths])
    expect_equal(result.returncode, 2, "status")
    said = result.stderr.decode().strip()
    assert words in said and said.count("\n") == 0 and said.startswith("torsh: "), said
    expect_equal(result.stdout, b"", "output")


@case
def broken_traces_get_a_sentence_each():
    folder = scratch("traces")
    ranks = made_up.make_ranks("broken", world=2, steps=2)
    first, second = made_up.write_traces(folder, ranks)
    whole = first.read_bytes()
    for n in (len(whole) // 2, len(whole) - 4):
        (folder / "cut.json.gz").write_bytes(whole[:n])
        expect_sentence("cut.json.gz: truncated: it ends in the middle of its gzip data", second, folder / "cut.json.gz")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0x55
    (folder / "damaged.json.gz").write_bytes(damaged)
    result = run([TORSH, "ranks", "--from-chrome", folder / "damaged.json.gz"])
    expect_equal(result.returncode, 2, "status of damaged gzip data")
    for text, words in (('{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "not JSON, at byte 29"), ('{"traceEvents": [', "it ends in the middle"),
                        ("[]", "not JSON, at byte 0"), ('{"traceEvents": []} more', "more behind its end"),
                        ('{"other": 1}', "no trace of PyTorch's profiler"), ('{"traceEvents": [{"name": "a', "it ends in the middle of a text"),
                        ('{"a": ' + "[" * 1000, "64 values within each other"), ("", "it ends in the middle"),
                        ('{"traceEvents": [{"dur": 1-}]}', "not a number")):
        (folder / "bad.json").write_text(text)
        expect_sentence(f"bad.json: {words}", folder / "bad.json")
    (folder / "again.json.gz").write_bytes(whole)
    expect_sentence("are both of rank 0", first, folder / "again.json.gz", second)
    made_up.write_trace(folder / "nobody.json", ranks[1], 2, head={"schemaVersion": 1})
    expect_sentence("nobody.json: it has no rank in \"distributedInfo\"", first, folder / "nobody.json")
    expect_sentence("missing.json can't be read", folder / "missing.json")
    empty = scratch("empty")
    expect_sentence("has no traces (*.json.gz or *.json)", empty)


@case
def one_trace_without_a_rank_is_taken_for_rank_0():
    folder = scratch("traces")
    made_up.write_trace(folder / "nobody.json", made_up.make_ranks("alone", world=1)[0], 1, head={})
    result = run([TORSH, "ranks", "--from-chrome", "--json", folder / "nobody.json"])
    expect_equal(result.returncode, 0, "status")
    assert b"taken for rank 0" in result.stderr, result.stderr
    expect_equal([rank["rank"] for rank in json.loads(result.stdout)["breakdown"]["ranks"]], [0], "ranks")


@case
def a_trace_without_devices_has_no_figures():
    folder = scratch("traces")
    rank = made_up.make_ranks("host", world=1)[0]
    path = made_up.write_trace(folder / "host.json", rank, 1, [event for event in rank.events if event.get("cat") == "cpu_op"])
    of = broken_down(path)["breakdown"]["ranks"][0]
    expect_equal((of["device_events"], of["idle_percent"], of["overlap_percent"], of["streams"]), (0, None, None, []), "figures")
    torsh("ranks", "--from-chrome", path)


main()
