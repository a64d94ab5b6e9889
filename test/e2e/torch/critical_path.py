#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The critical path of steps on the CPU: the share of what the program waits for, by its own clock; a chain on another thread;
and what a step would take without a part, by a second run without it.
"""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from schema import expect_fits  # noqa: E402

all_are_quiet()

ACTIVITIES = "torch,python,waits"
# LOAD WORKERS: a step loads for so long, then computes and sleeps for 60 ms. It prints when it had each batch, and when it was done.
LOADING = """
import json, sys, time, torch
torch.set_num_threads(1)
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 13
    def __getitem__(self, i):
        time.sleep(float(sys.argv[1]))
        return torch.ones(64)
if __name__ == "__main__":
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    told = []
    for batch in torch.utils.data.DataLoader(Data(), num_workers=int(sys.argv[2])):
        got = time.perf_counter_ns()
        loss = model(batch).sum()
        optimizer.zero_grad()
        loss.backward()
        time.sleep(0.06)
        optimizer.step()
        told.append((got, time.perf_counter_ns()))
    print(json.dumps(told))
"""


def recorded(name, text, *arguments, activities=ACTIVITIES):
    """What the program printed, its report, and its recording."""
    def make(folder):
        script = folder / "train.py"
        script.write_text(text)
        env = {"TORSH_PROFILER_ACTIVITIES": activities, "TORSH_PROFILER_WITH_STACK": "0"}
        result, output = record([torch_python(), "-W", "ignore", script, *map(str, arguments)], folder / "out", env=env, timeout=300)
        expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-2000:]})")
        return json.loads(result.stdout), str(output)
    told, output = once(f"critical-{name}", make)
    report = read_report("report", output, "--no-lines")
    expect_fits("report", report)
    expect_equal(report["critical_path_reason"], None, "reason")
    expect_equal(sum(row["ns"] for row in report["critical_path"]), report["critical_path_of"]["steps_ns"], "the path's pieces")
    return told, report, output


def kinds(report):
    return [item["kind"] for item in report["bottlenecks"]]


def path_ns(report, kind, what=None, lane=""):
    return sum(row["ns"] for row in report["critical_path"]
               if row["kind"] == kind and what in (None, row["what"]) and lane in row["lane"])


def waited_share(told):
    """From the end of a step to its batch, of the steps after the first."""
    waits = [got - before for (_, before), (got, _) in zip(told, told[1:])]
    return sum(waits) / (told[-1][1] - told[0][1])


@case
@needs("torch")
def a_training_that_waits_for_its_data_is_told_how_long_and_what_it_gains():
    told, report, output = recorded("slow", LOADING, 0.12, 0)
    found = report["bottlenecks"][0]
    print(found, waited_share(told))
    expect_equal((found["kind"], found["next"]), ("data", "torsh cpu --off"), "bottleneck")
    assert abs(found["share"] - waited_share(told)) < 0.02, (found, waited_share(told))
    text = torsh("report", output, "--no-lines")
    assert f"slowed by waiting for data, {100 * found['share']:.1f}%: {found['evidence']}" in text, text
    # The second run does load for free.
    again, free, _ = recorded("free", LOADING, 0, 0)
    of = report["critical_path_of"]
    predicted = of["steps_ns"] * (1 - found["gain"]) / of["steps"]
    measured = statistics.median(after[1] - before[1] for before, after in zip(again, again[1:]))
    print(f"a step takes {of['steps_ns'] / of['steps'] / 1e6:.1f} ms, would take {predicted / 1e6:.1f}, and takes {measured / 1e6:.1f}")
    assert abs(predicted - measured) < 0.25 * measured, (predicted, measured)
    # What is left of loading is PyTorch's part of it.
    assert path_ns(free, "data") < 0.2 * path_ns(report, "data"), free["critical_path"]


@case
@needs("torch")
def the_path_of_one_thread_is_the_account_of_its_steps():
    _, report, output = recorded("slow", LOADING, 0.12, 0)
    steps = json.loads(torsh("cpu", output, "--off", "--json", "--limit", "0"))["steps"]
    sums = {}
    for step in steps:
        if step["index"]:
            for part, ns in step["parts"].items():
                sums[part] = sums.get(part, 0) + ns
    print(sums, report["critical_path"][:5])
    expect_equal(path_ns(report, "data", "waiting for data"), sums["data"], "waiting for data")
    expect_equal(path_ns(report, "gc"), sums["gc"], "collecting garbage")
    expect_equal(path_ns(report, "sleep"), sums["other_waits"], "sleep")
    running = path_ns(report, "operators") + path_ns(report, "python") + path_ns(report, "data", "loading data")
    expect_equal(running, sums["operators"] + sums["between"], "operators, and what is between them")


@case
@needs("torch")
def a_training_that_waits_for_the_processes_that_load_is_told_so():
    told, report, _ = recorded("workers", LOADING, 0.4, 2)
    found = report["bottlenecks"][0]
    print(found, waited_share(told))
    expect_equal(found["kind"], "data", "bottleneck")
    assert abs(found["share"] - waited_share(told)) < 0.03, (found, waited_share(told))


# The main thread gives each step's work to another one and waits for it; that prints for how long it was at work.
CHAIN = """
import json, queue, threading, time, torch, torsh
torch.set_num_threads(1)
a = torch.ones(400, 400)
work, done, busy, given, back = queue.Queue(), queue.Queue(), [], [], []
def compute():
    while work.get():
        begin = time.perf_counter_ns()
        for i in range(20):
            torch.mm(a, a)
        busy.append((begin, time.perf_counter_ns()))
        done.put(1)
other = threading.Thread(target=compute)
other.start()
marks = []
for step in range(12):
    torsh.step(step)
    marks.append(time.perf_counter_ns())
    time.sleep(0.02)
    given.append(time.perf_counter_ns())
    work.put(1)
    done.get()
    back.append(time.perf_counter_ns())
torsh.step(12)
marks.append(time.perf_counter_ns())
work.put(0)
other.join()
print(json.dumps([busy, marks, given, back]))
"""


def chained(activities):
    script = f"import sys\nsys.path.insert(0, {str(ROOT / 'tools/python')!r})\n{CHAIN}"
    return recorded(f"chain-{activities}", script, activities=activities)


def computed(busy):
    return sum(end - begin for begin, end in busy[1:])


@case
@needs("torch")
def a_chain_on_another_thread_is_the_path_while_the_main_one_waits():
    (busy, marks, given, back), report, output = chained(ACTIVITIES)
    whole, of = marks[-1] - marks[1], report["critical_path_of"]
    [lane] = {row["lane"] for row in report["critical_path"] if row["what"] == "aten::mm"}
    operators = path_ns(report, "operators", "aten::mm")
    chain = operators + path_ns(report, "python", lane=lane)
    # On a machine that is loaded a thread goes on long after it was woken: what is late is a wait, or between two calls.
    late = sum(begin - put + got - end for (begin, end), put, got in list(zip(busy, given, back))[1:])
    own = whole - computed(busy) - late
    waits, slept = path_ns(report, "locks") + path_ns(report, "gil"), path_ns(report, "sleep")
    print(f"of {whole} ns: computed {computed(busy)}, chain {chain}, operators {operators}")
    print(f"late {late}, waits {waits}, slept {slept}, own {own}")
    print(report["bottlenecks"], report["critical_path"][:5], of["notes"])
    expect_equal(of["steps"], len(marks) - 2, "steps")
    slack = 0.02 * whole
    assert computed(busy) - slack <= chain <= computed(busy) + late + slack, (chain, computed(busy), late)
    assert waits <= late + slack, (waits, late)
    assert 0.02e9 * of["steps"] * 0.98 <= slept <= own + slack, (slept, own)
    # Each wait was ended by a semaphore's post, which was recorded.
    assert not any("taken from times" in note for note in of["notes"]), of


@case
@needs("torch")
def that_chain_is_found_without_records_of_waits_too():
    (busy, marks, *_), report, _ = chained("torch,python")
    share = path_ns(report, "operators", "aten::mm") / report["critical_path_of"]["steps_ns"]
    print(share, report["critical_path"][:5], report["critical_path_of"]["notes"])
    assert abs(share - computed(busy) / (marks[-1] - marks[1])) < 0.05, (share, busy, marks)
    assert any("waits of threads were not recorded" in note for note in report["critical_path_of"]["notes"]), report


# Steps of many operators of which none takes half of the time.
EVEN = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import torsh
torch.set_num_threads(1)
a, b = torch.rand(1 << 19), torch.rand(192, 192)
for step in range(10):
    torsh.step(step)
    for i in range(4):
        torch.exp(a), torch.sin(a), torch.mm(b, b), torch.sqrt(a), torch.cumsum(a, 0), torch.add(a, a)
torsh.step(10)
torch.add(a, a)
print("null")
"""


@case
@needs("torch")
def steps_in_which_nothing_stands_out_have_no_bottleneck():
    _, report, output = recorded("even", EVEN, ROOT / "tools/python", activities="torch,python")
    print(report["bottlenecks"], report["critical_path"][:5])
    expect_equal(report["bottlenecks"], [], "bottlenecks")
    assert "slowed by" not in torsh("report", output, "--no-lines")


@case
@needs("torch")
def a_program_without_steps_has_no_path_and_says_why():
    result, output = record([torch_python(), "-c", "import torch; torch.ones(8) + 1"], env={"TORSH_PROFILER_ACTIVITIES": "torch"})
    report = read_report("report", output, "--no-lines")
    expect_fits("report", report)
    expect_equal((report["bottlenecks"], report["critical_path"], report["critical_path_of"], report["critical_path_reason"]),
                 (None, None, None, "no steps are known"), "path")
    report = read_report("report", output, "--no-lines", "--no-timeline")
    expect_fits("report", report)
    expect_equal((report["critical_path"], report["critical_path_reason"]), (None, "the timeline was not read"), "path")


# Each step computes for 20 ms, but 103 sleeps for 60 ms before and 105 for 40. It prints when each began.
UNEVEN = """
import json, time, torsh
marks = []
for step in range(100, 109):
    torsh.step(step)
    marks.append(time.perf_counter_ns())
    time.sleep({103: 0.06, 105: 0.04}.get(step, 0))
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 20_000_000:
        pass
print(json.dumps(marks))
"""


@case
def the_path_of_a_chosen_step_is_its_own():
    script = f"import sys\nsys.path.insert(0, {str(ROOT / 'tools/python')!r})\n{UNEVEN}"
    marks, whole, output = recorded("uneven", script)
    of = whole["critical_path_of"]
    expect_equal((of["first_step"], of["last_step"] - of["first_step"] + 1), (101, of["steps"]), "without one that is chosen")
    for first, last, slept in ((103, 103, 60e6), (105, 105, 40e6), (103, 105, 100e6), (104, 104, 0)):
        steps = str(first) if first == last else f"{first}-{last}"
        report = read_report("report", output, "--no-lines", "--steps", steps)
        expect_fits("report", report)
        of = report["critical_path_of"]
        expect_equal((of["first_step"], of["last_step"], of["steps"]), (first, last, last - first + 1), "steps")
        expect_equal(sum(row["ns"] for row in report["critical_path"]), of["steps_ns"], "the path's pieces")
        took = marks[last + 1 - 100] - marks[first - 100]
        assert abs(of["steps_ns"] - took) < 2e6, (of, took)
        # It can be no shorter; what the machine adds is in the step's own time.
        found = path_ns(report, "sleep")
        assert slept * 0.9 <= found <= max(took - (last - first + 1) * 20e6, 1e6), (steps, found, took)
        text = torsh("report", output, "--no-lines", "--steps", steps, "--verbose")
        named = f"step {first}" if first == last else f"steps {first}-{last}"
        assert f"Critical path of {named}" in text, text
        assert f"of {named} is one chain" in torsh("report", output, "--no-lines", "--steps", steps), named
    for wrong, sentence in (("999", "the recording has no step 999"), ("x", "--steps takes a number")):
        result = run([TORSH, "report", output, "--steps", wrong])
        expect_equal((result.returncode, sentence in result.stderr.decode()), (2, True), f"of --steps {wrong} ({result.stderr})")
    result = run([TORSH, "report", output, "--steps", "103", "--no-timeline"])
    expect_equal(result.returncode, 2, "status with --no-timeline")


main()
