#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The figures of its heap that a Python program reads are exact, with the lines behind them; without the agent all are zero."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from timeline import timeline  # noqa: E402

ENVIRONMENT = {"PYTHONPATH": str(ROOT / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1", "TORSH": str(TORSH)}
# Blocks of more than 512 bytes are malloc's; a bytearray has one byte more than its length.
PROGRAM = """\
import json, os, sys, threading, torsh
kept, out = [], {}

def keep(n):
    kept.append(bytearray(n))

def put(name, *values):
    out[name] = values

before = torsh.current_bytes()
block = bytearray(999_999)
put("current", torsh.current_bytes() - before)
torsh.reset_peak()
del block
put("peak", torsh.peak_bytes() - torsh.current_bytes(), torsh.reset_peak() > 0, torsh.peak_bytes() - torsh.current_bytes())
for _ in range(2):  # what the first round caches is there in the second one
    del kept[:]
    with torsh.memory() as outer:
        with torsh.memory("inner", lines=False) as inner:
            keep(1_999_999)
            bytearray(2_999_999)
        del kept[:]
        keep(99_999)
put("inner", inner.peak_bytes, inner.stayed_bytes, inner.stayed_blocks, inner.lines)
put("outer", outer.peak_bytes, outer.stayed_bytes, outer.stayed_blocks,
    [(row["bytes"], row["blocks"], os.path.basename(row["file"]), row["line"], row["function"]) for row in outer.lines if row["bytes"] > 1000])
put("at peak", [(row["bytes"], row["blocks"], row["line"]) for row in outer.peak_lines if row["function"] == "keep"],
    sum(row["bytes"] for row in outer.peak_lines) <= outer.begin_bytes + outer.peak_bytes, inner.peak_lines)
put("frame", [row for row in outer.frame() if row["bytes"] > 1000] and sorted(outer.frame()[0]))
torsh.mark("here")
keep(199_999)
put("since", [(row["bytes"], row["line"]) for row in torsh.leaks_since("here") if row["bytes"] > 1000])
put("pause", torsh.pause(), torsh.pause(), torsh.resume(), torsh.resume())
recording = torsh.snapshot(sys.argv[1])
put("snapshot", recording and os.path.basename(recording.path), recording and recording.read("peak", limit=1)["peak_bytes"] > 5_000_000)
exported = torsh.export("folded", sys.argv[1] + ".folded")
put("export", exported and "keep" in open(exported).read())
results = []
threads = [threading.Thread(target=lambda: results.append(torsh.current_bytes() > 0)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
put("threads", len(results), all(results))
torsh.histogram("weights", [1, 2, 3.5])
torsh.histogram("many", range(25_000))
torsh.step(4, name="warm up")
torsh.configure(with_stack=False, schedule=["wait:1", "active:2"], ring=None)
put("configure", os.environ["TORSH_PROFILER_WITH_STACK"], os.environ["TORSH_PROFILER_SCHEDULE"])
print(json.dumps(out))
"""


def run_program(runner):
    program = scratch("program") / "app.py"
    program.write_text(PROGRAM)
    command = [sys.executable, program, scratch("snapshots") / "now.torsh"]
    result, output = runner(command)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    return json.loads(result.stdout), output


@case
def figures_are_exact_and_have_lines():
    out, output = run_program(lambda command: record(command, env=ENVIRONMENT))
    lines = {text.strip(): number for number, text in enumerate(PROGRAM.splitlines(), 1)}
    at = lines["kept.append(bytearray(n))"]
    expect_equal(out, {
        "current": [1_000_000],
        "peak": [1_000_000, True, 0],
        "inner": [5_000_000, 2_000_000, 1, []],
        "outer": [5_000_000, 100_000, 1, [[100_000, 1, "app.py", at, "keep"]]],
        "at peak": [[[2_000_000, 1, at]], True, []],
        "frame": [["blocks", "bytes", "file", "function", "line"]],
        "since": [[[200_000, at]]],
        "pause": [True, False, True, False],
        "snapshot": ["now.torsh", True],
        "export": [True],
        "threads": [8, True],
        "configure": ["0", "wait:1,active:2"],
    }, "what the program read")
    values = [event for event in timeline(output) if event["event"] == "value"]
    expect_equal([event["payload"] for event in values if event["name"] == "weights"], [1.0, 2.0, 3.5], "samples")
    expect_equal([event["payload"] for event in values if event["name"] == "many"], [float(n) for n in range(0, 25_000, 3)], "every third")


@case
def without_the_agent_there_is_nothing():
    out, _ = run_program(lambda command: (run(command, {**clean_environment(), **ENVIRONMENT}), None))
    expect_equal(out, {"current": [0], "peak": [0, False, 0], "inner": [0, 0, 0, []], "outer": [0, 0, 0, []], "at peak": [[], True, []], "frame": [[]],
                       "since": [[]], "pause": [False] * 4, "snapshot": [None, None], "export": [None], "threads": [8, False],
                       "configure": ["0", "wait:1,active:2"]}, "what the program read")


FRAMES = """\
import torsh
kept = []
with torsh.memory() as m:
    kept.append(bytearray(1_999_999))
    bytearray(2_999_999)
with torsh.memory(lines=False) as nothing:
    pass
for frame in (m.frame(), m.frame(at_peak=True), nothing.frame()):
    print(type(frame).__module__.split(".")[0], list(frame.columns), [n for n in frame["bytes"] if n % 1_000_000 == 0])
"""


@case
@needs("popular")
def frames_are_of_pandas():
    python = environment_python("popular")
    result, _ = record([python, "-c", FRAMES], env=ENVIRONMENT)
    columns = "pandas ['bytes', 'blocks', 'function', 'file', 'line']"
    expect_equal((result.returncode, result.stdout.decode().splitlines()),
                 (0, [f"{columns} [2000000]", f"{columns} [3000000, 2000000]", f"{columns} []"]), f"frames ({result.stderr})")


main()
