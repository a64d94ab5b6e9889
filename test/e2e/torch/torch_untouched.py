#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A program with PyTorch is under the agent what it is without: modules, threads, global state, what it prints and what it
computes; and what the agent needs for itself is in no report.
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from operators import operators  # noqa: E402
from timeline import events  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = ROOT / "test/python/torch_state.py"
OWN_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks")  # by which the agent sees modules
OWN_HOOKS_WITH = "_global_forward_hooks_always_called"
MOST_MEMORY_KB = 40 << 10
TIMEOUT_S = 300


def look(run_program):
    """What the program saw, what it printed, and the recording of it."""
    written = scratch("seen") / "state.json"
    result, *output = run_program([torch_python(), PROGRAM, written])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    printed = re.sub(rb"(?m)^([A-Z])\d+ [\d:.]+ \d+", rb"\1", result.stdout + result.stderr)  # torch's log has time and pid
    return json.loads(written.read_text()), printed, *output


def without_own_hooks(hooks):
    found = {name: n - (name in OWN_HOOKS) for name, n in hooks.items()}
    if OWN_HOOKS_WITH in found:
        found[OWN_HOOKS_WITH] -= 1
    return found


def resident_kb(memory):
    """Pages of files, too: all processes that map them share them, but each counts them."""
    return sum(memory.values())


@case
def nothing_differs_but_the_agents_own():
    bare, printed = look(lambda command: [run(command, timeout=TIMEOUT_S)])
    under_us, printed_under_us, output = look(lambda command: record(command, timeout=TIMEOUT_S))
    expect_equal(printed_under_us, printed, "stdout and stderr")
    for moment in ("imported", "afterwards"):
        ours, theirs = under_us[moment], bare[moment]
        more = resident_kb(ours.pop("memory_kb")) - resident_kb(theirs.pop("memory_kb"))
        assert moment != "imported" or more <= MOST_MEMORY_KB, f"{more} KiB more after the import"
        ours["hooks of modules"] = without_own_hooks(ours["hooks of modules"])
        expect_equal(sorted(set(ours["modules"]) ^ set(theirs["modules"])), [], f"modules ({moment})")
        expect_equal(ours, theirs, f"what the process was like ({moment})")
    expect_equal(bare["imported"]["compilers"], [], "compilers that are imported without the agent")
    expect_equal(under_us["worked"], bare["worked"], "what the program computed and compiled")
    nothing_of_ours_is_reported(output)
    inputs = [operator.inputs for operator in operators(events(output)) if operator.name == "aten::t"]
    assert "float32[3,5]@meta" in inputs, f"a tensor without data: {inputs[:5]}"


def nothing_of_ours_is_reported(output):
    found = leaks(output)
    texts = [json.dumps(found), torsh("leaks", output, "--limit", "0"), torsh("peak", output, "--json"), torsh("report", output)]
    assert not any("<torsh>" in text for text in texts), "a frame of the agent's own"
    ours = [entry for entry in found["bookkeeping"]["by"] if entry["what"].startswith("torsh: ")]
    assert len(ours) == 1 and ours[0]["bytes"] < 1 << 20, found["bookkeeping"]


main()
