#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Collectives of two real processes over gloo: sizes, types and groups as the program knows them, and as torch.profiler saw
the same calls.
"""

import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/lib/torch_collectives.py"
WORLD = 2


def free_port():
    with socket.socket() as socket_:
        socket_.bind(("127.0.0.1", 0))
        return str(socket_.getsockname()[1])


def communicate():
    """The folder with what the ranks wrote, and the recording."""
    written = scratch("written")
    result, output = record([torch_python(), PROGRAM, free_port(), written])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return written, output


def collectives(trace, pid):
    """In their order, with what PyTorch says of each and with the arguments."""
    found = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op" and event["name"].startswith("c10d::")
             and event["pid"] == pid]
    return sorted(found, key=lambda event: event["ts"])


def what_is_said(arguments):
    return [arguments["Collective name"], arguments["In msg nelems"], arguments["Out msg nelems"], arguments.get("dtype"),
            arguments["Process Group Name"]]


@case
def sizes_and_groups_are_those_of_the_program():
    written, output = communicate()
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    ops = json.loads(torsh("ops", output, "--json", "--group", "shape", "--limit", "0"))
    for rank in range(WORLD):
        said = json.loads((written / f"done-{rank}.json").read_text())
        ours = collectives(trace, said["pid"])
        theirs = collectives(json.loads((written / f"trace-{rank}.json").read_text()), said["pid"])
        inside = [event for event in ours if "Collective name" in event["args"]][-len(said["done"]):]
        expect_equal([what_is_said(event["args"]) for event in inside], [[*what, group[0]] for *what, group in said["done"]],
                     "collectives")
        for event in inside:
            expect_equal((event["args"]["Group size"], event["args"]["Process Group Ranks"]), (WORLD, "[0, 1]"), "ranks")
        expect_equal([(event["name"], event["args"]["Input Dims"]) for event in inside],
                     [(event["name"], event["args"]["Input Dims"]) for event in theirs], "what torch.profiler saw")
        groups = {group["name"]: group for group in ops["process_groups"] if group["pid"] == said["pid"]}
        expect_equal({(name, groups[name]["description"]) for name in groups}, {tuple(what[-1]) for what in said["done"]},
                     "names and descriptions of groups")
        expect_equal({(group["backend"], group["size"], group["ranks"]) for group in groups.values()}, {("gloo", WORLD, "0,1")},
                     "groups")
    inputs = {op["inputs"] for op in ops["ops"] if op["name"] == "c10d::allgather_"}
    assert any(text.startswith("{{float32[2,2],float32[2,2]}};{float32[2,2]};group#2;") for text in inputs), inputs
    assert "group#1" in torsh("ops", output), "the table doesn't name its groups"


main()
