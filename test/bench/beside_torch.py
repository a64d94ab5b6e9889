# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Steps of training beside torch.profiler: what each adds to a step with the same content switched on, and what PyTorch
itself takes as soon as anybody observes its operators.
"""

import json
import statistics
import sys

from results import cell, table
from runs import BARE, BENCH, NOOP_MODE, OURS, OUTPUT, WORKLOADS, Mode, Options, Program, run_once, scaled

EMPTY, INPUTS = "an empty callback", "an empty callback that gets arguments"
OPERATORS, SHAPES, MEMORY, ALL = "torsh, operators", "torsh, + shapes", "torsh, + tensors", "torsh, everything"
HEAP = "torsh, operators, tensors, heap"
THEIRS, THEIR_SHAPES = "torch.profiler", "torch.profiler, + shapes"
THEIR_MEMORY, THEIR_ALL = "torch.profiler, + memory", "torch.profiler, everything"


def settings(**values):
    return {f"TORSH_PROFILER_{name}": value for name, value in values.items()}


# name, how it is run, the agent's settings, the workload's observer
WAYS = (
    (BARE, BARE, {}, "none"),
    (NOOP_MODE, NOOP_MODE, {}, "none"),
    (EMPTY, BARE, {}, "empty"),
    (INPUTS, BARE, {}, "inputs"),
    (OPERATORS, OURS, settings(ACTIVITIES="torch", RECORD_SHAPES="0", PROFILE_MEMORY="0", WITH_MODULES="0"), "none"),
    (SHAPES, OURS, settings(ACTIVITIES="torch", PROFILE_MEMORY="0", WITH_MODULES="0"), "none"),
    (MEMORY, OURS, settings(ACTIVITIES="torch", WITH_STACK="0", WITH_MODULES="0"), "none"),
    (HEAP, OURS, settings(WITH_MODULES="0"), "none"),
    (ALL, OURS, {}, "none"),
    (THEIRS, BARE, {}, "profiler"),
    (THEIR_SHAPES, BARE, {}, "profiler,shapes"),
    (THEIR_MEMORY, BARE, {}, "profiler,shapes,memory"),
    (THEIR_ALL, BARE, {}, "profiler,all"),
)
LONG = (BARE, NOOP_MODE, INPUTS, MEMORY, HEAP, ALL, THEIR_MEMORY, THEIR_ALL)

STEPS = (BARE, NOOP_MODE, INPUTS, HEAP, ALL)

# model, steps a repeat, ways
MODELS = (("mlp", 500, tuple(way[0] for way in WAYS)), ("cnn", 20, LONG), ("transformer", 20, LONG),
          ("gpt", 2, STEPS), ("resnet18", 10, STEPS), ("dlrm", 20, STEPS))
REPEATS = 9


class Times:
    """Of one model in one way, over all rounds, µs a step."""

    def __init__(self):
        self.wall, self.cpu, self.bytes_per_step = [], [], None

    def add(self, printed, bytes_recorded):
        self.wall += printed["wall_us"]
        self.cpu += printed["cpu_us"]
        self.bytes_per_step = printed["trace_bytes_per_step"] or (bytes_recorded and bytes_recorded / printed["steps"])


def run_way(machine, model, n_steps, way, times):
    name, how, env, observer = way
    n_repeats = 1 if Options.is_smoke else REPEATS
    command = [machine.torch_python, WORKLOADS / "torch_steps.py", model, observer, scaled(n_steps), n_repeats]
    run = run_once(Program(f"{model}, {name}", command), Mode(how, machine),
                   dict(env, EMPTY_OBSERVER=str(BENCH / "libempty_observer.so")))
    if run:
        times.add(json.loads(run.text.splitlines()[-1]), sum(path.stat().st_size for path in OUTPUT.rglob("*.torsh")))


def measure(machine):
    """{model: {name of the way: Times}}."""
    if not machine.torch_python:
        return {}
    found = {}
    for model, n_steps, names in MODELS:
        found[model] = {name: Times() for name in names}
        for _ in range(Options.rounds):
            for way in WAYS:
                if way[0] in names:
                    run_way(machine, model, n_steps, way, found[model][way[0]])
        print(f"measured: {model}", file=sys.stderr, flush=True)
    return found


# ---- what is written --------------------------------------------------------------------------------------------------

def lowest(times):
    """µs of CPU time a step: of a machine that others use too, the most like a quiet one's."""
    return min(times.cpu, default=None)


def added(of_model, name):
    return lowest(of_model[name]) - lowest(of_model[BARE])


def add_verdicts(found, verdicts):
    mlp = found["mlp"]
    for ours, theirs, limit, words in ((MEMORY, THEIR_MEMORY, 0.5, "shapes and memory"), (ALL, THEIR_ALL, 0.25, "everything")):
        verdicts.at_most(f"added to a step of a tiny MLP, {words}, of what torch.profiler adds", limit,
                         added(mlp, ours) / added(mlp, theirs), "×", "{:.2f}")
    for model in ("cnn", "transformer", "gpt", "resnet18", "dlrm"):
        percent = 100 * added(found[model], HEAP) / lowest(found[model][BARE])
        verdicts.at_most(f"added to a step of a {model} by operators, tensors and the heap with stacks", 4, percent, "%")
    verdicts.at_most("recording against torch.profiler's JSON, everything", 0.1,
                     mlp[ALL].bytes_per_step / mlp[THEIR_ALL].bytes_per_step, "×", "{:.3f}")


def rows_of(of_model):
    bare = lowest(of_model[BARE])
    for name, times in of_model.items():
        if times.cpu:
            yield [name, cell(lowest(times)), cell(lowest(times) - bare, "{:+.1f}"), cell(100 * (lowest(times) / bare - 1), "{:+.1f} %"),
                   cell(min(times.wall)), cell(statistics.median(times.wall)),
                   cell(times.bytes_per_step, "{:,.0f}")]


def section(found, verdicts):
    if not found:
        return []
    if not Options.is_smoke:
        add_verdicts(found, verdicts)
    lines = ["## Steps of training beside torch.profiler", "",
             "µs a step on one processor, one thread; the writer has the other one. torch.profiler's `with_stack` traces each call",
             "of Python, and each operator has the Python stack of its time; ours takes stacks, native and Python's, of what",
             "allocates, and records every block of the C heap, which torch.profiler doesn't.", ""]
    heading = ["", "CPU time, lowest", "added", "", "wall, lowest", "median", "bytes written a step"]
    for model, of_model in found.items():
        lines += [f"### {model}", "", *table(heading, list(rows_of(of_model)))]
    return lines
