#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
PyTorch under the agent: the demo, and the same result with and without it.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import Truth, complete  # noqa: E402
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402
from torch_python import torch_python  # noqa: E402

TRAIN = ROOT / "test/bench/workloads/train.py"
LOADER = ROOT / "test/python/loader.py"
LEAK_LINE = next(i for i, line in enumerate(LOADER.read_text().splitlines(), 1) if line.endswith("# line: leak"))


@case
def training_comes_to_the_same_result():
    python = torch_python()
    bare = run([python, TRAIN, "100"])
    result, output = record([python, TRAIN, "100"])
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    report = leaks(output, "--no-lines")
    check_counts(report["events"])
    assert report["events"]["produced"] > 100_000, report["events"]


@case
def stacks_of_training_agree_with_the_arbiter():
    python = torch_python()
    result, output = record([python, TRAIN, "50"], env={"TORSH_PROFILER_CHECK_STACKS": "10"})
    expect_equal(result.returncode, 0, "status")
    counters = leaks(output, "--no-lines", "--limit", "1")["counters"]
    assert counters["captures_checked"] > 10_000, counters
    expect_equal(counters["captures_differing"], 0, "stacks that differ")


COUNTER = """
#include <dlfcn.h>
#include <stdio.h>

static int n;

char *__cxa_demangle(const char *mangled, char *buffer, size_t *n_bytes, int *status)
{
	static char *(*real)(const char *, char *, size_t *, int *);

	if (!real)
		real = dlsym(dlopen("libstdc++.so.6", RTLD_NOW), "__cxa_demangle");
	n++;
	return real(mangled, buffer, n_bytes, status);
}

__attribute__((destructor)) static void print(void)
{
	printf("%d\\n", n);
}
"""
NODES = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
with torch.autograd.profiler.record_function("steps"):
    for _ in range(int(sys.argv[1])):
        model(torch.ones(3, 4)).sum().backward()
"""


def calls_of_the_demangler(n_steps):
    """And the names of the nodes that the recording has."""
    source, library = scratch("counter") / "counter.c", scratch("library") / "counter.so"
    source.write_text(COUNTER)
    expect_equal(run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"]).returncode, 0, "status of gcc")
    result, output = record([torch_python(), "-c", NODES, n_steps], env={"LD_PRELOAD": f"{AGENT}:{library}"})
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}")
    return int(result.stdout), {operator.name for operator in operators(events(output)) if operator.name.endswith("Backward0")}


@case
def nodes_of_autograd_are_named_once():
    """PyTorch makes the names anew in each step, for nobody but an observer."""
    (few, names), (many, names_of_many) = calls_of_the_demangler(2), calls_of_the_demangler(40)
    expect_equal(many, few, "calls of the C++ run-time's demangler")
    assert few >= len(names), f"{few} calls for {len(names)} names"
    expect_equal(names_of_many, names, "names of nodes")
    assert {"AddmmBackward0", "ReluBackward0", "SumBackward0"} <= names, names


def leaks_of_workers(method):
    """Each at its line, in the process of the worker that leaked it."""
    python, truth = torch_python(), Truth(scratch("truth"))
    bare = run([python, LOADER, method, Truth(scratch("bare")).path])
    result, output = record([python, LOADER, method, truth.path])
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr),
                 "status and output")
    report = complete(output, "--no-lines", "--stacks", "python")
    check_counts(report["events"])
    expected, found = {}, {}
    for member in truth.members():
        blocks, size = expected.get(member.pid, (0, 0))
        expected[member.pid] = blocks + 1, size + member.size
    for entry in report["leaks"]:
        lines = [(frame["file"], frame["line"]) for frame in entry["stack"] if frame.get("language") == "python"]
        if lines and lines[0] == (str(LOADER), LEAK_LINE):
            blocks, size = found.get(entry["pid"], (0, 0))
            found[entry["pid"]] = blocks + entry["blocks"], size + entry["bytes"]
    expect_equal(len(expected), 2, "workers")
    expect_equal(found, expected, "blocks and bytes at their line, by pid")
    workers = [process for process in report["processes"] if process["pid"] in expected]
    expect_equal({process["end"] for process in workers}, {"exit 0"}, "ends of the workers")
    assert all(process["ppid"] in {other["pid"] for other in report["processes"]} for process in workers), workers


for start_method in ("fork", "spawn", "forkserver"):
    add = add_case if start_method == "fork" else add_long_case
    add(f"leaks_of_a_loaders_workers_by_{start_method}", leaks_of_workers, start_method)


CLEAN_LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset
items = TensorDataset(torch.ones(128, 8))
print(sum(batch.sum().item() for (batch,) in DataLoader(items, 4, num_workers=2)))
"""


@case
def a_loader_that_leaks_nothing_has_no_leaks():
    """Each of its workers keeps its last batches, and a cache of storages that holds their addresses as numbers."""
    result, output = record([torch_python(), "-c", CLEAN_LOADER])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"1024.0\n", b""), "status and output")
    report = leaks(output, "--limit", "0")
    workers = [process for process in report["processes"] if process["ppid"] == report["processes"][0]["pid"]]
    assert len(workers) >= 2, report["processes"]
    expect_equal([(entry["pid"], entry["bytes"], functions(entry)[:6]) for entry in report["leaks"]], [], "leaks")


@case
def the_demo_finds_its_leak():
    torch_python()
    result = run([ROOT / "test/demo/run"], dict(os.environ), timeout=600)
    expect_equal(result.returncode, 0, f"status of the demo\n{result.stdout.decode()}\n{result.stderr.decode()}")
    assert b"The planted leak was found" in result.stdout


main()
