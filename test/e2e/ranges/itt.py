#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ITT annotations, made with its real static part, are in the recording; another tool for ITT
receives them too."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build, itt_flags, nvtx_headers, python_with  # noqa: E402
from environments import torch_python  # noqa: E402
from timeline import nested, timeline  # noqa: E402

SOURCES = ROOT / "test/programs/ranges/itt"
LOAD = ROOT / "test/programs/ranges/nvtx/load.c"
VALUES = [("early", "counters", 1), ("typed", "counters", -4), ("plain", "counters", 1), ("plain", "counters", 11),
          ("plain", "counters", 10), ("plain", "counters", -1), ("real", "counters", 0.5), ("outer", "other domain", 1),
          ("outer", "other domain", 5), ("histogram[10]", "other domain", 0.5), ("histogram[20]", "other domain", 0.25)]
MARKS = [("other domain", "frame", 1000), ("marker", None, None), ("number", "metadata", 77),
         ("text=some text", "metadata", None), ("pause", None, None), ("resume", None, None)]


def program():
    return build("say", SOURCES / "say.c", *itt_flags())


def expect_output(command, expected, **options):
    result, output = record(command, **options)
    expect_equal((result.returncode, result.stdout.decode(), result.stderr.decode()), (0, expected, ""), "status and output")
    return output


def own_events(output):
    events = timeline(output)
    thread = next(event["thread"] for event in events if event.get("name") == "outer")
    return thread, [event for event in events if event["thread"] == thread], events


def expect_reported(thread, own, events):
    """The output of one run of say.c that contains a current static part."""
    expect_equal(nested(own, thread, "domain"), [(0, "outer"), (1, "inner")], "tasks")
    starts = [(event["name"], event["domain"], event["category"]) for event in own if event["event"] == "range_start"]
    expect_equal(starts, [("overlapped", "domain", None), ("outer", "domain", "region"),
                          ("other domain", "other domain", "frame"), ("other domain", "other domain", "frame"),
                          ("event", None, None)], "ranges that were started")
    numbers = {event["range"]: event["name"] for event in own if event["event"] == "range_start"}
    expect_equal(len(numbers), 5, "numbers of ranges")
    ends = [(numbers[event["range"]], event["thread"] == thread) for event in events
            if event["event"] == "range_end" and event["range"] in numbers]
    expect_equal(ends, [("overlapped", False), ("outer", True), ("other domain", True), ("other domain", True),
                        ("event", True)], "ends, and whether by the same thread")
    expect_equal([(event["name"], event["domain"], event["payload"]) for event in own if event["event"] == "value"], VALUES,
                 "values")
    expect_equal([(event["name"], event["category"], event["payload"]) for event in own if event["event"] == "mark"], MARKS,
                 "marks")


@case
def a_program_is_recorded():
    say = program()
    expect_equal(run([say]).stdout, b"deaf\n", "its output without a tool")
    output = expect_output([say], "heard\n")
    thread, own, events = own_events(output)
    expect_equal({event["source"] for event in events if "source" in event}, {"itt"}, "sources")
    expect_reported(thread, own, events)
    expect_equal([event["name"] for event in events if event["event"] == "thread_name"], ["ender"], "names of threads")
    check_counts(leaks(output)["events"])


@case
def several_libraries_are_recorded_each_for_itself():
    flags = itt_flags()
    if "-ltorch_cpu" in flags:
        raise Skip("only one static part is here, PyTorch's")
    load = build("load", LOAD)
    libraries = [build(f"{name}.so", SOURCES / "say.c", *flags, "-DSAY_LIBRARY", "-fPIC", "-shared", "-fvisibility=hidden",
                       "-Wl,-Bsymbolic") for name in ("one", "two", "three")]
    events = timeline(expect_output([load, *libraries], "heard\n" * 3))
    threads = {event["thread"] for event in events if event.get("name") == "inner"}
    expect_equal(len(threads), 3, "threads")
    for thread in threads:
        expect_equal(nested(events, thread, "domain"), [(0, "outer"), (1, "inner")], "tasks of a thread")
    ends = [event["range"] for event in events if event["event"] == "range_end"]
    starts = [event["range"] for event in events if event["event"] == "range_start"]
    expect_equal(sorted(ends), sorted(starts), "ranges that began and ended")


@case
def without_the_activity_nothing_is_reported():
    output = expect_output([program()], "deaf\n", env={"TORSH_PROFILER_ACTIVITIES": "heap,nvtx"})
    expect_equal(timeline(output), [], "events")


@case
def a_tool_that_was_there_first_receives_it_too():
    say, log, alone = program(), scratch("log") / "log", scratch("alone") / "log"
    tool = str(build("consumer.so", SOURCES / "consumer.c", *[flag for flag in itt_flags() if flag.startswith("-I")],
                     "-fPIC", "-shared"))
    output = expect_output([say], "heard\n", env={"INTEL_LIBITTNOTIFY64": tool, "CONSUMER_LOG": str(log)})
    thread, own, events = own_events(output)
    expect_equal(nested(own, thread, "domain"), [(0, "outer"), (1, "inner")], "tasks")
    plain = [event["payload"] for event in own if event.get("name") == "plain"]
    expect_equal(plain, [1, 11, 10, -1], "a counter whose handle is the tool's")
    result = run([say], dict(clean_environment(), INTEL_LIBITTNOTIFY64=tool, CONSUMER_LOG=str(alone)))
    expect_equal(result.returncode, 0, "status without the agent")
    expect_equal(log.read_text(), alone.read_text(), "what the tool receives with the agent")
    calls = collections.Counter(log.read_text().splitlines())
    expect_equal((calls["initialize  "], calls["begin domain outer"], calls["end domain "]), (1, 1, 2), "the tool's calls")
    assert "another tool was there first (INTEL_LIBITTNOTIFY64)" in torsh("report", output), "it is not in the report"


BRIDGED = """
import ittapi, nvtx, torsh
with ittapi.task("by ITT", domain=ittapi.domain("of ITT")):
    with nvtx.annotate("by NVTX", domain="of NVTX"):
        with torsh.range("by torsh"):
            torsh.mark("mark")
"""


@case
def each_tool_receives_what_others_report():
    """Tools for NVTX and for ITT, the agent between them and a program that speaks both and torsh.py."""
    python, folder = python_with("ittapi")
    if python_with("nvtx")[1] != folder:
        raise Skip("no Python here has both ittapi and nvtx")
    for_itt = build("itt.so", SOURCES / "consumer.c", *[flag for flag in itt_flags() if flag.startswith("-I")], "-fPIC",
                    "-shared")
    for_nvtx = build("nvtx.so", ROOT / "test/programs/ranges/nvtx/consumer.c", f"-I{nvtx_headers()}", "-fPIC", "-shared")
    log = scratch("log") / "log"
    output = expect_output([python.path, "-c", BRIDGED], "", env={
        "PYTHONPATH": f"{folder}:{ROOT / 'tools/python'}", "INTEL_LIBITTNOTIFY64": str(for_itt),
        "NVTX_INJECTION64_PATH": str(for_nvtx), "CONSUMER_LOG": str(log)})
    calls = collections.Counter(log.read_text().splitlines())
    # "begin" and "end" are of the tool for ITT, "push" and "pop" of that for NVTX.
    for call in ("begin of ITT by ITT", "begin of NVTX by NVTX", "begin torsh by torsh", "end of ITT ", "end of NVTX ",
                 "end torsh ", "push of NVTX by NVTX", "push default by torsh", "mark default mark", "pop of NVTX ",
                 "pop default "):
        expect_equal(calls[call], 1, f"times that '{call}' was received ({calls})")
    printed = [(event["source"], event["name"]) for event in timeline(output) if event["event"] == "range_push"]
    expect_equal(printed, [("itt", "by ITT"), ("nvtx", "by NVTX"), ("torsh", "by torsh")], "ranges in the recording")


PYTHON = """
import ittapi, threading
domain = ittapi.domain("python")
with ittapi.task("work", domain=domain):
    with ittapi.task("inner", domain=domain):
        pass
ittapi.thread_set_name("main of python")
with ittapi.event("an event"):
    ittapi.pause()
    ittapi.resume()
task = ittapi.overlapped_task("overlapped", domain=domain)
task.begin()
thread = threading.Thread(target=task.end); thread.start(); thread.join()
"""


@case
def the_python_module_ittapi_is_recorded():
    python, folder = python_with("ittapi")
    events = timeline(expect_output([python.path, "-c", PYTHON], "", env={"PYTHONPATH": str(folder)}))
    main = events[0]["thread"]
    expect_equal(nested(events, main, "python"), [(0, "work"), (1, "inner")], "tasks")
    others = [(event["event"], event["name"]) for event in events if event["event"] in ("mark", "thread_name", "range_start")]
    expect_equal(others, [("thread_name", "main of python"), ("range_start", "an event"), ("mark", "pause"), ("mark", "resume"),
                          ("range_start", "overlapped")], "the others")
    starts = {event["range"]: event for event in events if event["event"] == "range_start"}
    ends = {event["range"]: event for event in events if event["event"] == "range_end"}
    expect_equal(sorted(ends), sorted(starts), "ranges that ended")
    overlapped = next(event for event in starts.values() if event["name"] == "overlapped")
    assert ends[overlapped["range"]]["thread"] != overlapped["thread"]


TORCH = """
import torch
from torch.profiler import itt
assert itt.is_available()
itt.range_push("outer")
with itt.range("inner"):
    torch.ones(3) + 1
itt.mark("mark")
itt.range_pop()
with torch.autograd.profiler.emit_itt():
    torch.ones(2) * 2
"""


@case
@needs("torch")
def pytorch_is_recorded():
    python = torch_python()
    if run([python, "-c", "from torch._C import _itt"]).returncode:
        raise Skip(f"the PyTorch of {python} is built without ITT")
    result, output = record([python, "-c", TORCH])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-600:]})")
    events = [event for event in timeline(output) if event.get("domain") == "PyTorch"]
    ranges = nested(events, events[0]["thread"], "PyTorch")
    expect_equal(ranges[:2], [(0, "outer"), (1, "inner")], "ranges")
    assert any("mul" in name for _, name in ranges[2:]), f"no operator among {ranges[2:]}"


main()
