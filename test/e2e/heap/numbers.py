#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One definition of each number: summary, reports, budgets and exports of a real Python program
agree."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from html_report import data_of, written  # noqa: E402

PROGRAM = """
import collections, ctypes, email.parser, json, re, sys
held = [json.loads('{"a": [1, 2, %d]}' % i) for i in range(20000)]
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
leaked = [libc.malloc(5000) for _ in range(300)]
gone = bytes(30_000_000)
del gone, held
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(int(line.split()[1]) << 10)
"""
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
AT_EXIT_BYTES = 16 << 20  # what the end of an interpreter may add to its resident set
SUMMARY = re.compile(r"torsh: (\S+) \(pid (\d+)\): ([\d,]+) events, ([\d,]+) dropped; heap peak (.+?) at [\d.]+ s; "
                     r"(.+?) in ([\d,]+) blocks? alive at the end\n")


def number(text):
    return int(text.replace(",", ""))


def expect_rounded(text, n_bytes, what):
    """A size as people read it: three digits that matter."""
    value, unit = text.split()
    last_digit = 10.0 ** -len(value.partition(".")[2])
    assert abs(float(value) - n_bytes / UNITS[unit]) <= 0.51 * last_digit, f"{what}: {text}, and {n_bytes} bytes"


def recorded():
    result, output = record([sys.executable, "-c", PROGRAM], env={"TORSH_PROFILER_SUMMARY": "1"})
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    return result.stderr.decode(), int(result.stdout), output


@case
def the_summary_has_the_reports_figures():
    words, _, output = recorded()
    report, (process,) = read_report("report", output), leaks(output)["processes"]
    alive, printed = leaks(output)["alive"], SUMMARY.search(words)
    assert printed, words
    last = f"torsh: recording in {recordings(output)[0]}; next: torsh report, torsh leaks or torsh peak"
    expect_equal(words.splitlines()[-1], last, "the last line")
    assert "  torsh leaks " in torsh("open", output) and "Next:" in torsh("report", output), "the next commands"
    expect_equal(int(printed[2]), process["pid"], "pid")
    expect_equal(number(printed[3]), report["events"]["produced"], "events")
    expect_equal(number(printed[4]), report["events"]["dropped"], "dropped")
    expect_rounded(printed[5], report["peak"]["peak_bytes"], "peak of the heap")
    expect_equal(number(printed[7]), alive["blocks"], "blocks alive at the end")
    expect_rounded(printed[6], alive["bytes"], "bytes alive at the end")


@case
def the_screen_and_the_page_have_the_summarys_figures():
    words, _, output = recorded()
    summary, screen, report, page = SUMMARY.search(words), torsh("report", output), leaks(output), data_of(written(output))
    alive = re.search(r"(\S+ \S+) in (\S+) blocks alive at the end: (\S+ \S+) leaked((?:, \S+ \S+ (?:kept )?by [a-z ]+)*)\n", screen)
    assert alive and f"heap peak {summary[5]} at " in screen, screen
    expect_equal((alive[1], alive[2]), (summary[6], summary[7]), "alive at the end")
    expect_rounded(alive[3], report["leaked_bytes"], "what leaked")
    parts = [alive[3], *re.findall(r", (\S+ \S+) (?:kept )?by", alive[4])]
    n_bytes = sum(float(size) * UNITS[unit] for size, unit in map(str.split, parts))
    # Each part is rounded to three digits.
    assert abs(n_bytes - report["alive"]["bytes"]) <= 0.005 * report["alive"]["bytes"], (alive[0], report["alive"])
    expect_equal((page["leaks"]["bytes"], page["leaks"]["blocks"]), (report["leaked_bytes"], report["leaked_blocks"]), "the page's leaks")
    expect_rounded(summary[5], page["peak"]["bytes"], "the page's peak")
    expect_rounded(re.search(r"highest resident set (\S+ \S+)", screen)[1], peak(output)["rss_peak_bytes"], "resident set")


@case
def what_was_alive_is_what_leaked_and_what_was_kept():
    _, _, output = recorded()
    report, overview = leaks(output), read_report("report", output)
    for unit in ("bytes", "blocks"):
        parts = (report[f"leaked_{unit}"], report["bookkeeping"][unit], report["suppressed"][unit],
                 report["kept_by_imports"][unit], report["kept_by_first_uses"][unit])
        expect_equal(sum(parts), report["alive"][unit], f"{unit} alive")
        expect_equal(total(report["leaks"], unit), report[f"leaked_{unit}"], f"{unit} of the leaks")
        expect_equal(overview["leaks"][f"leaked_{unit}"], report[f"leaked_{unit}"], f"{unit} leaked, in the report")
    heap = overview["heap"]
    assert report["alive"]["blocks"] <= heap["allocations"] - heap["frees"], heap
    assert report["leaked_bytes"] >= 300 * 5000, report["leaked_bytes"]
    folded = torsh("export", output, "--format", "folded")
    expect_equal(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), report["leaked_bytes"], "folded stacks")


@case
def peaks_are_the_same_everywhere():
    _, own_rss, output = recorded()
    report, highest = read_report("report", output), peak(output)
    checked = json.loads(run([TORSH, "check", output, "--max-leak", "1T", "--max-peak", "1T", "--max-rss", "1T", "--json"]).stdout)
    values = {check["name"]: check["value"] for check in checked["checks"]}
    expect_equal(values, {"leak": leaks(output)["leaked_bytes"], "peak": highest["peak_bytes"], "rss": highest["rss_peak_bytes"]},
                 "what is checked")
    for name in ("peak_bytes", "rss_peak_bytes"):
        expect_equal({report["peak"][name], report["processes"][0][name], highest[name], highest["processes"][0][name]},
                     {highest[name]}, name)
    # The kernel's own high-water mark.
    assert own_rss <= highest["rss_peak_bytes"] <= own_rss + AT_EXIT_BYTES, (own_rss, highest["rss_peak_bytes"])


@case
def what_imports_held_is_one_line_of_peak_and_of_report():
    _, _, output = recorded()
    text = torsh("peak", output)
    line = re.search(r"^Imports of packages held (\S+ \S+) of the heap, (\S+%): (.*)  \(-v", text, re.M)
    row = re.search(r"^ +(\S+ \S+) +(\S+%)  imports of packages: (.*)", torsh("report", output), re.M)
    expect_equal(line.groups(), row.groups(), "bytes, share and packages")
    assert "Imports of packages" not in torsh("peak", output, "-v"), text


@case
def sizes_have_one_unit_and_samples_are_called_so():
    words, _, output = recorded()
    for text in (words, *(torsh(command, output) for command in ("leaks", "peak", "report"))):
        assert not re.search(r"\d [kKMG]B\b", text), re.search(r".*\d [kKMG]B\b.*", text)[0]
    trace = output / "trace.pftrace"
    torsh("export", output, "--format", "perfetto", "-o", trace)
    assert b"resident set (sampled)" in trace.read_bytes()


main()
