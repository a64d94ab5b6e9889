#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh diff and torsh check --baseline on pairs of programs that differ in one thing: what is called a change, where it is shown to
be, and that each figure is the one that the other commands print of each recording.
"""

import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import made  # noqa: E402
from html_report import data_of, expect_sealed, opened  # noqa: E402
from schema import expect_fits  # noqa: E402

# %(above)s lines stand above; parse leaks %(leaked)s bytes of each call.
SERVER = """#include <stdlib.h>
#include <string.h>
static void *volatile sink;
%(above)s
__attribute__((noinline)) char *%(parse)s(int n) {
	char *p = malloc(n);
	memset(p, 1, n);
	return p;
}
__attribute__((noinline)) void handle(void) { sink = %(parse)s(4096); if (%(frees)s) free(sink); sink = %(parse)s(%(leaked)s); }
__attribute__((noinline)) void cache(void) { sink = calloc(1, 20000); memset(sink, 1, 10); }
int main(void) {
	for (int i = 0; i < 50; i++) handle();
	cache();
	return 0;
}
"""
PLAIN = {"above": "", "parse": "parse", "frees": 0, "leaked": 1}


def server(name, flags=(), env=None, source="srv.c", **parts):
    """The recording of such a program, built in a folder of its own."""
    folder = scratch(f"{name}/source")
    (folder / source).write_text(SERVER % {**PLAIN, **parts})
    built = run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", *flags, "-o", folder / "srv", folder / source])
    expect_equal(built.returncode, 0, built.stderr.decode())
    result, output = record([folder / "srv"], scratch(f"{name}/out"), env=env)
    expect_equal(result.returncode, 0, "status")
    return output


def diff(*arguments, expect=0):
    document = json.loads(torsh("diff", "--json", "--limit", "0", *arguments, expect=expect))
    expect_fits("diff", document)
    return document


def pair(change):
    return change["before"], change["after"]


def sites(document, status):
    return [(pathlib.Path(site["user_frame"]["file"]).name, site["user_frame"]["line"], *pair(site["bytes"]))
            for site in document["sites"] if site["status"] == status]


def expect_totals(document, before, after):
    """The totals are those of torsh leaks and torsh peak."""
    expect_equal([pair(document["totals"][name]) for name in ("leaked_bytes", "leaked_blocks", "peak_bytes")],
                 [(leaks(before)["leaked_bytes"], leaks(after)["leaked_bytes"]),
                  (leaks(before)["leaked_blocks"], leaks(after)["leaked_blocks"]),
                  (peak(before)["peak_bytes"], peak(after)["peak_bytes"])], "totals")
    for total in document["totals"].values():
        expect_equal(total["change"], None if total["before"] is None else total["after"] - total["before"], "change")
    for side, recording in (("before", before), ("after", after)):
        expect_equal(sum(site["bytes"][side] for site in document["sites"]), leaks(recording)["leaked_bytes"], f"bytes of all sites {side}")


@case
def a_fixed_leak_is_fixed_and_the_rest_the_same():
    before, after = server("before"), server("after", frees=1)
    document = diff(before, after)
    expect_totals(document, before, after)
    expect_equal(sites(document, "better"), [("srv.c", 6, 50 * 4097, 50)], "better")
    expect_equal((sites(document, "same"), sites(document, "new"), sites(document, "fixed")),
                 ([("srv.c", 11, 20000, 20000)], [], []), "the same, new and fixed")
    expect_equal(sites(diff(before, after, "--min-bytes", "300K"), "better"), [], "what changed by 300 KiB")
    text = torsh("diff", before, after)
    assert "Better" in text and "srv.c:6 parse ‹ handle ‹ main" in text and "-200 KiB" in text, text


@case
def a_leak_that_is_gone_or_made_is_fixed_or_new():
    empty = server("empty", frees=1, above="static char room[8192];\n#define malloc(n) ((void)(n), (void *)room)\n#define free(p) (void)(p)")
    full = server("full")
    expect_equal((sites(diff(full, empty), "fixed"), sites(diff(full, empty), "new")), ([("srv.c", 6, 50 * 4097, 0)], []), "fixed")
    expect_equal((sites(diff(empty, full), "new"), sites(diff(empty, full), "fixed")), ([("srv.c", 6, 0, 50 * 4097)], []), "new")


@case
def a_worse_leak_is_over_its_limit():
    before, after = server("before"), server("after", leaked=100)
    document = diff(before, after)
    expect_equal(sites(document, "worse"), [("srv.c", 6, 50 * 4097, 50 * 4196)], "worse")
    expect_equal(document["passed"], True, "without a limit all passes")
    for status, *arguments in ((1, "--max-leak", "2%"), (0, "--max-leak", "3%"), (1, "--max-leak", "4K"), (0, "--max-leak", "5K"),
                               (1, "--max-growth", "2%"), (0, "--max-growth", "3%"), (1, "--max-peak", "1%"), (0, "--max-leak", "1M")):
        expect_equal(diff(before, after, *arguments, expect=status)["passed"], status == 0, f"passed with {arguments}")
    diff(after, before, "--max-growth", "0%")


@case
def moved_and_renamed_lines_are_one():
    before, after = server("before"), server("after", above="\n" * 10, parse="parse_line")
    document = diff(before, after)
    expect_equal(sites(document, "same"), [("srv.c", 16, 50 * 4097, 50 * 4097), ("srv.c", 21, 20000, 20000)], "the same")
    expect_equal(len(document["sites"]), 2, "sites")
    renamed, moved = document["sites"]
    expect_equal((renamed["renamed"], renamed["moved_from"]["line"]), ({"from": "parse", "to": "parse_line"}, 6), "renamed and moved")
    expect_equal((moved["renamed"], moved["moved_from"]["line"]), (None, 11), "moved")
    assert "srv.c:16 parse_line" in torsh("diff", before, after) and "was at srv.c:6, parse_line was parse" in torsh("diff", before, after)


@case
def functions_of_a_renamed_file_are_moved():
    before, after = server("before", source="a.c"), server("after", source="b.c", above="\n" * 3)
    document = diff(before, after)
    expect_totals(document, before, after)
    expect_equal(sites(document, "same"), [("b.c", 9, 50 * 4097, 50 * 4097), ("b.c", 14, 20000, 20000)], "the same")
    expect_equal([(pathlib.Path(site["moved_from"]["file"]).name, site["moved_from"]["line"], site["renamed"]) for site in document["sites"]],
                 [("a.c", 6, None), ("a.c", 11, None)], "moved from")
    assert "b.c:9 parse" in torsh("diff", before, after) and "was at a.c:6" in torsh("diff", before, after)
    [worse] = sites(diff(before, server("worse", source="b.c", leaked=100)), "worse")
    expect_equal(worse, ("b.c", 6, 50 * 4097, 50 * 4196), "worse and moved")


# parse is in one of two files, both of which are in each build.
IN_TWO_FILES = {
    "main.c": """#include <stdlib.h>
static void *volatile sink;
char *parse(int n);
void open_all(void);
%(main)s
__attribute__((noinline)) void handle(void) { sink = parse(4096); }
int main(void) {
	for (int i = 0; i < 50; i++) handle();
	open_all();
	return 0;
}
""",
    "data.c": """#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) void open_all(void) { sink = malloc(20000); }
%(data)s
""",
}
PARSE = "__attribute__((noinline)) char *parse(int n) {\n\treturn malloc(n + 1);\n}"


@case
def a_function_that_moves_to_another_file_is_the_same():
    outputs = []
    for place in ("main", "data"):
        folder = scratch(f"{place}/source")
        for name, text in IN_TWO_FILES.items():
            (folder / name).write_text(text % {"main": "", "data": "", place: PARSE})
        built = run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", folder / "srv", *(folder / name for name in IN_TWO_FILES)])
        expect_equal(built.returncode, 0, built.stderr.decode())
        result, output = record([folder / "srv"], scratch(f"{place}/out"))
        expect_equal(result.returncode, 0, "status")
        outputs.append(output)
    document = diff(*outputs)
    expect_equal(sorted(sites(document, "same")), [("data.c", 3, 20000, 20000), ("data.c", 5, 50 * 4097, 50 * 4097)], "the same")
    moved = [(pathlib.Path(site["moved_from"]["file"]).name, site["moved_from"]["line"]) for site in document["sites"] if site["moved_from"]]
    expect_equal((moved, len(document["sites"])), ([("main.c", 6)], 2), "moved from")


@case
def who_held_the_peak_is_compared():
    before, after = server("before"), server("after", leaked=100)
    document = diff(before, after)
    rows = [(row["status"], row["user_frame"] and row["user_frame"]["line"], *pair(row["bytes"])) for row in document["peak"]]
    assert ("worse", 6, 50 * 4097, 50 * 4196) in rows and ("same", 11, 20000, 20000) in rows, rows
    for side, recording in (("before", before), ("after", after)):
        expect_equal(sum(row["bytes"][side] for row in document["peak"]), peak(recording)["attributed_bytes"], f"bytes of all holders {side}")
    text = torsh("diff", before, after)
    assert "held at the peak: 1 changed, 1 the same" in text, text


@case
def the_page_has_the_time_of_operators_and_modules():
    before, _ = made(ranks=2, operators=202)
    kept, page = scratch("kept") / "before.torsh", scratch("page") / "diff.html"
    kept.write_bytes(pathlib.Path(before).read_bytes())
    after, _ = made(ranks=2, operators=404)
    torsh("diff", "--html", "-o", page, kept, after)
    document = data_of(page)["diff"]
    with opened(page) as report:
        report.open()
        for source, root, table in (("stacks", "time in operators", "ops"), ("modules", "time in modules", "modules")):
            report.click(f"#flame [data-value={source}]")
            report.js("document.querySelector('.icicle canvas').focus()")
            report.press("Escape")
            report.until(f"document.querySelector('#flame [role=status]').textContent.startsWith('{root}')")
            report.type("#flame-search", document[table][0]["name"].split(":")[0])
            assert "before 0" not in report.texts("#flame [role=status]")[0], report.texts("#flame [role=status]")


@case
def the_page_shows_the_same_changes():
    before, after = server("before"), server("after", frees=1, above="\n")
    page, hostile = scratch("page") / "diff.html", scratch("hostile<") / "script><img src=x>.torsh"
    shutil.copy(next(before.glob("*.torsh")), hostile)
    torsh("diff", "--html", "-o", page, hostile, after)
    expect_sealed(page)
    document = data_of(page)
    expect_equal((document["before"], document["after"]), ([str(hostile)], [str(after)]), "paths")
    expect_equal(document["diff"], diff(hostile, after), "what the page has")
    with opened(page) as report:
        for width in (400, 1280):
            report.open(width=width)
            assert report.js("document.documentElement.scrollWidth") <= width, f"the page is wider than {width}"
        expect_equal(report.texts("#sites tbody tr.opens td:first-child span").count("better"), 1, "rows that are better")
        expect_equal(report.js("document.querySelectorAll('img').length"), 0, "images")
        pixels = "document.querySelector('.icicle canvas').toDataURL()"
        report.until(f"{pixels}.length > 1000")
        narrow = report.js(pixels)
        report.click("#flame [data-value=before]")
        assert report.js(pixels) != narrow, "the width by before is that by after"
        report.js("document.querySelector('.icicle canvas').focus()")
        for key in ("ArrowDown", "Enter"):
            report.press(key)
        assert "before" in report.texts("#flame [role=status]")[0], report.texts("#flame [role=status]")
        report.click("#sites .opener")
        assert report.texts("#sites .details li"), "a row opens no stack"
        of_leaks = report.js(pixels)
        report.click("#flame [data-value=peak]")
        assert report.js(pixels) != of_leaks, "the flame graph of the peak is that of leaks"
        report.press("Escape")
        report.until("document.querySelector('#flame [role=status]').textContent.startsWith('held at the peak')")
        [status], whole = report.texts("#flame [role=status]"), re.search(r"^heap peak +(\S+ \S+)", torsh("diff", before, after), re.M)[1]
        assert f"before {whole}," in status, (whole, status)
        assert report.texts("#peak tbody tr"), "no table of the peak"
        report.screenshot(BUILD / "test/screens/diff.png")
    torsh("diff", "-o", page, before, after, expect=2)


@case
def another_address_and_another_path_are_the_same():
    before = server("before", flags=["-no-pie"])
    for name, flags in (("pie", ["-pie", "-fPIE"]), ("far", ["-no-pie", "-Wl,-Ttext-segment=0x10000000"])):
        document = diff(before, server(name, flags=flags))
        expect_equal({(site["status"], site["moved_from"]) for site in document["sites"]}, {("same", None)}, name)
        expect_equal([total["is_change"] for total in document["totals"].values()], [False] * 4, "totals that changed")


@case
def equal_runs_have_no_change():
    runs = [server(f"run{i}") for i in range(4)]
    document = diff(*runs[:2], "--", *runs[2:])
    expect_equal(document["runs"], {"before": 2, "after": 2}, "runs")
    expect_equal({site["status"] for site in document["sites"]}, {"same"}, "statuses")
    expect_equal(document["totals"]["leaked_bytes"], {"before": 50 * 4097 + 20000, "after": 50 * 4097 + 20000, "change": 0, "spread": 0,
                                                      "is_change": False}, "leaked bytes")
    diff("--max-growth", "0%", *runs[:2], "--", *runs[2:])


@case
def runs_that_differ_among_themselves_show_their_spread():
    sizes = (100, 120, 140, 121, 119, 122, 160, 161, 162)
    runs = [server(f"run{i}", leaked=size * 100) for i, size in enumerate(sizes)]
    [noisy] = [site for site in diff(*runs[:3], "--", *runs[3:6])["sites"] if site["user_frame"]["line"] == 6]
    expect_equal((noisy["status"], noisy["bytes"]["is_change"]), ("same", False), "within the spread")
    assert noisy["bytes"]["spread"] >= 50 * 4000, "a spread below the distance of two runs"
    [worse] = [site for site in diff(*runs[3:6], "--", *runs[6:])["sites"] if site["user_frame"]["line"] == 6]
    expect_equal((worse["status"], pair(worse["bytes"])), ("worse", (50 * (4096 + 12100), 50 * (4096 + 16100))), "beyond the spread")
    # Two sites and four degrees of freedom: t is 5.598; the standard deviation is 1.291 hundreds of bytes in each of 50 blocks.
    expect_equal(round(worse["bytes"]["spread"] / (50 * 100), 2), round(5.598 * 1.291 * (2 / 3) ** 0.5, 2), "spread in hundreds of bytes of a block")


@case
def what_can_not_be_compared_is_a_sentence():
    heap, (timeline, _) = server("heap"), made(ranks=2, operators=202)
    without = server("without", env={"TORSH_PROFILER_ACTIVITIES": "torch"})
    document = diff(heap, without)
    expect_equal([document["totals"][name]["after"] for name in ("leaked_bytes", "peak_bytes")], [None, None], "totals without a heap")
    expect_equal(document["notes"], ["AFTER has no recorded heap: not compared", "neither BEFORE nor AFTER has steps: not compared"], "notes")
    expect_equal(diff(heap, without, "--max-leak", "1%", expect=1)["passed"], False, "passed with an unknown value")
    diff(heap, without, "--max-growth", "1%")
    notes = diff(timeline, heap)["notes"]
    assert any(note.startswith("BEFORE ran ") and "AFTER ran srv:" in note for note in notes) and "AFTER has steps" not in notes, notes


def by_name(report, table):
    return {row["name"]: row for row in report[table]}


@case
def operators_modules_and_steps_are_those_of_the_other_commands():
    (before, _), (after, _) = made(ranks=2, operators=202), (None, None)
    kept = scratch("kept") / "before.torsh"
    kept.write_bytes(pathlib.Path(before).read_bytes())
    before, (after, _) = kept, made(ranks=2, operators=404)
    document = diff(before, after)
    for table, fields in (("ops", ("self_cpu_ns", "self_flops_all")), ("modules", ("total_ns", "flops_all"))):
        reports = [by_name(read_report(table, recording, "--limit", "0"), table) for recording in (before, after)]
        rows = by_name(document, table)
        expect_equal(set(rows), set().union(*reports) - {None}, f"names of {table}")
        for name, row in rows.items():
            for field in fields:
                expected = tuple((report.get(name) or {}).get(field) or 0 for report in reports)
                expect_equal(pair(row[field]), expected, f"{field} of {name}")
    expect_equal(pair(document["steps"]["median_ns"]), tuple(read_report("steps", path)["median_ns"] for path in (before, after)), "median")


@case
def check_compares_with_a_baseline():
    old, new = server("old"), server("new", leaked=200)
    document = json.loads(torsh("check", new, "--baseline", old, "--max-growth", "2%", "--json", expect=1))
    expect_fits("check", document)
    expect_equal([(one["name"], one["before"], one["after"], one["passed"]) for one in document["baseline"] if one["name"] == "leaked_bytes"],
                 [("leaked_bytes", leaks(old)["leaked_bytes"], leaks(new)["leaked_bytes"], False)], "leaks")
    torsh("check", new, "--baseline", old, "--max-growth", "10%")
    torsh("check", old, "--baseline", new, "--max-growth", "0%")
    expect_equal(run([TORSH, "check", new, "--baseline", old]).returncode, 2, "status without a limit")


@case
def check_prints_annotations_and_junit():
    old, new, junit = server("old"), server("new", leaked=200), scratch("junit") / "torsh.xml"
    printed = torsh("check", new, "--baseline", old, "--max-growth", "2%", "--max-leak", "1G", "--github", "--junit", junit, expect=1)
    assert all(line.startswith("::error file=") and "srv.c,line=6,title=torsh check::" in line for line in printed.splitlines()), printed
    suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
    tests = {test.get("name"): test.find("failure") is None for test in suite.findall("testcase")}
    expect_equal((tests["leak"], tests["leaked_bytes"]), (True, False), "what passed")
    expect_equal((int(suite.get("tests")), int(suite.get("failures"))), (len(tests), len(printed.splitlines())), "counts")


@case
def wrong_usage_is_status_2():
    output = server("one")
    for shown, *arguments in (("one from before", output), ("Put --", output, output, output), ("percentage", output, output, "--max-growth", "2"),
                             ("No such file", output, "/nonexistent"), ("not \"much\"", output, output, "--max-leak", "much")):
        result = run([TORSH, "diff", *arguments])
        expect_equal(result.returncode, 2, f"status of torsh diff {arguments}")
        assert shown.encode() in result.stderr, (shown, result.stderr)


main()
