#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Operators, tensors and modules of a stand-in for PyTorch that has its names, in three layouts of its classes and in one that
can't be read: needs no PyTorch.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from stand_in import build, find_python  # noqa: E402
from timeline import events  # noqa: E402

UNREADABLE = 3
INPUTS = {
    "aten::many": ["-;7;-1.5;1e-08;true;false;?;{1,-2};{float32[2,3],?};{}"],
    "none of them": ["()"],
    "a scope": [None],
    "within": ["float32[2,3]"],
    "AddBackward0": ["float32[2,3]", "float32[1]"],
    "MulBackward0": ["float32[4]"],
    "aten::mul": ["float32[2,3];float32[3,2](1,3)", "int64[2,1,3,1,4,1];bool[]", "float32[0,7]@cuda:0;dtype?[5]",
                  "float32[1];float32[2,3]", "float32[1];float32[2,3]", "float32[4];float32[4]"],
    "aten::add": ["float32[2,3];float32[2,3];0.25", "float32[1];float32[1];1"],
}


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


def forward_threads(recorded):
    """Of each node of autograd the thread that its number means."""
    threads = {event["number"]: event["thread"] for event in recorded if event["event"] == "op_thread"}
    return {event["name"]: threads.get(event["forward_thread"]) for event in recorded
            if event["event"] == "op_begin" and event["scope"] == 1}


def threads_of(recorded, name):
    return {event["thread"] for event in recorded if event.get("name") == name}


def backward_has_the_thread_of_forward():
    for layout in (0, 1):
        recorded = of_parent(run_program(layout))
        (main,) = threads_of(recorded, "aten::add")
        (other,) = threads_of(recorded, "aten::mul") - {main}
        expect_equal(forward_threads(recorded), {"MulBackward0": other, "AddBackward0": main}, "threads of forward")


def a_forward_thread_that_is_not_proven_is_not_read():
    output = run_program(2)
    recorded = of_parent(output)
    expect_equal(set(forward_threads(recorded).values()), {None}, "threads of forward")
    assert "which thread ran forward" in torsh("report", output), "it is not in the report"


def overloads_are_recorded():
    for layout, expected in ((0, "Tensor"), (1, None)):
        recorded = of_parent(run_program(layout))
        overloads = {event["name"]: event["overload"] for event in recorded if event["event"] == "op_begin"}
        expect_equal((overloads["aten::mul"], overloads["aten::zeros"], overloads["a scope"]), (expected, None, None),
                     f"overloads of layout {layout}")


def modules_are_named():
    recorded = of_parent(run_program(0))
    ranges = [event.get("name") for event in recorded if event["event"] in ("range_push", "range_pop")]
    expect_equal(ranges, ["Outer:Outer", "Outer.inner:Inner", None, None], "modules")
    kinds = [event["event"] for event in recorded if event.get("name") in ("aten::add", "Outer.inner:Inner")]
    expect_equal(kinds[:2], ["range_push", "op_begin"], "the operator of the inner one comes after it began")


def modules_that_raise_are_closed():
    recorded = of_parent(run_program(0, "raise"))
    ranges = [event.get("name") for event in recorded if event["event"] in ("range_push", "range_pop")]
    expect_equal(ranges, ["Outer:Outer", "Outer.inner:Inner", None, None], "modules")


def without_modules_no_hook():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_WITH_MODULES": "0"}))
    assert not [event for event in recorded if event["event"] == "range_push"]
    assert operators(recorded)


def unreadable_layout_is_reported():
    output = run_program(UNREADABLE)
    ours = operators(of_parent(output))
    expect_equal({operator.inputs for operator in ours}, {None}, "inputs")
    expect_equal({operator.sequence for operator in ours}, {None}, "sequence numbers")
    assert len(inputs_of(ours, "aten::mul")) == len(INPUTS["aten::mul"])
    assert "names and times only" in torsh("report", output), "it is not in the report"


def without_shapes_only_names():
    output = run_program(0, env={"TORSH_PROFILER_RECORD_SHAPES": "0"})
    ours = operators(of_parent(output))
    expect_equal({operator.inputs for operator in ours}, {None}, "inputs")
    assert "names and times only" not in torsh("report", output), "that is not worth a note"


def without_flops_none_are_shown():
    output = run_program(0, env={"TORSH_PROFILER_WITH_FLOPS": "0"})
    report = read_report("ops", output)
    (product,) = [entry for entry in report["ops"] if entry["name"] == "aten::mul"]
    expect_equal((report["flops"], report["flops_all"], report["ops_without_formula"]), (None, None, []), "sums")
    expect_equal([product[key] for key in product if "flops" in key], [None] * 4, "FLOPs of products")
    assert "not wanted" in torsh("ops", output)
    with_them = read_report("ops", run_program(0))
    (product,) = [entry for entry in with_them["ops"] if entry["name"] == "aten::mul"]
    assert product["flops_all"] and with_them["flops_all"], with_them


def tensors_are_recorded():
    recorded = of_parent(run_program(0))
    tensors = [(event["bytes"], event["is_free"]) for event in recorded if event["event"] == "tensor"]
    expect_equal(tensors, [(1000, 0)] * 3 + [(500, 0), (1000, 1), (500, 1), (1000, 1)], "tensors")
    (out,) = [event for event in recorded if event["event"] == "out_of_memory"]
    expect_equal((out["bytes"], out["device"], out["allocated"], out["reserved"]), (12345, 1 << 8, 1000, 2000), "out of memory")


def blocks_of_a_thousand(recording):
    """Those that the program holds."""
    leaks = json.loads(torsh("leaks", recording, "--json", "--limit", "0"))["leaks"]
    return sum(leak["blocks"] for leak in leaks if leak["bytes"] == 1000 * leak["blocks"] and
               any("stand_in_allocate" in str(frame["function"]) for frame in leak["stack"]))


def running_out_of_memory_keeps_what_was_held():
    output = run_program(0)
    (kept,) = output.glob("*.out-of-memory/*.torsh")
    expect_equal((blocks_of_a_thousand(kept), blocks_of_a_thousand(output)), (2, 1), "blocks then, and at the end")
    note = f"no operator asked for 12.1 KiB (12,345 bytes) of cuda:0, with 1000 B allocated and 1.95 KiB reserved; what was held then: {kept}"
    for command, recording in (("report", output), ("peak", output), ("leaks", kept)):
        assert f"out of memory: {note}" in torsh(command, recording), torsh(command, recording)
    assert f"the recording went on in {next(output.glob('*.torsh'))}" in torsh("report", kept)


def without_memory_no_tensors():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_PROFILE_MEMORY": "0"}))
    assert not [event for event in recorded if event["event"] == "tensor"]


def a_forked_child_is_recorded():
    output = run_program(0)
    children = [event for event in events(output) if event["process"] == 2 and event["event"] == "op_begin"]
    expect_equal([event["name"] for event in children], ["aten::zeros", "aten::zeros", "aten::mul"], "operators")
    expect_equal(children[-1]["inputs"], "float32[9];float32[9]", "inputs")


def observers_are_made_anew(layout, expected):
    """Of ten states that a thread takes over, those that change nothing are kept from libtorch, if
    that can be decided."""
    python = find_python()
    command = [python.path, build(python, layout) / "state.py"]
    bare = run(command)
    result, _ = record(command, env={"TORSH_PROFILER_SUMMARY": "0"})
    expect_equal((result.returncode, result.stdout), (0, bare.stdout), f"status and output\n{result.stderr.decode()}\n")
    expect_equal(bare.stderr.decode().strip(), str(list(range(1, 11))), "how often, without the agent")
    expect_equal(result.stderr.decode().strip(), str(expected), "how often")


def stacks_of_operators():
    recorded = of_parent(run_program(0, env={"TORSH_PROFILER_OPERATOR_STACKS": "1"}))
    begins = [event for event in recorded if event["event"] == "op_begin"]
    assert all(event["flags"] & 1 and event["stack"] for event in begins)
    assert len({event["stack"] for event in begins}) > 10
    plain = [event for event in of_parent(run_program(0)) if event["event"] == "op_begin"]
    assert not any(event["flags"] & 1 or event["stack"] for event in plain)


add_case("observers_that_are_the_same_stay", observers_are_made_anew, 0, [0, 0, 1, 1, 2, 3, 4, 5, 6, 6])
add_case("observers_kept_otherwise_are_made_anew", observers_are_made_anew, UNREADABLE, list(range(1, 11)))
for layout in range(UNREADABLE):
    add_case(f"layout_{layout}_is_found", layout_is_found, layout)
for check in (backward_has_the_thread_of_forward, a_forward_thread_that_is_not_proven_is_not_read, overloads_are_recorded,
              modules_are_named, modules_that_raise_are_closed, without_modules_no_hook, unreadable_layout_is_reported,
              without_shapes_only_names, without_flops_none_are_shown, tensors_are_recorded,
              running_out_of_memory_keeps_what_was_held, without_memory_no_tensors, a_forked_child_is_recorded,
              stacks_of_operators):
    add_case(check.__name__, check)

main()
