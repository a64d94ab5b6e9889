#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Operators, modules and steps as ranges of other tools, which are written against the headers of NVTX and ITT."""

import collections
import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build, nvtx_headers  # noqa: E402
from environments import torch_python  # noqa: E402
from timeline import events  # noqa: E402

SOURCES = ROOT / "test/programs/ranges"
ALL = "operators,modules,steps"
VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "tools/python"), "CONSUMER_THREADS": "1"}

# With an exception out of an operator within modules, one out of a module, a record that ends after the one around it and one that
# ends on another thread, and threads.
TRAINING = """
import threading, torch
torch.manual_seed(1)
torch.set_num_threads(1)

class Fails(torch.nn.Module):
    def forward(self, x):
        torch.relu(x)
        raise ValueError("of a module")

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
failing = torch.nn.Sequential(torch.nn.Linear(4, 4), Fails())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(times):
    for _ in range(times):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()

def infer():
    with torch.no_grad():
        for _ in range(5):
            model(torch.ones(2, 4))

train(3)
for call in (lambda: model(torch.ones(3, 3)), lambda: failing(torch.ones(2, 4))):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__)
model(torch.ones(2, 4))

outer, inner = torch.profiler.record_function("outer"), torch.profiler.record_function("inner")
outer.__enter__(), inner.__enter__(), torch.ones(1), outer.__exit__(None, None, None), inner.__exit__(None, None, None)
torch.zeros(1)
handed = torch.profiler.record_function("handed over")
with torch.profiler.record_function("around it"):
    handed.__enter__()
    thread = threading.Thread(target=handed.__exit__, args=(None, None, None))
    thread.start(), thread.join()
    torch.zeros(2)
torch.zeros(3)
threads = [threading.Thread(target=infer) for _ in range(3)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(float(model(torch.ones(2, 4)).sum().detach()))
"""

STEPS = """
import torsh
for i in range(4):
    torsh.step(i)
torsh.step(9, "named")
print("done")
"""


@functools.lru_cache(None)
def tools():
    """Of NVTX and of ITT."""
    headers = sorted((pathlib.Path(torch_python()).parent.parent).glob("lib/python3*/site-packages/torch/include/ittnotify.h"))
    if not headers:
        raise Skip("PyTorch's environment has no header of ITT")
    return (build("nvtx.so", SOURCES / "nvtx/consumer.c", f"-I{nvtx_headers()}", "-fPIC", "-shared"),
            build("itt.so", SOURCES / "itt/consumer.c", f"-I{headers[0].parent}", "-fPIC", "-shared"))


def forwarded(code, forward, with_nvtx=True, with_itt=True, python=None):
    """The tools' calls in the agent's domains, (thread, call, domain, text), and the recording; the program as it is without both."""
    nvtx, itt = tools()
    log = scratch("log") / "log"
    command = [python or torch_python(), "-c", code]
    settings = {"CONSUMER_LOG": str(log), **({"NVTX_INJECTION64_PATH": str(nvtx)} if with_nvtx else {}),
                **({"INTEL_LIBITTNOTIFY64": str(itt)} if with_itt else {}), **({"TORSH_PROFILER_FORWARD": forward} if forward else {})}
    bare = run(command, env={**clean_environment(), **VARIABLES})
    result, output = record(command, env={**VARIABLES, **settings})
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "the program")
    expect_equal(result.returncode, 0, result.stderr.decode())
    calls = []
    for line in log.read_text().splitlines() if log.exists() else []:
        thread, call, rest = line.split(" ", 2)
        domain = next((name for name in ("torsh operators", "torsh modules", "torsh steps") if rest.startswith(name + " ")), None)
        if domain and call != "domain":
            calls.append((int(thread), call, domain, rest[len(domain) + 1:]))
        elif call in ("start", "finish"):
            calls.append((int(thread), call, *rest.split(" ", 1)))
    return calls, output


def by_thread(calls, domain, words):
    """Names with their depths in the order of their beginnings, of each thread; begins and ends have to match."""
    found, depths = collections.defaultdict(list), collections.Counter()
    for thread, call, of, text in calls:
        if of != domain or call not in words:
            continue
        if call == words[0]:
            found[thread].append((depths[thread], text))
        depths[thread] += 1 if call == words[0] else -1
        assert depths[thread] >= 0, f"{call} of thread {thread} ends nothing"
    expect_equal({thread: depth for thread, depth in depths.items() if depth}, {}, f"ranges of {domain} that stay open")
    return sorted(found.values())


def recorded(output, begin, end):
    """The same of the recording: names of what its events begin."""
    found, open_ = collections.defaultdict(list), collections.defaultdict(list)
    for event in events(output):
        thread = event.get("thread")
        if begin(event):
            found[thread].append((len(open_[thread]), event["name"]))
            open_[thread].append(event.get("record"))
        elif end(event):
            # What is inside of it ended elsewhere.
            if event.get("record") in open_[thread]:
                while open_[thread].pop() != event.get("record"):
                    pass
    return sorted(found.values())


def operators_of(output):
    return recorded(output, lambda event: event["event"] == "op_begin", lambda event: event["event"] == "op_end")


def modules_of(output):
    return recorded(output, lambda event: event["event"] == "range_push" and event["source"] == "module",
                    lambda event: event["event"] == "range_pop" and event["source"] == "module")


@case
def both_tools_get_what_is_recorded():
    calls, output = forwarded(TRAINING, ALL)
    operators, modules = operators_of(output), modules_of(output)
    assert len(operators) >= 4 and len(modules) >= 4, (len(operators), len(modules))
    names = {name for thread in operators for _, name in thread}
    assert {"outer", "inner", "handed over", "around it", "aten::addmm", "aten::zeros"} <= names, names
    for words in (("push", "pop"), ("begin", "end")):
        expect_equal(by_thread(calls, "torsh operators", words), operators, f"operators by {words[0]}")
        expect_equal(by_thread(calls, "torsh modules", words), modules, f"modules by {words[0]}")
    steps = [(call, text) for _, call, domain, text in calls if domain == "torsh steps"]
    expect_equal(steps, [("start", "step 0"), ("start", "step 1"), ("end", "known"), ("start", "step 2"), ("end", "known")],
                 "steps of NVTX: each ends the one before")
    steps = [(call, text) for _, call, domain, text in calls if domain == "torsh" and call in ("start", "finish")]
    expect_equal(steps, [("start", "step 0"), ("finish", ""), ("start", "step 1"), ("finish", ""), ("start", "step 2")], "steps of ITT")
    domains = {event.get("domain") for event in events(output)}
    assert not domains & {"torsh operators", "torsh modules", "torsh steps"}, f"recorded again: {domains}"


@case
@long
def one_kind_is_chosen():
    for kind in ("operators", "modules"):
        calls, output = forwarded(TRAINING, kind, with_itt=kind == "modules", with_nvtx=kind == "operators")
        expect_equal({domain for _, _, domain, _ in calls}, {f"torsh {kind}"}, "domains")
        words = ("push", "pop") if kind == "operators" else ("begin", "end")
        expect_equal(by_thread(calls, f"torsh {kind}", words), (operators_of if kind == "operators" else modules_of)(output), kind)


@case
def steps_of_a_program_without_pytorch():
    calls, _ = forwarded(STEPS, "steps", with_itt=False, python=sys.executable)
    expect_equal([text for _, call, _, text in calls if call == "start"], ["step 0", "step 1", "step 2", "step 3", "named"], "steps")
    expect_equal(sum(call == "end" for _, call, _, _ in calls), 4, "steps that ended")


@case
def nothing_is_forwarded_unless_requested_or_heard():
    calls, output = forwarded(TRAINING, None)
    expect_equal(calls, [], "calls without the variable")
    wanted = (operators_of(output), modules_of(output))
    calls, output = forwarded(TRAINING, ALL, with_nvtx=False, with_itt=False)
    expect_equal((calls, (operators_of(output), modules_of(output))), ([], wanted), "without a tool")
    assert not {event.get("domain") for event in events(output)} & {"torsh operators", "torsh modules", "torsh steps"}


@case
def values_that_are_no_list_are_named():
    for value in ("ops", "", "operators;steps"):
        result, _ = record(["/bin/true"], env={"TORSH_PROFILER_FORWARD": value, "TORSH_PROFILER_SUMMARY": "0"})
        assert b"TORSH_PROFILER_FORWARD" in result.stderr and b"operators,modules,steps" in result.stderr, result.stderr


main()
