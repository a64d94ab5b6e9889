#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page of torsh html: the commands' numbers, no larger than it may be, and at work in a real browser."""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import memory_of  # noqa: E402
from html_report import data_of, expect_sealed, opened, total, written  # noqa: E402

SCREENS = BUILD / "test/screens"
SYNTHETIC, ESCAPES, MANY_SITES = (PROGRAMS.parent / name for name in ("synthetic", "escapes", "many_sites"))
# Ends its element, begins others, turns the direction around, and is longer than any name should be.
HOSTILE = "</script><img src=x onerror=document.title='owned'><!--\"'&\u202e\u2028" + "n" * 10_000
TABS = ("overview", "memory", "time", "devices", "ranks", "findings", "recorded")
SIZES = ((400, 800), (1280, 900), (4000, 2000))


def synthetic(*numbers):
    recording = scratch("recording") / "synthetic.torsh"
    expect_equal(run([SYNTHETIC, recording, *map(str, numbers)]).returncode, 0, "status of synthetic")
    return recording


def leaking():
    """A program with leaks, growth and several threads."""
    result, output = record([PROGRAMS / "entries"])
    expect_equal(result.returncode, 0, "status")
    return output


@case
def the_page_has_the_commands_numbers():
    for recording in (leaking(), synthetic(2000, 2, 1)):
        document, leaked, highest = data_of(written(recording)), leaks(recording), peak(recording)
        expect_equal((document["leaks"]["bytes"], document["leaks"]["blocks"]), (leaked["leaked_bytes"], leaked["leaked_blocks"]), "leaks")
        expect_equal((document["peak"]["bytes"], document["peak"]["at_ns"]), (highest["peak_bytes"], highest["at_ns"]), "peak")
        for tree in document["trees"]:
            expect_equal(total(document, tree, "leaked"), (leaked["leaked_bytes"], leaked["leaked_blocks"]), f"leaks in the tree {tree}")
            expect_equal(total(document, tree, "peak")[0], highest["attributed_bytes"], f"peak in the tree {tree}")
            expect_equal(total(document, tree, "live")[0], leaked["alive"]["bytes"], f"what is alive in the tree {tree}")
        expect_equal(document["leaks"]["imports_bytes"], leaked["kept_by_imports"]["bytes"], "what imports keep")
        expect_equal(document["leaks"]["first_uses_bytes"], leaked["kept_by_first_uses"]["bytes"], "what first uses keep")
        expect_equal(document["events"]["produced"], leaked["events"]["produced"], "events")


@case
def frames_have_the_kind_that_the_commands_see():
    document = data_of(written(leaking()))
    frames, texts = document["frames"], document["texts"]
    kinds = {(texts[function], category) for function, category in zip(frames["function"], frames["category"])}
    expect_equal([category for name, category in kinds if name == "main"], [0], "what the user wrote")
    expect_equal([category for name, category in kinds if name == "_start"], [4], "what starts a program")


@case
def so_has_its_time():
    recording = synthetic(4000, 2, 1)
    document, ops, steps = data_of(written(recording)), read_report("ops", recording), read_report("steps", recording)
    modules, kernels = read_report("modules", recording), read_report("kernels", recording)
    expect_equal((document["operators"]["calls"], document["operators"]["self_cpu_ns"]), (ops["calls"], ops["self_cpu_ns"]), "operators")
    expect_equal(sorted(row[1:4] for row in document["operators"]["rows"]),
                 sorted([op["calls"], op["cpu_ns"], op["self_cpu_ns"]] for op in ops["ops"]), "calls and times of operators")
    expect_equal([row[1:4] for row in document["steps"]["rows"]],
                 [[step["index"], step["start_ns"], step["duration_ns"]] for step in steps["steps"]], "steps")
    expect_equal(document["steps"]["median_ns"], steps["median_ns"], "median of the steps")
    expect_equal(sorted(row[1:3] for row in document["modules"]["rows"]),
                 sorted([module["calls"], module["total_ns"]] for module in modules["modules"]), "modules")
    expect_equal((document["kernels"]["total_ns"], document["kernels"]["attributed_ns"]), (kernels["total_ns"], kernels["attributed_ns"]), "kernels")
    expect_equal(len(document["findings"]), len(read_report("report", recording)["inefficiencies"]), "findings")


@case
def the_findings_are_the_reports_sentences():
    recording = synthetic(4000, 2, 1)
    sentences = [finding["sentence"] for finding in read_report("report", recording)["inefficiencies"]]
    assert sentences, "nothing was found in the recording: this test compares nothing"
    with opened(written(recording)) as report:
        report.open("findings")
        expect_equal(sorted(report.texts("main h2 bdi")), sorted(sentences), "sentences of the findings")


@case
def a_page_is_written_at_the_end_of_a_run():
    result, output = record([PROGRAMS / "entries"], env={"TORSH_PROFILER_EXPORT_FORMAT": "html"})
    expect_equal(result.returncode, 0, "status")
    (page,) = output.glob("*.html")
    expect_sealed(page)
    expect_equal(data_of(page)["version"], 1, "version")


@case
def names_cannot_become_markup():
    hostile = scratch("hostile") / "hostile.torsh"
    expect_equal(run([ESCAPES, synthetic(400, 2, 1), hostile, HOSTILE]).returncode, 0, "status of escapes")
    page = written(hostile)
    expect_sealed(page)
    assert page.stat().st_size < 5 << 20, f"long names make a page of {page.stat().st_size} bytes"
    with opened(page) as report:
        for tab in TABS:
            report.open(tab, width=400)
            expect_equal(report.js("document.querySelector('[role=tab][aria-selected=true]').id"), f"tab-{tab}", "the open tab")
            expect_equal(report.js("document.querySelectorAll('img').length"), 0, f"images in {tab}")
            assert report.js("document.title") != "owned", "a name ran as a script"
            assert "\u202e" not in report.js("document.body.innerText"), f"{tab} turns the direction around"
            assert report.js("document.documentElement.scrollWidth") <= 400, f"{tab} is wider than the window"


@case
def every_tab_opens_in_every_size_dark_and_light():
    with opened(written(synthetic(2000, 2, 1))) as report:
        for width, height in SIZES:
            for is_dark in (False, True):
                for tab in TABS:
                    report.open(tab, width, height, is_dark)
                    expect_equal(report.js("document.querySelector('[role=tab][aria-selected=true]').id"), f"tab-{tab}", "the open tab")
                    expect_equal(report.js("document.documentElement.dataset.theme"), "dark" if is_dark else "light", "theme")
                    assert report.js("document.documentElement.scrollWidth") <= width, f"{tab} is wider than {width}"
                    report.screenshot(SCREENS / f"{tab}-{width}-{'dark' if is_dark else 'light'}.png")


@case
def the_flame_graph_searches_zooms_and_turns_around():
    with opened(written(leaking())) as report:
        report.open("memory?what=leaked")
        whole = report.texts(".selection")
        report.type("#flame-search", "leak_malloc")
        report.until("/frame.*%/.test(document.querySelector('#flame [role=status]').textContent)")
        report.type("#flame-search", "")
        report.js("document.querySelector('.icicle canvas').focus()")
        for key in ("ArrowDown", "Enter"):
            report.press(key)
        assert report.texts(".selection") != whole, "the arrow and Enter choose nothing"
        report.press("Escape")
        expect_equal(report.texts(".selection"), whole, "what Escape shows")
        report.click("#flame [data-value=leaf]")
        report.click("#flame [data-value=change]")
        report.click("#flame [data-value=allocated]")
        report.screenshot(SCREENS / "flame-inverted.png")


def phases():
    """A program with marks, and for each mark the bytes and blocks that were live at it."""
    result, output = record([PROGRAMS / "phases"])
    expect_equal(result.returncode, 0, "status")
    marks = [f"phase {i}" for i in range(6)]
    return output, {mark: read_report("peak", output, "--mark", mark, "--limit", "0") for mark in marks}


def bytes_by_line(report):
    """Bytes of each line of phases.c that keeps blocks."""
    found = collections.Counter()
    for site in report["holders"] + report["given_back"]:
        for frame in site["stack"]:
            if (frame["function"] or "").startswith("keep_"):
                found[f"phases.c:{frame['line']}"] += site["bytes"]
    return {line: size for line, size in found.items() if size}


def size_text(size):
    """As the page prints it: three digits that matter."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1023.95 or unit == "GiB":
            break
        size /= 1024
    return f"{size} B" if unit == "B" else f"{size:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f} {unit}"


@case
def a_moment_of_the_page_is_that_of_the_command():
    output, truth = phases()
    document = data_of(written(output))
    (process,) = document["moments"]["processes"]
    held, at = collections.Counter(), 0
    found = {}
    for kind, mark, _, at_ns, size, blocks, n in process["items"]:
        group = 0
        for i in range(at, at + n):
            group += process["group"][i]
            held[group] = process["bytes"][i]
        at += n
        expect_equal(sum(held.values()), size, f"bytes of all groups at {at_ns}")
        if kind == "mark":
            found[document["texts"][mark]] = size, blocks
    expect_equal(found, {mark: (report["bytes"], report["blocks"]) for mark, report in truth.items()}, "marks")
    assert any(document["processes"][0]["lifetimes"]), "no lifetimes"
    expect_equal(sum(blocks for _, blocks, _ in document["processes"][0]["lifetimes"]), document["processes"][0]["frees"], "blocks that ended")


@case
def moments_are_picked_and_subtracted():
    output, truth = phases()
    lines = "Object.fromEntries([...document.querySelectorAll('#holders tbody tr.opens')].map(row => [row.querySelector('.where').textContent, row.cells[0].textContent.replace('▸', '')]))"
    with opened(written(output)) as report:
        report.open("memory")
        options = report.js("[...document.querySelectorAll('#moment-at option')].map(one => [one.value, one.textContent])")
        value = {mark: next(value for value, text in options if f"“{mark}”" in text) for mark in truth}

        def choose(which, value):
            report.js(f"(box => {{ box.value = {value!r}; box.dispatchEvent(new Event('change')); }})(document.getElementById('moment-{which}'))")

        choose("at", value["phase 1"])
        expect_equal(report.texts("#flame [aria-checked=true][data-value=moment]"), ["A moment"], "what the flame graph shows")
        expect_equal(report.js("document.querySelector('#holders .note').textContent"), f"{size_text(truth['phase 1']['bytes'])} in all", "the sum")
        shown = report.js(lines)
        for line, size in bytes_by_line(truth["phase 1"]).items():
            (text,) = [text for where, text in shown.items() if where.startswith(line)]
            expect_equal(text, size_text(size), line)
        before = report.js("document.querySelector('.icicle canvas').toDataURL()")
        choose("since", value["phase 4"])
        change = truth["phase 1"]["bytes"] - truth["phase 4"]["bytes"]
        expect_equal(report.js("document.querySelector('#holders .note').textContent"),
                     f"{'+' if change > 0 else '−'}{size_text(abs(change))} in all", "the change")
        assert report.js("document.querySelector('.icicle canvas').toDataURL()") != before, "the flame graph is that of one moment"
        report.screenshot(SCREENS / "moments.png")
        box = report.js("(({x, y, width, height}) => [x, y, width, height])(document.querySelector('#main .u-over').getBoundingClientRect())")
        for part, modifiers in ((0.2, 0), (0.8, 8)):
            for kind in ("mousePressed", "mouseReleased"):
                report.page.call("Input.dispatchMouseEvent", type=kind, x=box[0] + part * box[2], y=box[1] + box[3] / 2, button="left", clickCount=1,
                                 modifiers=modifiers)
        at, since = (int(report.js(f"document.getElementById('moment-{which}').value")) for which in ("at", "since"))
        assert at < since < len(options), f"the curve was clicked at {at}, with Shift at {since} of {len(options)}"
        assert report.js("document.querySelectorAll('#lifetimes .fill').length") > 3, "no histogram of lifetimes"


@case
def a_page_of_a_million_stacks_is_small_and_works():
    """The limit is the page's 20 MiB, which every page is held to; the rest is shown as others."""
    recording = scratch("recording") / "many.torsh"
    result = run([MANY_SITES, recording, "1000000", "64"])
    expect_equal(result.returncode, 0, "status of many_sites")
    path = written(recording)
    document = data_of(path)
    expect_equal(total(document, "merged", "peak"), (int(result.stdout), 500_000), "bytes and blocks of the peak")
    assert document["trees"]["merged"]["left_out"] > 100_000, "all nodes are on the page"
    with opened(path) as report:
        report.open("memory")
        n = report.js("document.querySelectorAll('#moment-at option').length")
        assert n > 60, f"{n} moments"
        report.js("(box => { box.value = '40'; box.dispatchEvent(new Event('change')); })(document.getElementById('moment-at'))")
        (process,) = document["moments"]["processes"]
        expect_equal(report.js("document.querySelector('#holders .note').textContent"), f"{size_text(process['items'][40][4])} in all", "the sum")


@case
def the_page_takes_little_more_memory_than_a_report():
    """Its trees have a node for each frame of each stack, which no report needs: when all were there at once it took twice as much."""
    recording = scratch("recording") / "many.torsh"
    expect_equal(run([MANY_SITES, recording, "300000"]).returncode, 0, "status of many_sites")
    page, report = memory_of("html", recording, "-o", scratch("page") / "many.html"), memory_of("leaks", recording)
    assert page < 1.5 * report, f"{page} KiB for the page, {report} KiB for the leaks"


@case
def the_timeline_shows_steps_and_zooms():
    recording = synthetic(2000, 1, 1)
    slowest = max(read_report("steps", recording)["steps"], key=lambda step: step["duration_ns"])
    with opened(written(recording)) as report:
        report.open("time/timeline")
        (title,) = [text for text in report.texts("#timeline [role=radio]") if text.startswith("slowest")]
        assert f"step {slowest['index']}," in title, title
        report.click("#timeline [role=radio]:nth-child(2)")
        pixels = "document.querySelector('.timeline canvas').toDataURL().length"
        whole = report.js(pixels)
        report.js("document.querySelector('.timeline canvas').focus()")
        report.press("w")
        assert report.js(pixels) != whole, "w does not zoom"
        report.press("0")
        expect_equal(report.js(pixels), whole, "the picture of the whole step")


@case
def tables_sort_filter_and_open():
    with opened(written(leaking())) as report:
        report.open("memory/leaks?what=leaked")
        sizes = "[...document.querySelectorAll('#leaks tbody tr.opens')].map(row => row.cells[2].textContent)"
        report.click("#leaks th:nth-child(3) button")
        most = report.js(sizes)
        report.click("#leaks th:nth-child(3) button")
        expect_equal(sorted(report.js(sizes)), sorted(most), "rows in the other order")
        report.click("#leaks .opener")
        assert report.texts("#leaks .details .stack li"), "an open row shows no stack"
        n = report.js("document.querySelectorAll('#leaks tbody tr.opens').length")
        if report.js("!!document.querySelector('#leaks .filter')"):
            report.type("#leaks .filter", "leak_malloc")
            assert 0 < report.js("document.querySelectorAll('#leaks tbody tr.opens').length") < n, "the filter chose nothing"


@case
def the_tab_of_resident_memory_has_the_commands_numbers():
    page = written(recording := leaking())
    document, report = data_of(page), read_report("rss", recording)
    account = document["rss"][0]
    expect_equal((account["bytes"], account["at_ns"], account["is_peak"]), (report["rss_bytes"], report["at_ns"], True), "the account")
    expect_equal(sum(owner[2] for owner in account["owners"]), report["rss_bytes"], "sum of all owners")
    expect_equal(sum(part[3] for part in account["fragments"]), report["kinds"]["retained"], "what is retained")
    with opened(page) as shown:
        for width in (400, 1280):
            shown.open("rss", width)
            assert "live blocks of the heap" in shown.texts("#rss-kinds .bars")[0], shown.texts("#rss-kinds .bars")
            assert shown.js("document.documentElement.scrollWidth") <= width, f"wider than {width}"
        shown.expect_quiet()


# Its child writes to the objects that it inherits.
FORKING = """
import os, torsh
kept = [None] * 150000
for i in range(len(kept)):
    kept[i] = {}
def touch(begin):
    for item in map(len, kept[begin:begin + 5000]):
        pass
if not os.fork():
    for begin in range(0, 100000, 5000):
        torsh.current_bytes()
        touch(begin)
    os._exit(0)
os.wait()
"""


@case
def the_tab_of_resident_memory_has_pythons_objects_and_broken_pages():
    result, recording = record([sys.executable, "-c", FORKING], env={"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    page = written(recording)
    document = data_of(page)
    texts = [None, *document["texts"][1:]]
    pids = [process["pid"] for process in document["processes"]]
    for census in document["census"]:
        wanted = read_report("peak", recording, "--pid", str(pids[census["process"]]))["python_census"]
        expect_equal({name: census[name] for name in ("objects", "bytes", "pool_bytes", "begin_ns", "from_peak_ns")},
                     {name: wanted[name] for name in ("objects", "bytes", "pool_bytes", "begin_ns", "from_peak_ns")}, "a census")
        expect_equal(sum(objects for name, _, objects in census["rows"] if texts[name] == "dict"),
                     sum(row["objects"] for row in wanted["types"] if row["name"] == "dict"), "dicts")
    assert document["census"], "no census"
    (child,) = (i for i, pid in enumerate(pids) if pid != pids[0])
    at_end = max((account for account in document["rss"] if account["process"] == child), key=lambda account: account["at_ns"])
    report = read_report("rss", recording, "--pid", str(pids[child]), "--at", "end")
    expect_equal(texts[at_end["unsampled"]], report["breaks"]["reason"], "why there are no samples")
    expect_equal([[texts[place[0]], place[2], place[4]] for place in (at_end["breaks"] or {"places": []})["places"]],
                 [[place["function"], place["line"], place["pages"]] for place in report["broken_by"]], "where pages were broken")
    with opened(page) as shown:
        for width in (400, 1280):
            shown.open("rss", width)
            assert any("dict" in text for text in shown.texts(".census tbody tr")), shown.texts(".census")
            assert shown.js("document.documentElement.scrollWidth") <= width, f"wider than {width}"
        shown.js(f"(box => {{ box.value = {document['rss'].index(at_end)}; box.dispatchEvent(new Event('change')); }})"
                 "(document.querySelector('#rss-account'))")
        text = " ".join(shown.texts("#rss-breaks"))
        assert ("touch" in text) if report["broken_by"] else ("the system forbids" in text), text
        shown.expect_quiet()


WAITING = """
import time
def burn():
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 2e8:
        pass
def rest():
    time.sleep(0.03)
burn(), rest()
"""


@case
def samples_and_waits_are_flame_graphs():
    env = {"TORSH_PROFILER_ACTIVITIES": "samples,python,waits", "TORSH_PROFILER_CPU_HZ": 1000}
    recording = record([sys.executable, "-c", WAITING], env=env)[1]
    page = written(recording)
    processor, report, waits = data_of(page)["processor"], read_report("cpu", recording), read_report("cpu", recording, "--off")
    weights = processor["tree"]["weights"]
    expect_equal((sum(weights["cpu"]["bytes"]), sum(weights["cpu"]["blocks"])), (report["ns"], report["samples"]), "time and samples of the tree")
    expect_equal((processor["ns"], processor["samples"], processor["lost"]), (report["ns"], report["samples"], report["lost"]), "samples")
    expect_equal((sum(weights["waited"]["bytes"]), sum(weights["waited"]["blocks"])),
                 (sum(row["total_ns"] for row in waits["waits"]), sum(row["count"] for row in waits["waits"])), "waits")
    with opened(page) as shown:
        for width in (400, 1280):
            shown.open("cpu", width)
            assert shown.js("document.documentElement.scrollWidth") <= width, f"wider than {width}"
        share = sum(row["total_ns"] for row in report["functions"] if row["function"] == "burn") / report["ns"]
        shown.type("#cpu-flame [type=search]", "/^burn$/")
        text = shown.js("document.querySelector('#cpu-flame [role=status]').textContent")
        assert abs(float(re.search(r"([\d.]+)\s*%", text)[1]) / 100 - share) < 0.01, (text, share)
        shown.type("#waits-flame [type=search]", "sleep, nanosleep")
        assert shown.js("document.querySelector('#waits-flame [role=status]').textContent").startswith("1 frame"), "the sleep"
        before = shown.js("document.querySelector('#cpu-flame canvas').toDataURL()")
        shown.js("document.querySelector('#cpu-flame canvas').focus()")
        whole = shown.texts("#cpu-flame .selection")
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            shown.press(key)
        assert shown.texts("#cpu-flame .selection") != whole, "nothing is chosen"
        shown.click("#cpu-flame [data-value=leaf]")
        assert shown.js("document.querySelector('#cpu-flame canvas').toDataURL()") != before, "the graph is not turned around"
        shown.screenshot(SCREENS / "processor.png")
        shown.expect_quiet()
    assert data_of(written(leaking()))["processor"] is None, "a tab without samples and waits"


@case
def the_keyboard_opens_tabs():
    with opened(written(leaking())) as report:
        report.open()
        report.press("2")
        report.until("location.hash === '#memory'")
        report.press("1")
        report.until("location.hash === '#overview'")


main()
