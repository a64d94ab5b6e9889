#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""NVTX 3 annotations, built on its real headers, are in the recording; another tool for NVTX
receives them too."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build, nvtx_2_library, nvtx_headers, python_with  # noqa: E402
from environments import torch_python  # noqa: E402
from timeline import nested, timeline  # noqa: E402

SOURCES = ROOT / "test/programs/ranges/nvtx"
DEAF = "-2 -2 -2 -2 -2 -2\n-2 -2 -2\n-2 -2 0\n"
HEARD = "0 1 2 2 1 0\n0 0 0\n0 0 1\n"
# In the order of the program: (event, name, domain, category, payload).
MARKS = [("mark", None, None, None), ("breit \u00e4\u20ac\U0001f525", None, None, None),
         ("payload", None, None, 2**64 - 1), ("payload", None, None, -3), ("payload", None, None, 7),
         ("payload", None, None, -9), ("float", None, None, 1.5), ("future", None, None, None), (None, None, None, None),
         ("unicode", "domain", "77", None), (None, "domain", None, None)]
RANGES = [(0, "outer"), (1, "inner"), (2, "all of it"), (0, "of no domain")]
DOMAIN_RANGES = [(0, "registered"), (0, "by payload")]


def program():
    return build("say", SOURCES / "say.c", f"-I{nvtx_headers()}")


def library(name):
    # Each of them embeds NVTX for itself, as extension modules of Python do.
    return build(name, SOURCES / "say.c", f"-I{nvtx_headers()}", "-DSAY_LIBRARY", "-fPIC", "-shared",
                 "-fvisibility=hidden", "-Wl,-Bsymbolic")


def has_counters():
    return (nvtx_headers() / "nvtx3/nvToolsExtCounters.h").exists()


def expect_reported(events):
    """The output of one run of say.c, by the events of its thread and of the one it starts."""
    thread = next(event["thread"] for event in events if event.get("name") == "outer")
    own = [event for event in events if event["thread"] == thread]
    expect_equal([(event["name"], event["domain"], event["category"], event["payload"])
                  for event in own if event["event"] == "mark"], MARKS, "marks")
    expect_equal(nested(own, thread), RANGES, "ranges")
    expect_equal(nested(own, thread, "domain"), DOMAIN_RANGES, "ranges of the domain")
    whole = next(event for event in own if event.get("name") == "all of it")
    expect_equal((whole["category"], whole["color"], whole["payload"]), ("four", 0xff00ff00, 0.5), "attributes")
    registered = next(event for event in own if event.get("name") == "registered")
    expect_equal(registered["category"], "vier", "category of a domain")
    starts = {event["name"]: event for event in own if event["event"] == "range_start"}
    expect_equal(sorted(starts), ["by payload", "handed over", "started"], "ranges that were started")
    ends = {event["range"]: event["thread"] for event in events if event["event"] == "range_end"}
    expect_equal({name: ends[event["range"]] == thread for name, event in starts.items()},
                 {"started": True, "handed over": False, "by payload": True}, "ended by the same thread")
    if has_counters():
        expect_equal([(event["name"], event["domain"], event["payload"]) for event in own if event["event"] == "value"],
                     [("counted", "domain", -2), ("counted", "domain", 2.5)], "values")


def expect_output(command, expected, **options):
    result, output = record(command, **options)
    expect_equal((result.returncode, result.stdout.decode(), result.stderr.decode()), (0, expected, ""), "status and output")
    return output


@case
def a_program_is_recorded():
    say = program()
    expect_equal(run([say]).stdout.decode(), DEAF, "what the calls return without a tool")
    output = expect_output([say], HEARD)
    events = timeline(output)
    expect_equal({event["source"] for event in events if "source" in event}, {"nvtx"}, "sources")
    expect_reported(events)
    names = {event["name"]: event["tid"] for event in events if event["event"] == "thread_name"}
    expect_equal(list(names), ["ender"], "names of threads")
    check_counts(leaks(output)["events"])


@case
def a_library_with_hidden_symbols_is_recorded():
    load = build("load", SOURCES / "load.c")
    expect_reported(timeline(expect_output([load, library("one.so")], HEARD)))


@case
def several_libraries_are_recorded_each_for_itself():
    load = build("load", SOURCES / "load.c")
    libraries = [library(f"{name}.so") for name in ("one", "two", "three", "four")]
    result, output = record([load, *libraries])
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    events = timeline(output)
    threads = [event["thread"] for event in events if event.get("name") == "outer"]
    expect_equal(len(set(threads)), 4, "threads")
    enders = iter([event["thread"] for event in events if event["event"] == "thread_name"])
    ranges = {event["range"]: event["thread"] for event in events if event.get("name") == "handed over"}
    ended = {event["thread"]: ranges[event["range"]] for event in events
             if event["event"] == "range_end" and event["range"] in ranges}
    expect_equal(sorted(ended.values()), sorted(threads), "threads with ranges that ended on others")
    for thread in threads:
        expect_reported([event for event in events if event["thread"] == thread or ended.get(event["thread"]) == thread])
    assert all(ender in ended for ender in enders)


@case
def without_the_activity_nothing_is_reported():
    output = expect_output([program()], DEAF, env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal(timeline(output), [], "events")


def consumer():
    return build("consumer.so", SOURCES / "consumer.c", f"-I{nvtx_headers()}", "-fPIC", "-shared")


def chained(command, expected, **env):
    """The lines of the consumer's log, and the recording, of a run that both have seen."""
    log = scratch("log") / "log"
    where = {"NVTX_INJECTION64_PATH": str(consumer()), "CONSUMER_LOG": str(log), **env}
    output = expect_output(command, expected, env=where)
    return log.read_text(errors="replace").splitlines() if log.exists() else [], output


@case
def a_tool_that_was_there_first_receives_it_too():
    say = program()
    # Its depths where it gives one. It has no wide characters and no payloads.
    log, output = chained([say], "100 1 101 101 100 99\n99 100 99\n0 0 1\n")
    events = timeline(output)
    expect_reported(events)
    expect_equal(log[0], "initialize 3 ", "the consumer's beginning")
    calls = collections.Counter(log)
    expect_equal({call: n for call, n in calls.items() if n > 1 and not call.startswith(("pop", "mark default payload"))}, {},
                 "calls that came twice")
    for call in ("mark default mark", "push default outer", "push default all of it", "start default started",
                 "end default known", "domain domain ", "string domain registered", "push domain registered",
                 "mark domain wide", "push default of no domain", "start domain handed over", "end domain known"):
        expect_equal(calls[call], 1, f"times that the consumer received '{call}' ({log})")
    assert "another tool was there first" in torsh("report", output), "it is not in the report"


@case
def a_tool_alone_receives_the_same():
    say, log, both = program(), scratch("alone") / "log", scratch("beside") / "log"
    tool = str(consumer())
    for path, environment in ((log, clean_environment()), (both, agent_environment(scratch()))):
        environment.update(NVTX_INJECTION64_PATH=tool, CONSUMER_LOG=str(path))
        expect_equal(run([say], environment).returncode, 0, "status")
    expect_equal(both.read_text(), log.read_text(), "what the tool receives with the agent")


@case
def a_tool_that_fails_is_reported_and_done_without():
    say = program()
    log, output = chained([say], HEARD, CONSUMER_FAILS="1")
    expect_equal(log, [], "the consumer's log")
    expect_reported(timeline(output))
    output = expect_output([say], HEARD, env={"NVTX_INJECTION64_PATH": "/nonexistent/tool.so"})
    expect_reported(timeline(output))
    assert "can't be opened" in torsh("report", output), "it is not in the report"


@case
def the_users_environment_stays_his():
    show = ["sh", "-c", "echo $NVTX_INJECTION64_PATH $INTEL_LIBITTNOTIFY64"]
    expect_output(show, "/x/tool.so /y/tool.so\n", env={"NVTX_INJECTION64_PATH": "/x/tool.so",
                                                         "INTEL_LIBITTNOTIFY64": "/y/tool.so"})
    expect_output(show, f"{AGENT} {AGENT}\n")
    expect_output(show, f"{AGENT}\n", env={"TORSH_PROFILER_ACTIVITIES": "heap,nvtx"})


@case
def children_are_recorded_where_they_are_followed():
    say = program()
    script = ["sh", "-c", f"{shell_words(say)}; true"]
    expect_reported(timeline(expect_output(script, HEARD)))
    output = expect_output(script, DEAF, env={"TORSH_PROFILER_FOLLOW": "0"})
    expect_equal(timeline(output), [], "events of a child that is not followed")


@case
def a_process_without_the_preload_stays_unrecorded():
    """NVTX opens the agent there: unwanted there, it stays silent."""
    say, output = program(), scratch()
    environment = dict(clean_environment(), NVTX_INJECTION64_PATH=str(AGENT), TORSH_PROFILER_OUTPUT=str(output))
    result = run([say], environment)
    expect_equal((result.returncode, result.stdout.decode(), result.stderr), (0, DEAF, b""), "status and output")
    expect_equal(list(output.iterdir()), [], "files")


@case
def torsh_regions_reach_a_tool_for_nvtx():
    """Nothing in that program speaks NVTX."""
    log, output = chained([PROGRAMS / "regions"], "there\n0 1 1 0 -1 2 0 0 42\n")
    calls = collections.Counter(log)
    for call in ("initialize 3 ", "push default outer", "push default scoped", "domain other ", "push other with all",
                 "mark other mark with all", "pop other ", "mark default here"):
        expect_equal(calls[call], 1, f"times that the consumer received '{call}'")
    n = sum(count for call, count in calls.items() if call.startswith("push default"))
    expect_equal((n, calls["pop default "]), (2 * 4 * 500 + 5, 2 * 4 * 500 + 4), "pushes, and pops that end something")
    expect_equal({event["source"] for event in timeline(output) if "source" in event}, {"torsh"}, "sources in the recording")


VERSION_2 = """
import ctypes, sys
old = ctypes.CDLL(sys.argv[1])
old.nvtxDomainCreateA.restype = ctypes.c_void_p
print(old.nvtxRangePushA(b"outer"), old.nvtxRangePushA(b"inner"), old.nvtxRangePop(), old.nvtxRangePop())
old.nvtxMarkA(b"mark")
old.nvtxRangeEnd(ctypes.c_uint64(old.nvtxRangeStartA(b"started")))
print(bool(old.nvtxDomainCreateA(b"domain")))
"""


@case
def version_2_is_recorded_once():
    """NVIDIA's own library of NVTX 2 finds the agent as programs that embed version 3 do."""
    python, library = nvtx_2_library()
    events = timeline(expect_output([python.path, "-c", VERSION_2, library], "0 1 1 0\nTrue\n"))
    expect_equal(nested(events, events[0]["thread"]), [(0, "outer"), (1, "inner")], "ranges")
    expect_equal([event["event"] for event in events[4:]], ["mark", "range_start", "range_end"], "the others")


NCCL = """
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
nccl.ncclCommInitAll((ctypes.c_void_p * 1)(), 1, None)
nccl.ncclAllReduce(None, None, ctypes.c_size_t(4), 7, 0, None, None)
"""


@case
@needs("torch")
def nccl_is_recorded():
    """A library with schemas and payloads of its own, which registers them without a GPU, too."""
    environment = pathlib.Path(torch_python()).parent.parent
    libraries = sorted(environment.glob("lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"))
    if not libraries:
        raise Skip(f"{environment} has no libnccl: its PyTorch is one without CUDA")
    result, output = record([sys.executable, "-c", NCCL, libraries[0]])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-300:]})")
    calls = {entry["name"]: entry["calls"] for entry in read_report("regions", output)["regions"] if entry["domain"] == "NCCL"}
    expect_equal((calls["ncclCommInitAll"], calls["ncclAllReduce"]), (1, 1), f"calls of NCCL among {calls}")


PYTHON = """
import nvtx, threading
@nvtx.annotate("function", color="blue", domain="python", category="kind", payload=3)
def work():
    with nvtx.annotate("inner", domain="python"):
        nvtx.mark("mark", domain="python")
work()
handle = nvtx.start_range("across", domain="python")
thread = threading.Thread(target=nvtx.end_range, args=(handle,)); thread.start(); thread.join()
"""


@case
def the_python_module_nvtx_is_recorded():
    python, folder = python_with("nvtx")
    output = expect_output([python.path, "-c", PYTHON], "", env={"PYTHONPATH": str(folder)})
    events = timeline(output)
    main = next(event["thread"] for event in events)
    expect_equal(nested(events, main, "python"), [(0, "function"), (1, "inner")], "ranges")
    function = next(event for event in events if event.get("name") == "function")
    expect_equal((function["category"], function["payload"], function["color"]), ("kind", 3, 0x0000ff), "attributes")
    expect_equal([event["event"] for event in events if event["event"] in ("mark", "range_start", "range_end")],
                 ["mark", "range_start", "range_end"], "the others")


main()
