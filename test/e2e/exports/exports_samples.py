#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Samples of the processor as timelines: Perfetto's trace processor, Chrome's JSON and the Firefox Profiler's have the samples of
torsh cpu, with the same time for each function and each thread.
"""

import collections
import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/readers"))
from harness import *  # noqa: E402,F403
from consumers import ask_trace_processor  # noqa: E402
from environments import torch_python  # noqa: E402
from exported import exported, refused  # noqa: E402
import firefox  # noqa: E402

SAMPLED = {"TORSH_PROFILER_ACTIVITIES": "samples,python,waits", "TORSH_PROFILER_CPU_HZ": 1000}

PYTHON = """
import gc, threading, time
def burn(seconds):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < seconds * 1e9:
        for i in range(2000):
            pass
def first():
    burn(0.3)
def of_thread():
    burn(0.2)
    time.sleep(0.02)
thread = threading.Thread(target=of_thread)
thread.start()
first()
thread.join()
gc.collect()
"""

TRAINING = """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(512, 64)).sum().backward()
    optimizer.step()
"""


@functools.cache
def of_c():
    return record([PROGRAMS / "cpu_burn", "0.3"], env=SAMPLED)[1]


@functools.cache
def of_python():
    result, output = record([sys.executable, "-c", PYTHON], env=SAMPLED)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return output


@functools.cache
def of_training():
    result, output = record([torch_python(), "-c", TRAINING], env={**SAMPLED, "TORSH_PROFILER_ACTIVITIES": "samples,python,waits,torch"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    return output


RECORDINGS = (of_c, of_python)


def truth(output):
    """Of torsh cpu: how many samples, their time, and that of each function and each thread."""
    report = read_report("cpu", output, "--limit", "0")
    functions, threads = collections.Counter(), collections.Counter()
    for row in report["functions"]:
        if row["function"]:
            functions[row["function"]] += row["total_ns"]
    for row in report["threads"]:
        threads[row["tid"]] += row["ns"]
    assert report["samples"] > 20 and functions, report["samples"]
    return report, functions, threads


def add_stack(functions, stack, ns, known):
    """A function counts once in a stack. Functions of one name, which torsh cpu tells apart, are compared if they are one."""
    for function in set(stack) & known:
        functions[function] += ns


def check(output, samples):
    """samples: (tid, ns, functions of the stack, or None where it has none) of each."""
    report, wanted, threads = truth(output)
    rows = collections.Counter(row["function"] for row in report["functions"])
    known = {function for function in wanted if rows[function] == 1}
    found, of_threads = collections.Counter(), collections.Counter()
    for tid, ns, stack in samples:
        of_threads[tid] += ns
        add_stack(found, stack or (), ns, known)
    expect_equal((len(samples), sum(ns for _, ns, _ in samples)), (report["samples"], report["ns"]), "samples and their time")
    expect_equal(of_threads, threads, "threads")
    expect_equal({name: (found[name], wanted[name]) for name in known if found[name] != wanted[name]}, {}, "functions with another time")
    expect_equal(sum(stack is None for _, _, stack in samples), report["without_stack"], "samples without a stack")


FRAMES = "select id, name, mapping, rel_pc from stack_profile_frame"
CALLSITES = "select id, parent_id, frame_id from stack_profile_callsite"
SAMPLES = "select s.ts, t.tid, s.callsite_id, s.perf_session_id as session from perf_sample s join thread t using (utid) order by s.id"
CLOCK = "select c.ts, c.value, p.name, p.perf_session_id as session from counter c join perf_counter_track p on c.track_id = p.id order by c.id"
MAPPINGS = "select id, name from stack_profile_mapping"


def of_trace_processor(path):
    """The samples of a trace, and (name, mapping, rel_pc) of its frames."""
    frames, callsites, samples, clock, mappings = ask_trace_processor(path, FRAMES, CALLSITES, SAMPLES, CLOCK, MAPPINGS)
    files = {row["id"]: row["name"] for row in mappings}
    frames = {row["id"]: (row["name"], files[row["mapping"]], row["rel_pc"]) for row in frames}
    callsites = {row["id"]: row for row in callsites}
    expect_equal([(row["ts"], row["session"]) for row in clock], [(row["ts"], row["session"]) for row in samples], "values of counters")
    expect_equal({row["name"] for row in clock}, {"cpu-clock"}, "the counter")
    # A process has a counter of its own.
    found, before = [], collections.Counter()
    for sample, value in zip(samples, clock):
        stack, at = [], sample["callsite_id"]
        while at is not None:
            stack.append(frames[callsites[at]["frame_id"]])
            at = callsites[at]["parent_id"]
        found.append((sample["tid"], int(value["value"]) - before[sample["session"]], stack or None))
        before[sample["session"]] = int(value["value"])
    return found


@case
def perfettos_trace_processor_has_the_samples():
    for recording in RECORDINGS:
        samples = of_trace_processor(exported(recording(), "t.pftrace", "--format", "perfetto"))
        check(recording(), [(tid, ns, [name for name, _, _ in stack] if stack else None) for tid, ns, stack in samples])
    # A line of Python has its file and number; native code its library.
    stacks = [stack for _, _, stack in samples]
    assert any(name == "burn" and file == "/<string>" and 4 <= line <= 7 for stack in stacks for name, file, line in stack), stacks[0]
    assert any(file.endswith(("libc.so.6", "libpthread.so.0")) for stack in stacks for _, file, _ in stack), stacks[0]


@case
def chromes_json_has_the_samples():
    """Members as in the description of the format that catapult has; Perfetto's trace processor finds no fault with them."""
    for recording in RECORDINGS:
        path = exported(recording(), "t.json", "--format", "chrome")
        trace = json.loads(path.read_text())
        nodes = trace["stackFrames"]
        for number, node in nodes.items():
            assert {"category", "name"} <= node.keys() <= {"category", "name", "parent"}, node
            assert number.isdigit() and node.get("parent", "0").isdigit() and int(node.get("parent", "0")) < int(number), node
        samples, moments = [], collections.defaultdict(list)
        for sample in trace["samples"]:
            assert {"pid", "tid", "ts", "name", "weight"} <= sample.keys() <= {"pid", "tid", "ts", "name", "weight", "sf"}, sample
            stack, at = [], sample.get("sf")
            while at:
                stack.append(nodes[at]["name"].split(" (")[0])
                at = nodes[at].get("parent")
            samples.append((sample["tid"], sample["weight"], stack or None))
            moments[sample["tid"]].append(sample["ts"])
        check(recording(), samples)
        assert all(times == sorted(times) for times in moments.values()), "samples are not in the order of their times"
        ask_trace_processor(path)
    assert any(node["name"] == "burn (<string>:6)" and node["category"] == "Python" for node in nodes.values()), nodes


def read_firefox(output, *arguments):
    profile = json.loads(exported(output, "t.firefox.json", "--format", "firefox", *arguments).read_text())
    firefox.check_profile(profile)
    samples = []
    for thread in profile["threads"]:
        columns = (thread["samples"][name] for name in ("stack", "weight", "threadCPUDelta"))
        for stack, weight, ns in zip(*columns):
            expect_equal(round(weight * 1e6), ns, "the weight of a sample in ms")
            samples.append((thread["tid"], ns, None if stack is None else firefox.stack_of(profile, stack)))
    return profile, samples


def markers(profile, kind):
    """(name, start, end in ms, fields as texts, stack) of the markers of a type."""
    texts, found = profile["shared"]["stringArray"], []
    for thread in profile["threads"]:
        columns = (thread["markers"][name] for name in ("data", "name", "startTime", "endTime"))
        for data, name, start, end in zip(*columns):
            if data["type"] == kind:
                fields = {key: texts[value] for key, value in data.items() if key not in ("type", "cause")}
                found.append((texts[name], start, end, fields, data.get("cause", {}).get("stack")))
    return found


@case
def the_firefox_profiler_has_the_samples():
    for recording in RECORDINGS:
        profile, samples = read_firefox(recording())
        check(recording(), [(tid, ns, [frame[0] for frame in stack] if stack else None) for tid, ns, stack in samples])
    assert any(frame[:2] == ("burn", "<string>") and frame[3] == "Program" for _, _, stack in samples for frame in stack), "no line of the program"
    (sleep,) = [one for one in markers(profile, "Wait") if one[3]["kind"] == "sleep"]
    assert any(frame[0] == "of_thread" for frame in firefox.stack_of(profile, sleep[4])), sleep
    assert any(name == "Python GC, generation 2" for name, *_ in markers(profile, "PythonGC")), markers(profile, "PythonGC")
    longest = max(row["longest_ns"] for row in read_report("cpu", recording(), "--off")["waits"])
    expect_equal(round(1e6 * max(end - start for _, start, end, _, _ in markers(profile, "Wait"))), longest, "the longest wait")


@case
def operators_and_modules_are_markers():
    output = of_training()
    profile, samples = read_firefox(output)
    expect_equal(len(samples), read_report("cpu", output)["samples"], "samples")
    wanted = collections.Counter({row["name"]: row["calls"] for row in read_report("ops", output, "--limit", "0")["ops"]})
    found = markers(profile, "Operator")
    expect_equal(collections.Counter(name for name, *_ in found), wanted, "operators")
    assert {"forward", "backward", "optimizer"} <= {fields["phase"] for _, _, _, fields, _ in found}, "phases"
    assert any(fields.get("module", "").endswith(":Linear") for _, _, _, fields, _ in found), "no operator in a module"
    assert any(name.endswith(":Linear") for name, *_ in markers(profile, "Module")), "modules"
    expect_equal(len(markers(profile, "Step")), len(read_report("steps", output, "--limit", "0")["steps"]), "steps")


@case
def a_window_holds_of_samples_as_well():
    output = of_python()
    profile, samples = read_firefox(output)
    times = sorted(time for thread in profile["threads"] for time in thread["samples"]["time"])
    middle = times[len(times) // 2]
    _, later = read_firefox(output, "--from", f"{middle:.6f}ms")
    expect_equal(len(later), sum(time >= middle for time in times), "samples from the middle on")
    trace = json.loads(exported(output, "w.json", "--format", "chrome", "--from", f"{middle:.6f}ms").read_text())
    expect_equal(len(trace["samples"]), len(later), "samples in Chrome's JSON")
    assert len(later) < len(samples), "the window has all"


@case
def without_samples_there_is_nothing_of_them():
    _, output = record([PROGRAMS / "cpu_burn", "0.01"])
    for name in ("chrome", "firefox"):
        assert "no timeline" in refused(output, "--format", name), name
    _, waited = record([sys.executable, "-c", "import time; time.sleep(0.01)"], env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    assert "no timeline" in refused(waited, "--format", "firefox"), "waits alone are no timeline"
    (rows,) = ask_trace_processor(exported(output, "t.pftrace", "--format", "perfetto"), "select count(*) n from perf_sample")
    expect_equal(rows, [{"n": 0}], "samples")


if __name__ == "__main__":
    main()
