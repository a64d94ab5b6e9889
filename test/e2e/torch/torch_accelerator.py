#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PrivateUse1 accelerators of PyTorch, through the functions that they registered with its
profiler: called by the ABI of C++, and the time of operators by such a device's own clock, which
the test controls."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from timeline import events  # noqa: E402

SOURCES = ROOT / "test/torch_stand_in"

PROGRAM = """
import ctypes, sys, torch
library = ctypes.CDLL(sys.argv[1])
x = torch.ones(4, 4)
library.accelerator_register()
for i in range(int(sys.argv[2])):
    y = torch.nn.functional.linear(x, x) + 1
    z = torch.einsum("ij,jk->ik", x, y)
print(ctypes.c_int64.in_dll(library, "accelerator_marks").value)
"""


def compiled(*command):
    result = run(["env", "-C", ROOT, *command])
    expect_equal(result.returncode, 0, f"compiler\n{result.stderr.decode()[-2000:]}\n")


@case
def each_function_of_an_accelerator_is_called_as_cpp_does():
    folder = scratch("accelerator")
    library, program = folder / "libtorch_stand_in.so", folder / "calls"
    compiled("c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, SOURCES / "accelerator.cc")
    compiled("cc", "-D_GNU_SOURCE", "-std=gnu11", "-I.", "-o", program, SOURCES / "accelerator_calls.c",
             "shim/torch/privateuse1.c", "shim/loader/objects.c", "shim/loader/unloading.c", "shim/loader/elf_symbol.c", "-ldl")
    result = run([program, library])
    expect_equal((result.returncode, result.stdout.decode(), result.stderr.decode()),
                 (0, "mark here\npush inside\npop\n", ""), "what it received")


def built(python):
    """The accelerator, against this PyTorch's own headers."""
    library = scratch("accelerator") / "accelerator.so"
    torch = run([python, "-c", "import importlib.util as util; print(*util.find_spec('torch').submodule_search_locations)"]).stdout.decode().strip()
    compiled("c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-DREAL", f"-I{torch}/include", "-o", library,
             SOURCES / "accelerator.cc", f"{torch}/lib/libtorch_cpu.so", "-Wl,--allow-shlib-undefined")
    return library


def marked_calls(ends):
    """Indices of the beginnings of calls that are marked: what came before the accelerator was registered is not."""
    marked, stack = set(), []
    for i, event in enumerate(ends):
        if event["event"] == "op_begin":
            stack.append(i)
        elif event["event"] == "op_end":
            begin = stack.pop()
            if ends[i - 1]["event"] == "op_marked":
                marked.add(begin)
    return marked


def expected_times(found, n_marks):
    """Name, whole and own microseconds of each call that is marked, in the order of their ends: a mark takes one."""
    ends = [event for event in found if event["event"] in ("op_begin", "op_end", "op_marked")]
    marked, times, stack, clock = marked_calls(ends), [], [], 0
    expect_equal(2 * len(marked), n_marks, "marks")
    for i, event in enumerate(ends):
        if event["event"] == "op_begin":
            stack.append([i, clock, 0])
            clock += i in marked
        elif event["event"] == "op_end":
            begin, begin_us, inner_us = stack.pop()
            if begin not in marked:
                continue
            whole_us = clock - begin_us
            times.append((ends[begin]["name"], whole_us, whole_us - inner_us))
            clock += 1
            if stack:
                stack[-1][2] += whole_us
    return times


@case
@needs("torch")
def operators_have_the_times_of_an_accelerators_own_clock():
    python = torch_python()
    library = built(python)
    for n in (1, 20 if IS_QUICK else 1000):
        output = scratch()
        result = run([python, "-c", PROGRAM, library, n], agent_environment(output, TORSH_PROFILER_ACTIVITIES="torch"))
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
        found = events(output)
        expected = expected_times(found, int(result.stdout))
        printed = [(event["duration_ns"], event["own_ns"], event["index"])
                for event in found if event["event"] == "op_accelerated"]
        expect_equal(printed, [(whole * 1000, own * 1000, 3) for _, whole, own in expected], "times")
        own_ns = collections.Counter()
        for name, _, own in expected:
            own_ns[name] += own * 1000
        report = read_report("ops", output, "--limit", "0")
        expect_equal({op["name"]: op["self_device_ns"] for op in report["ops"] if op["self_device_ns"]}, dict(own_ns),
                     "self_device_ns")
        expect_equal(sum(event["event"] == "op_accelerated" for event in found), int(result.stdout) // 2, "calls")
        assert any("PrivateUse1" in note for note in report["notes"]), report["notes"]


@case
@needs("torch")
def without_an_accelerator_operators_have_no_marks():
    python, output = torch_python(), scratch()
    result = run([python, "-c", "import torch; torch.ones(3) + 1"], agent_environment(output))
    expect_equal(result.returncode, 0, "status")
    assert not [event for event in events(output) if event["event"] in ("op_marked", "op_accelerated")]


if __name__ == "__main__":
    main()
