#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Accelerators that PyTorch knows as PrivateUse1, by the functions that they gave its profiler: called by the ABI that a C++
compiler gives them, and what operators took by such a device's own clock, which the test knows.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
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
             "shim/privateuse1.c", "shim/objects.c", "shim/elf_symbol.c", "-ldl")
    result = run([program, library])
    expect_equal((result.returncode, result.stdout.decode(), result.stderr.decode()),
                 (0, "mark here\npush inside\npop\n", ""), "what it heard")


def built(python):
    """The accelerator, against this PyTorch's own headers."""
    library = scratch("accelerator") / "accelerator.so"
    torch = run([python, "-c", "import torch, os; print(os.path.dirname(torch.__file__))"]).stdout.decode().strip()
    compiled("c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-DREAL", f"-I{torch}/include", "-o", library,
             SOURCES / "accelerator.cc", f"{torch}/lib/libtorch_cpu.so", "-Wl,--allow-shlib-undefined")
    return library


def expected_times(found, n_marks):
    """Own and whole microseconds of each call that was marked, in the order of their ends: a mark takes one."""
    ends = [event for event in found if event["event"] in ("op_begin", "op_end", "op_marked")]
    marked = sum(event["event"] == "op_marked" for event in ends)
    expect_equal(2 * marked, n_marks, "marks")
    # What came before the accelerator was registered has none.
    times, stack, clock = [], [], 0
    for i, event in enumerate(ends):
        if event["event"] == "op_begin":
            stack.append([event, clock, 0])
            clock += stack_is_marked(ends, i)
        elif event["event"] == "op_end":
            call, begin, inner = stack.pop()
            if ends[i - 1]["event"] == "op_marked":
                whole = clock - begin
                times.append((call["name"], whole, whole - inner))
                clock += 1
                if stack:
                    stack[-1][2] += whole
    return times


def stack_is_marked(ends, i):
    """Is the call that begins here one of those that are marked when they end?"""
    depth = 0
    for k in range(i, len(ends)):
        depth += {"op_begin": 1, "op_end": -1}.get(ends[k]["event"], 0)
        if depth == 0:
            return int(ends[k - 1]["event"] == "op_marked")
    return 0


@case
@needs("torch")
def operators_have_the_times_of_an_accelerators_own_clock():
    python = torch_python()
    library = built(python)
    for n in (1, 3000):
        output = scratch()
        result = run([python, "-c", PROGRAM, library, n], agent_environment(output))
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
        found = events(output)
        if n == 1:
            expected = expected_times(found, int(result.stdout))
            said = [(event["duration_ns"], event["own_ns"], event["index"])
                    for event in found if event["event"] == "op_accelerated"]
            expect_equal(said, [(whole * 1000, own * 1000, 3) for _, whole, own in expected], "times")
        report = read_report("ops", output, "--limit", "0")
        ops = {op["name"]: op for op in report["ops"]}
        # A call without others takes the microsecond from its first mark to its second.
        for name in ("aten::add", "aten::bmm"):
            expect_equal(ops[name]["self_device_ns"], n * 1000, f"self_device_ns of {name}")
        expect_equal(ops["aten::einsum"]["self_device_ns"] + sum(
            op["self_device_ns"] for op in ops.values() if op["name"] != "aten::einsum"),
            sum(event["own_ns"] for event in found if event["event"] == "op_accelerated"), "sum")
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
