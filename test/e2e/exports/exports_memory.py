#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tensors as a memory snapshot of PyTorch: read by Python's pickle and by PyTorch's own functions, with our numbers."""

import collections
import pathlib
import pickle
import pickletools
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import OPERATORS, TENSOR_BYTES, exported, made  # noqa: E402
from environments import torch_python  # noqa: E402

# Those that torch/utils/viz/MemoryViz.js, the page's own reader, understands.
OPCODES = {"PROTO", "FRAME", "APPEND", "APPENDS", "LIST", "TUPLE", "NEWFALSE", "NEWTRUE", "NONE", "BINGET", "LONG_BINGET",
           "BININT", "BININT1", "BININT2", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "LONG1", "MARK", "MEMOIZE", "BINPUT",
           "LONG_BINPUT", "SETITEM", "SETITEMS", "DICT", "SHORT_BINUNICODE", "BINUNICODE", "STOP", "TUPLE1", "TUPLE2",
           "TUPLE3", "BINFLOAT"}
BATCH = 1000


def snapshot(recording, *arguments):
    path = exported(recording, "t.pickle", "--format", "memory", *arguments)
    return path, pickle.loads(path.read_bytes())


def replay(trace):
    """Blocks of a device's trace that are left, the most bytes that were held, and how often each action is there."""
    held, now, most, actions = {}, 0, 0, collections.Counter()
    for event in trace:
        actions[event["action"]] += 1
        if event["action"] == "alloc":
            held[event["addr"]] = event["size"]
            now += event["size"]
        elif event["action"] == "free_completed":
            now -= held.pop(event["addr"], event["size"])
        most = max(most, now)
    return held, most, actions


@case
def snapshots_hold_every_tensor():
    recording, numbers = made(ranks=2)
    path, found = snapshot(recording)
    expect_equal(found["devices"], ["cpu of process 1000", "cpu of process 2000"], "devices")
    devices = read_report("tensors", recording)["devices"]
    expect_equal(len(found["device_traces"]), len(devices), "devices with a trace")
    for trace, device in zip(found["device_traces"], devices):
        held, most, actions = replay(trace)
        expect_equal((held, most), ({}, device["peak_bytes"]), "what is left, and the peak")
        expect_equal(actions, dict.fromkeys(("alloc", "segment_alloc"), device["allocs"])
                     | dict.fromkeys(("free_requested", "free_completed", "segment_free"), device["frees"]), "events")
    first = found["device_traces"][0][1]
    expect_equal((first["action"], first["size"], first["addr"], first["stream"]), ("alloc", TENSOR_BYTES, 0x100000, 0), "alloc")
    expect_equal(first["frames"], [{"name": "aten::addmm", "filename": "net.0:Linear", "line": 0},
                                   {"name": "Net.forward", "filename": "/src/train.py", "line": 3},
                                   {"name": "train", "filename": "/src/train.py", "line": 7}], "frames")
    expect_equal(found["segments"], [], "what is held at the end")


@case
def snapshots_are_readable_by_the_page():
    recording, _ = made(ranks=1, operators=3 * OPERATORS)
    path, found = snapshot(recording)
    for opcode, argument, _ in pickletools.genops(path.read_bytes()):
        assert opcode.name in OPCODES, opcode.name
        assert opcode.name != "PROTO" or 2 <= argument <= 4, argument
    # Its lists grow by arguments of a call; a browser limits their number.
    appends = sum(opcode.name == "APPENDS" for opcode, _, _ in pickletools.genops(path.read_bytes()))
    assert appends > len(found["device_traces"][0]) / BATCH, appends


@case
def a_window_begins_with_what_is_held_then():
    recording, numbers = made(ranks=1)
    whole = snapshot(recording)[1]["device_traces"][0]
    allocs = [event for event in whole if event["action"] == "alloc"]
    # From the first step's fourth allocation to its sixth.
    begin, end = (allocs[i]["time_us"] - 1700000000000000 for i in (4, 6))
    _, found = snapshot(recording, "--from", f"{begin}us", "--to", f"{end}us")
    expect_equal({event["action"] for event in found["device_traces"][0]}, {"alloc", "segment_alloc"}, "events")
    expect_equal([segment["address"] for segment in found["segments"]],
                 [event["addr"] for event in allocs[:6]], "held at the end of the window")
    for segment in found["segments"]:
        expect_equal(segment["blocks"][0]["frames"], allocs[0]["frames"], "frames of a block from before the window")
        expect_equal((segment["total_size"], segment["blocks"][0]["size"]), (TENSOR_BYTES, TENSOR_BYTES), "sizes")


VIEWER = """
import json, pickle, sys
import torch.cuda._memory_viz as viz
data = pickle.load(open(sys.argv[1], "rb"))
print(json.dumps({"segsum": viz.segsum(data), "trace": viz.trace(data), "plot": len(viz.trace_plot(data)),
                  "segments": len(viz.segment_plot(data)), "memory": viz.memory(data, format_flamegraph=str)}))
"""


@case
@needs("torch")
def the_viewer_of_pytorch_finds_our_numbers():
    python = torch_python()
    recording, numbers = made(ranks=1)
    end = snapshot(recording)[1]["device_traces"][0][3 * 2]["time_us"] - 1700000000000000
    path, found = snapshot(recording, "--to", f"{end}us")
    result = run([python, "-c", VIEWER, path])
    expect_equal(result.returncode, 0, f"status: {result.stderr.decode()[-2000:]}")
    printed = json.loads(result.stdout)
    n, n_bytes = len(found["segments"]), sum(segment["total_size"] for segment in found["segments"])
    assert f"segments: {n}\n" in printed["segsum"] and f"total_allocated: {n_bytes / 1024:.1f}KiB\n" in printed["segsum"], printed["segsum"]
    expect_equal(printed["memory"].splitlines(),
                 [f"stream_0;active_allocated;train.py:7:train;train.py:3:Net.forward;net.0:Linear:0:aten::addmm {TENSOR_BYTES}"] * n,
                 "the flame graph's lines")
    assert printed["trace"].count("# free completed") == 0 and printed["trace"].count("[0:64.0KiB]") == n, printed["trace"]
    assert printed["plot"] and printed["segments"]


main()
