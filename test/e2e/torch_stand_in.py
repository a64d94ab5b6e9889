#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Operators, tensors and modules of a stand-in for PyTorch that has its names, in three layouts of its classes and in one that
can't be read: needs no PyTorch.
"""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402

SOURCES = ROOT / "test/torch_stand_in"
UNREADABLE = 3
INPUTS = {
    "aten::many": ["-;7;-1.5;1e-08;true;false;?;{1,-2};{float32[2,3],?};{}"],
    "none of them": ["()"],
    "a scope": [None],
    "within": ["float32[2,3]"],
    "AddBackward0": ["float32[2,3]"],
    "aten::mul": ["float32[2,3];float32[3,2](1,3)", "int64[2,1,3,1,4,1];bool[]", "float32[0,7]@cuda:0;dtype?[5]",
                  "float32[1];float32[2,3]", "float32[1];float32[2,3]", "float32[4];float32[4]"],
    "aten::add": ["float32[2,3];float32[2,3];0.25"],
}


def find_python():
    for python in pythons.find_all():
        if (python.include / "Python.h").exists() and not python.is_free_threaded:
            return python
    raise Skip("no CPython here has its headers")


def build(python, layout):
    """The folder with the package."""
    compiler, folder = need_command("g++"), scratch("package")
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    common = ["-g", "-fPIC", "-shared", f"-L{folder}", "-Wl,-rpath,$ORIGIN,-rpath,$ORIGIN/.."]
    for command in (
            [compiler, "-std=c++17", f"-DLAYOUT={layout}", "-DPART=1", *common, SOURCES / "libtorch.cc", "-o", folder / "libc10.so"],
            [compiler, "-std=c++17", f"-DLAYOUT={layout}", "-DPART=2", *common, SOURCES / "libtorch.cc", "-lc10",
             "-o", folder / "libtorch_cpu.so"],
            ["gcc", f"-I{python.include}", *common, SOURCES / "extension.c", "-Wl,--no-as-needed", "-ltorch_cpu",
             "-o", folder / f"torch/_C{python.suffix}"]):
        result = run(command)
        expect_equal(result.returncode, 0, f"status of the compiler ({result.stderr.decode()})")
    return folder


def run_program(layout, *arguments, env=None):
    python = find_python()
    package = build(python, layout)
    command = [python.path, package / "program.py", *arguments]
    bare = run(command)
    result, output = record(command, env=env)
    expect_equal(bare.returncode, 0, f"status without the agent\n{bare.stderr.decode()}\n")
    expect_equal((result.returncode, result.stdout), (0, bare.stdout), f"status and output\n{result.stderr.decode()}\n")
    return output


def of_parent(output):
    """Events of the program itself; the forked child's come with it in a recording of its own process."""
    return [event for event in events(output) if event["process"] == 1]


def inputs_of(ours, name):
    return [operator.inputs for operator in ours if operator.name == name]


def layout_is_found(layout):
    output = run_program(layout)
    recorded = of_parent(output)
    ours = operators(recorded)
    for name, expected in INPUTS.items():
        expect_equal(inputs_of(ours, name), expected, f"inputs of {name}")
    counts = inputs_of(ours, "aten::counts")
    expect_equal(counts[:64], [f"float32[2,3];{i}" for i in range(64)], "the first inputs that differ by a number")
    expect_equal(counts[64:], ["float32[2,3];_"] * 36, "the later ones")
    scopes = {operator.name: operator.scope for operator in ours}
    expect_equal((scopes["a scope"], scopes["AddBackward0"], scopes["within"]), (7, 1, 0), "scopes")
    expect_equal([operator.parent.name for operator in ours if operator.name == "within"], ["a scope"], "what it is within")
    one, another = [operator.sequence for operator in ours if operator.inputs == "float32[1];float32[2,3]"]
    expect_equal(another - one, 1, "how far the sequence number moved by a node")
    assert all(operator.end_ns is not None for operator in ours)
    assert len({operator.thread for operator in ours}) == 2, "a second thread's operator"


def modules_are_named():
    recorded = of_parent(run_program(0))
    ranges = [event.get("name") for event in recorded if event["event"] in ("range_push", "range_pop")]
    expect_equal(ranges, ["Outer:Outer", "Outer.inner:Inner", None, None], "modules")
    kinds = [event["event"] for event in recorded if event.get("name") in ("aten::add", "Outer.inner:Inner")]
    expect_equal(kinds, ["range_push", "op_begin"], "the operator of the inner one comes after it began")


def modules_that_raise_are_closed():
    recorded = of_parent(run_program(0, "raise"))
    ranges = [event.get("name") for event in recorded if event["event"] in ("range_push", "range_pop")]
    expect_equal(ranges, ["Outer:Outer", "Outer.inner:Inner", None, None], "modules")


def without_modules_no_hook():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_WITH_MODULES": "0"}))
    assert not [event for event in recorded if event["event"] == "range_push"]
    assert operators(recorded)


def unreadable_layout_is_said():
    output = run_program(UNREADABLE)
    ours = operators(of_parent(output))
    expect_equal({operator.inputs for operator in ours}, {None}, "inputs")
    expect_equal({operator.sequence for operator in ours}, {None}, "sequence numbers")
    assert len(inputs_of(ours, "aten::mul")) == len(INPUTS["aten::mul"])
    assert "names and times only" in torsh("report", output), "the report doesn't say so"


def without_shapes_only_names():
    output = run_program(0, env={"TORSH_PROFILER_RECORD_SHAPES": "0"})
    ours = operators(of_parent(output))
    expect_equal({operator.inputs for operator in ours}, {None}, "inputs")
    assert "names and times only" not in torsh("report", output), "that is not worth a note"


def tensors_are_recorded():
    recorded = of_parent(run_program(0))
    tensors = [(event["bytes"], event["is_free"]) for event in recorded if event["event"] == "tensor"]
    expect_equal(tensors, [(1000, 0)] * 3 + [(500, 0), (1000, 1), (500, 1)], "tensors")
    (out,) = [event for event in recorded if event["event"] == "out_of_memory"]
    expect_equal((out["bytes"], out["device"], out["allocated"], out["reserved"]), (12345, 1 << 8, 1000, 2000), "out of memory")


def without_memory_no_tensors():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_PROFILE_MEMORY": "0"}))
    assert not [event for event in recorded if event["event"] == "tensor"]


def a_forked_child_is_recorded():
    output = run_program(0)
    children = [event for event in events(output) if event["process"] == 2 and event["event"] == "op_begin"]
    expect_equal([event["name"] for event in children], ["aten::zeros", "aten::zeros", "aten::mul"], "operators")
    expect_equal(children[-1]["inputs"], "float32[9];float32[9]", "inputs")


def stacks_of_operators():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_OPERATOR_STACKS": "1"}))
    begins = [event for event in recorded if event["event"] == "op_begin"]
    assert all(event["flags"] & 1 and event["stack"] for event in begins)
    assert len({event["stack"] for event in begins}) > 10
    plain = [event for event in of_parent(run_program(0)) if event["event"] == "op_begin"]
    assert not any(event["flags"] & 1 or event["stack"] for event in plain)


for layout in range(UNREADABLE):
    add_case(f"layout_{layout}_is_found", layout_is_found, layout)
for check in (modules_are_named, modules_that_raise_are_closed, without_modules_no_hook, unreadable_layout_is_said,
              without_shapes_only_names, tensors_are_recorded, without_memory_no_tensors, a_forked_child_is_recorded,
              stacks_of_operators):
    add_case(check.__name__, check)

main()
