#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
At which lines forked processes break pages that they inherit: those of programs that know it, and their numbers of pages by the
programs' own reading of /proc/self/pagemap.
"""

import json
import pathlib
import platform
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from schema import expect_fits  # noqa: E402

ENV = {"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": 1}

# The answer to a call means that the writer has seen the fork, and that to a second one that it has taken all samples from
# before the first: what waits for it is less than the smallest buffer of the kernel's holds.
PROGRAM = """
import array, json, os, struct, torsh

def catch_up():
    torsh.current_bytes()
    torsh.current_bytes()

kept = [[i] for i in range(200000)]
blob = bytes(range(256)) * 40000
numbers = array.array("d", range(1000000))

def shared_pages():
    pages = set()
    with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb") as pagemap:
        for line in maps:
            begin, end = (int(word, 16) // 4096 for word in line.split()[0].split("-"))
            if "[v" not in line:
                pagemap.seek(begin * 8)
                for i, entry in enumerate(array.array("Q", pagemap.read((end - begin) * 8))):
                    if entry >> 63 and not entry >> 61 & 1 and not entry >> 56 & 1:
                        pages.add(begin + i)
    return pages

def touch_many(begin):
    for item in map(len, kept[begin:begin + 5000]):  # many
        pass

def touch_few(begin):
    for i in range(begin, begin + 5000):
        kept[i]  # few

def look_only(begin):
    return blob.find(b"none"), sum(numbers)

def child():
    catch_up()
    # What these break is broken before.
    json.dumps(["", len(shared_pages() - shared_pages())])
    catch_up()
    for function, begin, end in (touch_many, 0, 90000), (touch_few, 120000, 150000), (look_only, 0, 5000):
        before = shared_pages()
        for i in range(begin, end, 5000):
            catch_up()
            function(i)
        catch_up()
        after = shared_pages()
        print(json.dumps([function.__name__, len(before - after)]), flush=True)
    os._exit(0)

def quiet_child():
    catch_up()
    look_only(0)
    os._exit(0)

for run in child, quiet_child:
    if not os.fork():
        run()
    os.wait()
"""

# Runs a command under the agent from where perf_event_open fails, also for the writer.
DENIED = """
import ctypes, os, struct, sys
code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 298, 0x06, 0, 0, 0x50001, 0x06, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(text)))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program, 0, 0)
os.environ.update(LD_PRELOAD=sys.argv[1], TORSH_PROFILER_OUTPUT=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""

LOADER = """
import numpy, torch, torsh

class Objects(torch.utils.data.Dataset):
    def __init__(self):
        self.items = [(i, str(i)) for i in range(300000)]
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        total = 0
        for number, text in self.items[i * 300:i * 300 + 300]:  # here
            total += number
        return torch.tensor(total), i

class Array(torch.utils.data.Dataset):
    def __init__(self):
        self.items = numpy.arange(3000000)
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        total = int(self.items[i * 3000:i * 3000 + 3000].sum())
        return torch.tensor(total), i

def begin(number):
    torsh.current_bytes()

print(sum(int(totals.sum()) for totals, _ in torch.utils.data.DataLoader(
    %s(), batch_size=20, num_workers=2, worker_init_fn=begin)))
"""


def record_script(text, python=sys.executable, **options):
    script = scratch("script") / "train.py"
    script.write_text(text)
    result, output = record([python, script], env=ENV, timeout=200, **options)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-2000:]})")
    return script, result.stdout.decode(), output


def account_of(output, pid):
    report = read_report("rss", output, "--pid", str(pid), "--at", "end")
    expect_fits("rss", report)
    return report


def forks(output):
    """The accounts at the end of all processes but the first."""
    pids = [process["pid"] for process in read_report("rss", output)["processes"]]
    for pid in pids[1:]:
        report = account_of(output, pid)
        if report["breaks"]["reason"]:
            raise Skip(f"page faults can't be sampled here: {report['breaks']['reason']}")
        assert report["breaks"]["sampled"], report["breaks"]
        yield report


def line_of(script, comment):
    (number,) = (i for i, line in enumerate(script.read_text().splitlines(), 1) if line.endswith(comment))
    return number


def by_function(report):
    pages = {}
    for place in report["broken_by"]:
        pages[place["function"]] = pages.get(place["function"], 0) + place["pages"]
    return pages


@case
def each_line_has_the_pages_that_it_broke():
    script, text, output = record_script(PROGRAM)
    truth = dict(json.loads(line) for line in text.splitlines())
    report, quiet = forks(output)
    found = by_function(report)
    assert truth["touch_many"] > 1000 and truth["touch_few"] > 300, truth
    # One fault in so many is sampled: each function has at most one less or more, and the readings some pages of their own.
    every = report["breaks"]["pages"] / report["breaks"]["samples"]
    for name in ("touch_many", "touch_few", "look_only"):
        assert abs(found.get(name, 0) - truth[name]) <= 2 * every + 0.03 * truth[name] + 16, (name, found, truth, every)
    first = report["broken_by"][0]
    expect_equal((first["function"], first["file"], first["line"]), ("touch_many", str(script), line_of(script, "# many")),
                 "where most were broken")
    few = max((place for place in report["broken_by"] if place["function"] == "touch_few"), key=lambda place: place["pages"])
    expect_equal(few["line"], line_of(script, "# few"), "where the others were")
    # The readings of pagemap fault at more new pages at a time than the kernel's buffer has room for, where the writer is slow.
    lost = report["breaks"]["samples_lost"] * every
    assert abs(sum(place["share"] for place in report["broken_by"]) - 1) < 1e-9, report["broken_by"]
    # What the account has as copied was broken by the process itself, but for what came before the writer saw it.
    copied = report["kinds"]["cow"] / 4096
    assert 0.7 * copied - lost <= report["breaks"]["pages"] <= 1.05 * copied, (report["breaks"], copied)
    assert by_function(quiet).get("look_only", 0) <= 2 * every + 16 and quiet["breaks"]["pages"] < 256, quiet["broken_by"]
    assert "broke inherited pages" not in torsh("rss", output, "--pid", str(quiet["pid"]), "--at", "end"), "the text isn't silent"
    assert not set(by_function(quiet)) & {"touch_many", "touch_few"}, quiet["broken_by"]
    shown = torsh("rss", output, "--pid", str(report["pid"]), "--at", "end")
    assert re.search(rf"touch_many, \S*train.py:{first['line']}\n", shown), shown


@case
def without_the_right_to_sample_the_reason_is_said():
    if platform.machine() != "x86_64":
        raise Skip("the filter is for x86-64")
    script, output = scratch("script") / "train.py", scratch("output")
    script.write_text(PROGRAM)
    result = run([sys.executable, "-c", DENIED, AGENT, output, sys.executable, script], env=clean_environment() | {name: str(word) for name, word in ENV.items()})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-2000:]})")
    report = account_of(output, read_report("rss", output)["processes"][1]["pid"])
    expect_equal((report["breaks"]["sampled"], report["breaks"]["reason"], report["broken_by"]),
                 (False, "Operation not permitted", []), "what is said")
    assert report["kinds"]["cow"] > 0, report["kinds"]
    shown = torsh("rss", output, "--pid", str(report["pid"]), "--at", "end")
    assert "At which lines is not known" in shown and "not permitted" in shown, shown


@case
@needs("torch")
def workers_that_touch_counts_of_references_are_named_by_line():
    script, text, output = record_script(LOADER % "Objects", torch_python())
    expect_equal(text.split(), [str(sum(range(300000)))], "what the program prints")
    workers = list(forks(output))
    expect_equal(len(workers), 2, "workers")
    for report in workers:
        first = report["broken_by"][0]
        expect_equal((first["function"], first["file"], first["line"]),
                     ("Objects.__getitem__", str(script), line_of(script, "# here")), "where most pages were broken")
        # Half of the tuples and of the texts each, of 56 and of about 54 bytes.
        assert by_function(report)["Objects.__getitem__"] >= 0.8 * 150000 * (56 + 54) / 4096, by_function(report)
        assert first["share"] - first["share_error"] > 0.4, first


@case
@needs("torch")
def workers_that_only_read_an_array_are_silent():
    _, text, output = record_script(LOADER % "Array", torch_python())
    expect_equal(text.split(), [str(sum(range(3000000)))], "what the program prints")
    for report in forks(output):
        assert by_function(report).get("Array.__getitem__", 0) <= 100, by_function(report)
        assert not any("numpy" in (place["module"] or "") and place["pages"] > 100 for place in report["broken_by"]), report["broken_by"]


main()
