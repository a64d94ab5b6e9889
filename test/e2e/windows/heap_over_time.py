#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The heap over time by allocation site: every export has for a moment what torsh peak has."""

import collections
import csv
import functools
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import run_python  # noqa: E402
from exported import exported  # noqa: E402
from html_report import opened, written  # noqa: E402

SOURCE = "phases.c"
STEPS = """import torsh
kept = []
for i in range(20):
    torsh.step(i)
    kept.append(bytearray(100000))
"""


@functools.cache
def phases():
    return record([PROGRAMS / "phases"])[1]


@functools.cache
def stepped():
    result, output = record([sys.executable, "-c", STEPS], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1})
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    return output


def database(output, *arguments):
    return sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite", *arguments))


def own_frame(site):
    """(function, line) of the innermost frame that is the program's own."""
    frame = next(frame for frame in site["stack"] if (frame["file"] or "").endswith(SOURCE))
    return frame["function"], frame["line"]


def by_line(report):
    """(bytes, blocks) by (function, line)."""
    found = collections.defaultdict(lambda: [0, 0])
    for site in report["holders"]:
        found[own_frame(site)][0] += site["bytes"]
        found[own_frame(site)][1] += site["blocks"]
    return {line: tuple(amount) for line, amount in found.items() if tuple(amount) != (0, 0)}


def shown_at(output, at_ns):
    report = read_report("peak", output, "--limit", "0", "--at", f"{at_ns}ns")
    (process,) = report["moments"]
    expect_equal(process["at"]["at_ns"], at_ns, "the moment")
    return report


def series_of(db):
    """By moment: (bytes, blocks) by (function, line)."""
    found = collections.defaultdict(dict)
    for moment, function, line, size, blocks in db.execute(
            "select moment, function, line, sum(bytes), sum(blocks) from heap_series s join sites on sites.process = s.process "
            "and sites.id = s.site group by 1, 2, 3"):
        found[moment][function, line] = size, blocks
    return found


@case
def the_series_is_what_the_command_says_of_each_moment():
    output = phases()
    for arguments in ((), ("--all",)):
        db = database(output, *arguments)
        series, moments = series_of(db), db.execute("select id, at_ns, kind, mark, bytes, blocks from moments order by id").fetchall()
        expect_equal({kind for _, _, kind, *_ in moments} - {"rss"}, {"start", "time", "mark", "peak", "end"}, "kinds of moments")
        assert [at for _, at, *_ in moments] == sorted(at for _, at, *_ in moments), "the order of time"
        for number, at_ns, _, _, size, blocks in moments:
            expect_equal(tuple(map(sum, zip(*series[number].values()))) or (0, 0), (size, blocks), f"sums at {at_ns}")
        for number, at_ns, kind, mark, size, blocks in moments:
            if kind != "mark" and number % 16:
                continue
            report = shown_at(output, at_ns)
            expect_equal((report["bytes"], report["blocks"]), (size, blocks), f"the heap at {at_ns}")
            found = dict(series[number])
            others = found.pop((None, None), (0, 0))
            wanted = by_line(report)
            for line, amount in found.items():
                expect_equal(amount, wanted.pop(line), f"{line} at {kind} {mark or at_ns}")
            expect_equal(others, tuple(map(sum, zip(*wanted.values()))) or (0, 0), "the others")
            assert not others[0] or not arguments, "--all has no others"


@case
def sites_have_what_they_allocated():
    output = phases()
    db = database(output, "--all")
    rows = {function: rest for function, *rest in db.execute(
        "select function, sum(allocated_blocks), sum(allocated_bytes), sum(temporary_blocks), sum(live_blocks), sum(live_bytes), sum(peak_bytes) "
        "from sites where function like 'keep_%' group by 1")}
    highest, left = peak(output), leaks(output)
    for name, (allocated, size, temporary, live, live_bytes, at_peak) in rows.items():
        expect_equal(at_peak, total(entries_through(highest["holders"], name)), f"{name} at the peak")
        # What is still reachable is no leak: what the end has of a site is in its moment.
        report = shown_at(output, db.execute("select at_ns from moments where kind = 'end'").fetchone()[0])
        expect_equal((live_bytes, live), (total(entries_through(report["holders"], name)),
                                          total(entries_through(report["holders"], name), "blocks")), f"{name} at the end")
        assert allocated > live and size > live_bytes and temporary <= allocated, name
    # Rates are of the time between the process's begin and its end.
    start, end = db.execute("select start_ns, (select at_ns from moments where kind = 'end') from processes").fetchone()
    for allocated, size, blocks_per_s, bytes_per_s in db.execute("select allocated_blocks, allocated_bytes, blocks_per_s, bytes_per_s from sites"):
        seconds = (end - start) / 1e9
        assert abs(blocks_per_s * seconds - allocated) < 1e-6 * allocated and abs(bytes_per_s * seconds - size) < 1e-6 * size, (allocated, size)
    sums = db.execute("select sum(allocated_blocks), sum(allocated_bytes) from sites").fetchone()
    expect_equal(sums, database(output).execute("select sum(allocated_blocks), sum(allocated_bytes) from sites").fetchone(), "sums without --all")
    assert left["alive"]["bytes"] == db.execute("select sum(live_bytes) from sites").fetchone()[0], "what is alive"


@case
def as_csv_it_is_the_same():
    output = phases()
    with open(exported(output, "t.csv", "--format", "series"), newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    db = database(output)
    wanted = db.execute("select h.at_ns, m.kind, coalesce(mark, ''), site, coalesce(function, ''), coalesce(line, ''), h.bytes, h.blocks "
                        "from heap_series h join moments m on m.process = h.process and m.id = moment "
                        "join sites on sites.process = h.process and sites.id = site order by moment, site").fetchall()
    expect_equal([(row["at_ns"], row["moment"], row["mark"], row["site"], row["function"], row["line"], row["bytes"], row["blocks"]) for row in rows],
                 [tuple(map(str, row)) for row in wanted], "lines")
    (pid,) = {row["process_id"] for row in rows}
    expect_equal(int(pid), peak(output)["pid"], "process")


@case
def steps_are_moments_of_the_series():
    db = database(stepped(), "--all")
    ends = db.execute("select step, bytes, id from moments where kind = 'step' and step is not null order by step").fetchall()
    expect_equal([step for step, *_ in ends], list(range(19)), "ends of steps")
    for step, size, number in ends:
        expect_equal(size, read_report("peak", stepped(), "--step", str(step))["bytes"], f"the heap at the end of step {step}")
        (size,) = db.execute("select sum(bytes) from heap_series h join sites s on s.id = site and s.process = h.process "
                             "where moment = ? and line = 5 and file = '<string>'", (number,)).fetchone()
        assert 0 <= size - (step + 1) * 100001 < 8192, (step, size)


@case
def tensorboard_has_it_by_step():
    folder = exported(stepped(), "board", "--format", "tensorboard")
    found = run_python("""
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
""", folder)
    db = database(stepped())
    ends = db.execute("select step, bytes from moments where kind = 'step' and step is not null order by step").fetchall()
    whole = found["heap_MiB/all"]
    expect_equal([step for step, _ in whole], [step for step, _ in ends], "steps")
    for (_, value), (_, size) in zip(whole, ends):
        assert abs(value - size / 2**20) < 1e-5, (value, size)
    parts = [values for tag, values in found.items() if tag.startswith("heap_MiB/") and not tag.endswith("/all")]
    assert len(parts) > 2, sorted(found)
    for i, (step, value) in enumerate(whole):
        assert abs(sum(part[i][1] for part in parts) - value) < 1e-4, f"the parts of step {step}"
    (grown,) = [values for tag, values in found.items() if tag.startswith("heap_MiB/01 ")]
    assert abs(grown[-1][1] - grown[0][1] - 18 * 100001 / 2**20) < 4096 / 2**20, grown


@case
def the_page_stacks_its_lines():
    output = phases()
    db = database(output, "--all")
    with opened(written(output)) as report:
        report.open("memory")
        rows = report.js("[...document.querySelectorAll('#rise .table-scroll tbody tr')].map(row => [...row.cells].map(cell => [cell.title, cell.textContent]))")
        assert report.js("document.querySelectorAll('#rise canvas').length") == 1, "there is no chart"
        report.open("memory", width=400)
    found = {text.split()[-1] + text.split()[0].rpartition(":")[2]: (most, end) for (most, _), _, (end, _), (_, text) in rows}
    for function, line, most, end in db.execute(
            "select function, line, max(h.bytes), (select e.bytes from heap_series e join moments m on m.process = e.process and m.id = e.moment "
            "where m.kind = 'end' and e.site = h.site) from heap_series h join sites on sites.id = h.site group by h.site"):
        expect_equal(found[f"{function}{line}"], (f"{most:,} bytes", f"{end or 0:,} bytes"), f"{function}:{line}")


main()
