#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh ranks, of real trainings over gloo: planted stragglers are found with their cause, and jobs without one have none. The
truth is when each rank says that it began its backward passes, by the one clock of this machine.
"""

import json
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from html_report import expect_sealed, opened  # noqa: E402
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

all_are_quiet()

PROGRAM = ROOT / "test/python/ranks/ranks_job.py"
STEPS = 40
LATE = 1
WITHOUT_HEAP = "torch,python"
# What a rank does more than the others, and as what that has to be found.
CAUSES = {"sleep": "python", "gc": "garbage_collection", "data": "data_loading", "more_compute": "more_compute",
          "slow_compute": "slow_compute", "allocate": "allocation", "faults": "page_faults"}
SHORT = ("gc", "data")


def trained(world, kind=None, activities=WITHOUT_HEAP):
    """The report of such a job, its recording, and by rank when its backward passes began."""
    def make(folder):
        env = {"TORSH_PROFILER_WITH_STACK": "0", "TORSH_PROFILER_ACTIVITIES": activities}
        late = [kind, str(LATE)] if kind else []
        command = [torch_python(), "-W", "ignore", PROGRAM, folder, str(world), str(STEPS), *late]
        result, output = record(command, folder / "out", env=env, timeout=600)
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
        return str(output), [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]
    output, began = once(f"ranks-{world}-{kind}", make)
    report = json.loads(torsh("ranks", output, "--json"))
    expect_fits("ranks", report)
    expect_equal(report["world_size"], world, "world size")
    return report, output, began


def lateness(began):
    """
    By rank: in how many steps it was last, and the ns by which it was later than the others' median. The first step is
    left out.
    """
    times, cost = [0] * len(began), [0] * len(began)
    for moments in list(zip(*began))[1:]:
        last = max(range(len(moments)), key=moments.__getitem__)
        others = [at for rank, at in enumerate(moments) if rank != last]
        times[last] += 1
        cost[last] += moments[last] - statistics.median_low(others)
    return times, cost


def expect_straggler(kind, activities=WITHOUT_HEAP):
    report, output, began = trained(2, kind, activities)
    times, cost = lateness(began)
    straggler, = report["stragglers"]
    print(f"{kind}: {straggler}; by its own clock last {times[LATE]} times, {cost[LATE] / 1e6:.1f} ms")
    expect_equal(straggler["rank"], LATE, "the straggler")
    # Between the backward pass's begin and its all-reduce is the pass itself, in which a rank may lose its CPU.
    assert abs(straggler["times_last"] - times[LATE]) <= 3, (straggler, times)
    assert abs(straggler["cost_ns"] - cost[LATE]) <= 0.25 * cost[LATE], (straggler, cost)
    cause = straggler["causes"][0]
    expect_equal(cause["kind"], CAUSES[kind], f"the cause: {straggler['causes']}")
    assert cause["share"] > 0.5 and cause["evidence"], cause


@needs("torch")
def a_late_rank_is_found(kind):
    expect_straggler(kind, "heap,torch,python" if kind == "allocate" else WITHOUT_HEAP)


for _kind in CAUSES:
    _add = add_case if _kind in SHORT else add_long_case
    _add(f"a_rank_that_is_late_by_{_kind}_is_found", a_late_rank_is_found, _kind)


def expect_none(world):
    """On a machine that others use, a rank may be late without a cause of its own: then its own clock has that as well."""
    report, _, began = trained(world)
    times, cost = lateness(began)
    whole = statistics.median(rank[-1] - rank[1] for rank in began)
    print(f"{world} ranks: last {times} times, {[round(ns / whole, 3) for ns in cost]} of the time; {report['stragglers']}")
    for straggler in report["stragglers"]:
        rank = straggler["rank"]
        assert cost[rank] > 0.04 * whole and times[rank] > len(began[0]) / world, (straggler, times, cost)


@case
@needs("torch")
def two_equal_ranks_have_no_straggler():
    expect_none(2)


@case
@needs("torch")
def four_equal_ranks_have_no_straggler():
    expect_none(4)


# Of each cell of the heat map: its title, how dark it is, and whether it is what is seen at its middle.
CELLS = """(() => {
    return [...document.querySelectorAll("#heat svg rect")].map(cell => {
        cell.scrollIntoView({block: "center", inline: "center"});
        const box = cell.getBoundingClientRect();
        const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return [cell.querySelector("title").textContent, Number(getComputedStyle(cell).fillOpacity), seen === cell, Number(cell.getAttribute("y"))];
    });
})()"""


def expect_heat(page, report, late):
    """The cells are those of the JSON; the late rank's are darker than the other's of the same step."""
    rows, steps_each = report["heatmap"]["own_ns"], report["heatmap"]["steps_per_bucket"]
    expect_equal(steps_each, 1, "steps of a cell")
    cells = {}
    for title, opacity, is_seen, top in page.js(CELLS):
        rank, step = map(int, re.match(r"rank (\d+), step (\d+): \d", title).groups())
        assert is_seen, f"something covers the cell of {title}"
        cells[rank, step] = opacity, top
    expect_equal(set(cells), {(rank, step) for rank, row in enumerate(rows) for step, ns in enumerate(row) if ns}, "cells")
    expect_equal(len({top for _, top in cells.values()}), len(rows), "rows of cells")
    for opacity in {opacity for opacity, _ in cells.values()}:
        assert 0 < opacity <= 1, opacity
    both = [step for step in range(1, STEPS) if (late, step) in cells and (1 - late, step) in cells]
    darker = sum(cells[late, step][0] > cells[1 - late, step][0] for step in both)
    print(f"the late rank's cell is darker in {darker} of {len(both)} steps")
    slower = sum(rows[late][step] > 1.5 * rows[1 - late][step] for step in both)
    assert darker >= slower > len(both) / 2, (darker, slower)


@case
@needs("torch")
def the_page_shows_the_straggler_and_the_heat_map():
    report, output, _ = trained(2, "sleep")
    path = scratch("page") / "ranks.html"
    torsh("ranks", output, "--html", "-o", path)
    expect_sealed(path)
    straggler, = report["stragglers"]
    with opened(path) as page:
        for width in (1280, 400):
            page.open(width=width)
            said, = page.texts(".straggler p")
            assert said.startswith(f"rank {LATE} was last in {straggler['times_last']} of {straggler['compared']} collectives"), said
            causes = page.texts(".straggler li")
            expect_equal(len(causes), len(straggler["causes"]), "causes")
            assert "python" in causes[0] and straggler["causes"][0]["evidence"] in causes[0], causes
            expect_heat(page, report, LATE)
            labels = page.js("[...document.querySelectorAll('#heat text')].map(one => [one.textContent, one.getAttribute('font-weight')])")
            expect_equal(labels, [["rank 0", "normal"], ["rank 1", "bold"]], "labels of the heat map's rows")
            assert page.js("document.documentElement.scrollWidth") <= width, f"it is wider than {width}"
        expect_equal(len(page.texts("#ranks tbody tr")), 2, "rows of ranks")
        expect_equal(len(page.texts("#collectives tbody tr")), len(report["collectives"]), "rows of collectives")


@case
@needs("torch")
def the_page_of_equal_ranks_shows_what_the_report_has():
    report, output, _ = trained(2)
    path = scratch("page") / "ranks.html"
    torsh("ranks", output, "--html", "-o", path)
    with opened(path) as page:
        page.open()
        expect_equal(len(page.texts(".straggler")), len(report["stragglers"]), "stragglers")
        expect_equal(page.texts("#stragglers h2"), ["Stragglers" if report["stragglers"] else "No stragglers"], "heading")
        expect_equal(len(page.js(CELLS)), sum(ns > 0 for row in report["heatmap"]["own_ns"] for ns in row), "cells")


@case
@needs("torch")
def a_rank_that_runs_other_operators_is_an_outlier():
    report, output, _ = trained(4, "more_compute")
    outlier, = report["outliers"]
    expect_equal((outlier["rank"], report["outliers_reason"]), (LATE, None), "the outlier")
    most = outlier["differences"][0]
    expect_equal((most["kind"], most["path"].split(" > ")[-1]), ("more calls", "aten::mm"), "what it does otherwise")
    # One product a step is the backward pass's on each rank.
    expect_equal(most["others_calls"], STEPS, "calls of the others")
    assert most["calls"] > 10 * STEPS and most["step_ns"] > most["others_step_ns"], most
    text = torsh("ranks", output)
    assert f"rank {LATE}: " in text and "more calls: aten::mm" in text, text


@case
@needs("torch")
def equal_ranks_have_no_outlier():
    report, _, _ = trained(4)
    expect_equal((report["outliers"], report["outliers_reason"]), ([], None), "outliers")
    report, _, _ = trained(2)
    expect_equal(report["outliers"], None, "outliers of two ranks")
    assert "three ranks" in report["outliers_reason"], report["outliers_reason"]


# Of each row of a table: the texts of its cells, the whole path, and whether it can be seen.
DIFFERENCES = """[...document.querySelectorAll("#outliers tbody tr")].map(row => {
    row.scrollIntoView({block: "center"});
    const cells = [...row.children], box = cells[1].getBoundingClientRect();
    const seen = document.elementFromPoint(box.x + Math.min(box.width, 20) / 2, box.y + box.height / 2);
    return [cells.slice(0, 4).map(cell => cell.textContent), cells[1].querySelector("span").title, cells[1].contains(seen)];
})"""


@case
@needs("torch")
def the_page_shows_the_outlier_and_what_it_does_otherwise():
    report, output, _ = trained(4, "more_compute")
    path = scratch("page") / "ranks.html"
    torsh("ranks", output, "--html", "-o", path)
    expect_sealed(path)
    outlier, = report["outliers"]
    with opened(path) as page:
        for width in (1280, 400):
            page.open(width=width)
            said, = page.texts("#outliers .outlier p")
            assert re.fullmatch(rf"rank {LATE} differs in [\d.]+\s?% of a step\.", said), said
            rows = page.js(DIFFERENCES)
            expect_equal(len(rows), len(outlier["differences"]), "differences")
            by_share = sorted(outlier["differences"], key=lambda row: -row["share"])
            for (texts, whole, is_seen), row in zip(rows, by_share):
                expect_equal(texts, [row["kind"], row["path"].split(" > ")[-1], f"{row['calls']:,}", f"{row['others_calls']:,}"], "cells")
                expect_equal((whole, is_seen), (row["path"], True), "the whole path, and whether it is seen")
            assert page.js("document.documentElement.scrollWidth") <= width, f"it is wider than {width}"
        page.expect_quiet()


@case
@needs("torch")
def the_page_of_ranks_that_do_the_same_names_no_outlier():
    for world in (4, 2):  # two ranks are not compared
        _, output, _ = trained(world)
        path = scratch("page") / "ranks.html"
        torsh("ranks", output, "--html", "-o", path)
        with opened(path) as page:
            page.open()
            expect_equal(page.js("document.querySelector('#outliers')"), None, "outliers")


@case
@needs("torch")
def folds_of_ranks_merge_to_the_fold_of_the_recording():
    _, output, _ = trained(4)
    folder = scratch("folds")
    for rank in range(4):
        torsh("fold", output, "--rank", str(rank), "-o", folder / f"{rank}.fold")
    torsh("fold", output, "-o", folder / "whole")
    whole = (folder / "whole").read_bytes()
    orders = ([0, 1, 2, 3], [3, 1, 0, 2])
    for jobs, order in zip(("1", "3"), orders):
        torsh("merge", *[folder / f"{rank}.fold" for rank in order], "-j", jobs, "-o", folder / "merged")
        expect_equal((folder / "merged").read_bytes() == whole, True, f"the merged fold is the recording's ({order})")
    torsh("merge", output, "-o", folder / "merged")
    expect_equal((folder / "merged").read_bytes() == whole, True, "the merged recording is its fold")
    report = json.loads(torsh("ranks", folder / "whole", "--json"))
    expect_equal(report, json.loads(torsh("ranks", output, "--json")), "the reports of the fold and of the recording")
    print(f"{len(whole)} bytes for 4 ranks")


@case
@needs("torch")
def all_reduces_are_those_of_the_program():
    report, _, _ = trained(2, "sleep")
    reduced = [row for row in report["collectives"] if row["name"] == "allreduce"]
    parameters = 64 * 64 + 64 + 64 * 8 + 8
    expect_equal(sum(row["calls"] for row in reduced), 2 * STEPS, "all-reduces of both ranks")
    expect_equal(sum(row["bytes"] for row in reduced), 2 * STEPS * 4 * parameters, "their bytes")
    expect_equal({row["group_size"] for row in report["collectives"]}, {2}, "sizes of groups")


@case
@needs("torch")
def bad_folds_are_refused_with_a_sentence():
    _, output, _ = trained(2, "sleep")
    folder = scratch("bad")
    torsh("fold", output, "--rank", "0", "-o", folder / "good.fold")
    good = (folder / "good.fold").read_bytes()
    for name, text, expected in (("text", b"no fold at all, but long", "too short for a recording"),
                                 ("cut", good[:-1], "is cut off"), ("long", good + b"x", "behind its end"),
                                 ("later", good[:8] + b"\x09" + good[9:], "has format 9")):
        (folder / name).write_bytes(text)
        result = run([TORSH, "ranks", folder / name, folder / "good.fold"])
        expect_equal(result.returncode, 2, f"status with a fold that is {name}")
        assert re.search(expected, result.stderr.decode()), (name, result.stderr)
    result = run([TORSH, "merge", folder / "good.fold", folder / "good.fold", "-o", folder / "twice"])
    expect_equal((result.returncode, (folder / "twice").exists()), (2, False), "a rank that comes twice")
    assert b"both have rank 0" in result.stderr, result.stderr


main()
