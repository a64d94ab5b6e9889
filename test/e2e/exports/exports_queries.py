#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Queries about memory of the exported database, against the output of the commands."""

import functools
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402


@functools.cache
def leaking():
    """The recording of a program with leaks of several classes, and its database."""
    _, output = record([PROGRAMS / "entries"])
    return output, exported(output, "t.sqlite", "--format", "sqlite", "--all")


@functools.cache
def phases():
    _, output = record([PROGRAMS / "phases"])
    return output, exported(output, "t.sqlite", "--format", "sqlite", "--all")


def ask(database, query, *values):
    return sqlite3.connect(database).execute(query, values).fetchall()


@case
def what_leaked_and_where():
    output, database = leaking()
    report = leaks(output)
    assert report["leaks"], "nothing leaks"
    expect_equal(ask(database, "select sum(bytes), sum(blocks) from leaks"), [(report["leaked_bytes"], report["leaked_blocks"])], "sums")
    for name in ("lost", "indirect", "possible", "reachable", "unknown"):
        expect_equal(ask(database, f"select coalesce(sum({name}_bytes), 0) from leaks")[0][0], report["by_class"][name]["bytes"], name)
    wanted = []
    for leak in report["leaks"]:
        frame = leak["user_frame"] or {}
        wanted.append((leak["bytes"], leak["blocks"], leak["usable_bytes"], leak["class"], leak["first_ns"], leak["last_ns"],
                       frame.get("function"), frame.get("line")))
    rows = ask(database, "select bytes, blocks, usable_bytes, class, first_ns, last_ns, iif(is_own, function, null), iif(is_own, line, null) from leaks")
    key = lambda row: tuple(str(part) for part in row)  # noqa: E731
    expect_equal(sorted(rows, key=key), sorted(wanted, key=key), "leaks")


@case
def which_line_leaks_fastest():
    output, database = leaking()
    report = leaks(output)
    (fastest,) = ask(database, "select bytes_per_s, blocks_per_s, bytes from leaks order by bytes_per_s desc limit 1")
    wanted = max(report["leaks"], key=lambda leak: leak["bytes_per_s"])
    for found, name in zip(fastest, ("bytes_per_s", "blocks_per_s", "bytes")):
        assert abs(found / wanted[name] - 1) < 1e-9, (name, found, wanted)


@case
def the_stack_of_a_leak():
    output, database = leaking()
    report = leaks(output)
    for leak in report["leaks"][:5]:
        stacks = ask(database, "select process, stack from leaks where bytes = ? and blocks = ? and first_ns = ?",
                     leak["bytes"], leak["blocks"], leak["first_ns"])
        frames = [[function for function, in ask(database, """
            with recursive s(id, n) as (values (?, 0) union all select parent, n + 1 from stacks join s using (id)
            where process = ? and parent not null)
            select f.function from s join stacks using (id) join frames f on f.process = stacks.process and f.id = frame
            where stacks.process = ? order by n, inlined""", stack, process, process)] for process, stack in stacks]
        assert [frame["function"] for frame in leak["stack"]] in frames, (leak["stack"], frames)


@case
def who_rose_between_two_marks():
    output, database = phases()
    rows = ask(database, """
        select function, line, sum(change), sum(changed_blocks) from (
            select site, h.process, h.bytes as change, h.blocks as changed_blocks from heap_series h
                join moments m on m.process = h.process and m.id = h.moment where mark = 'phase 4'
            union all select site, h.process, -h.bytes, -h.blocks from heap_series h
                join moments m on m.process = h.process and m.id = h.moment where mark = 'phase 1') changes
        join sites on sites.process = changes.process and sites.id = changes.site group by 1, 2 having sum(change) != 0""")
    report = read_report("peak", output, "--limit", "0", "--since", "phase 1", "--to", "phase 4")
    wanted = [(site["stack"][0]["function"], site["stack"][0]["line"], site["bytes"], site["blocks"])
              for site in report["holders"] + report["given_back"]]
    expect_equal(sorted(rows), sorted(wanted), "what changed")


@case
def when_a_line_had_most():
    output, database = phases()
    at_ns, size = ask(database, """select h.at_ns, sum(h.bytes) from heap_series h join sites s on s.process = h.process and s.id = h.site
        where function = 'keep_first' group by h.moment order by 2 desc, 1 limit 1""")[0]
    report = read_report("peak", output, "--limit", "0", "--at", f"{at_ns}ns")
    expect_equal(total(entries_through(report["holders"], "keep_first")), size, "what it had then")


@case
def who_held_the_peak():
    output, database = phases()
    rows = ask(database, "select peak_bytes, peak_blocks from sites where peak_blocks order by peak_bytes desc, peak_blocks desc")
    report = peak(output)
    expect_equal(sorted(rows), sorted((site["bytes"], site["blocks"]) for site in report["holders"]), "sites at the peak")
    expect_equal(ask(database, "select bytes, blocks from moments where kind = 'peak'"), [(report["peak_bytes"], report["peak_blocks"])], "the peak")


@case
def who_churns():
    output, database = phases()
    rows = ask(database, "select function, temporary_blocks, allocated_blocks, blocks_per_s from sites order by temporary_blocks desc limit 1")
    folded = dict(line.rsplit(" ", 1) for line in torsh("export", output, "--format", "folded", "--what", "temporary", "--all").splitlines())
    name = max(folded, key=lambda stack: int(folded[stack]))
    assert rows[0][0] in name and rows[0][1] <= rows[0][2], (rows, name)


@case
def what_the_agent_counted():
    for output, database in (leaking(), phases()):
        report = leaks(output)
        expect_equal(dict(ask(database, "select name, sum(value) from counters group by 1")), report["counters"], "counters")


@case
def memory_by_hand_from_the_schema():
    """Each table describes its columns: a reader needs nothing else."""
    _, database = leaking()
    schema = dict(ask(database, "select name, sql from sqlite_schema where type = 'table'"))
    for table in ("sites", "moments", "heap_series", "leaks", "counters", "kernel_counters", "calls", "waits"):
        assert "--" in schema[table], f"{table} has no comment"
        columns = [column for _, column, *_ in ask(database, f"pragma table_info({table})")]
        assert "process" in columns, columns
    for query in ("select * from heap_series where process = 1 and site = 3", "select * from heap_series where process = 1 and moment = 5"):
        plan = ask(database, f"explain query plan {query}")
        assert "USING INDEX" in plan[0][3], (query, plan)


main()
