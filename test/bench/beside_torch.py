# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Steps of training: of a tiny model beside torch.profiler, what each adds to a step with the same content switched on, and
what PyTorch itself takes as soon as anybody observes its operators; and of models whose steps take milliseconds.
"""

import json
import statistics

from results import cell, table
from runs import BARE, BENCH, NOOP_MODE, OURS, OUTPUT, WORKLOADS, Mode, Options, Program, progress, run_once, scaled

EMPTY, INPUTS = "an empty callback", "an empty callback that gets arguments"
OPERATORS, SHAPES, MEMORY, ALL = "torsh, operators", "torsh, + shapes", "torsh, + tensors", "torsh, everything"
HEAP, SAMPLED = "torsh, operators, tensors, heap", "torsh, everything, HEAP=sampled"
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
    (SAMPLED, OURS, settings(HEAP="sampled"), "none"),
    (ALL, OURS, {}, "none"),
    (THEIRS, BARE, {}, "profiler"),
    (THEIR_SHAPES, BARE, {}, "profiler,shapes"),
    (THEIR_MEMORY, BARE, {}, "profiler,shapes,memory"),
    (THEIR_ALL, BARE, {}, "profiler,all"),
)
STEPS = (BARE, NOOP_MODE, INPUTS, SAMPLED, ALL)

# What a step takes more without anything that is ours: the noise, and what PyTorch does for any observer that sees inputs.
LEAST = ((NOOP_MODE, "no-op"), (INPUTS, "an empty observer"))

# Models of one process: name, steps a repeat, repeats.
TINY = (("mlp", 400, 5),)
LARGE = (("cnn", 10, 5), ("transformer", 10, 5), ("resnet18", 6, 5), ("dlrm", 10, 5), ("gpt", 2, 3))
LARGE_STEP_MS = 15  # a step takes at least so long
OPERATOR_NS = 250


class Times:
    """Of one model in one way, over all rounds, µs a step; CPU seconds of the writer for the whole process."""

    def __init__(self):
        self.wall, self.cpu, self.writer_cpu_s, self.bytes_per_step, self.calls_per_step = [], [], [], None, None

    def add(self, printed, run, bytes_recorded):
        self.wall += printed["wall_us"]
        self.cpu += printed["cpu_us"]
        self.writer_cpu_s.append(run.writer_cpu_s)
        self.calls_per_step = printed["calls_per_step"]
        self.bytes_per_step = printed["trace_bytes_per_step"] or (bytes_recorded and bytes_recorded / printed["steps"])


def run_way(machine, models, way, found):
    name, how, env, observer = way
    wanted = [f"{model}:{scaled(n_steps)}:{1 if Options.is_smoke else n_repeats}" for model, n_steps, n_repeats in models]
    command = [machine.torch_python, WORKLOADS / "torch_steps.py", observer, *wanted]
    run = run_once(Program(f"steps, {name}", command), Mode(how, machine),
                   dict(env, EMPTY_OBSERVER=str(BENCH / "libempty_observer.so")))
    if run is None:
        return
    # The recording is of the whole process, import and all models: its size for a step is known only of a single model.
    n_bytes = sum(path.stat().st_size for path in OUTPUT.rglob("*.torsh")) if len(models) == 1 else None
    for line in run.text.splitlines():
        printed = json.loads(line)
        found[printed["model"]][name].add(printed, run, n_bytes)


def measure(machine):
    """{model: {name of the way: Times}}."""
    if not machine.torch_python:
        return {}
    found = {}
    for models, names in ((TINY, [way[0] for way in WAYS]), (LARGE, STEPS)):
        found.update({model: {name: Times() for name in names} for model, _, _ in models})
        for turn in range(Options.rounds):
            for way in WAYS:
                if way[0] in names:
                    run_way(machine, models, way, found)
            progress(f"steps of {', '.join(model for model, _, _ in models)}: round {turn + 1} of {Options.rounds}")
    return found


# ---- what is written --------------------------------------------------------------------------------------------------

def lowest(times):
    """µs of CPU time a step: of a machine that others use too, the most like a quiet one's."""
    return min(times.cpu, default=None)


def added(of_model, name):
    """µs that a way adds to a step, or None where it failed."""
    ours, bare = lowest(of_model[name]), lowest(of_model[BARE])
    return None if ours is None or bare is None else ours - bare


def operator_ns(of_model, name, than=BARE):
    """What a way adds to each call of an operator, more than another way."""
    n_calls, ours, theirs = of_model[INPUTS].calls_per_step, added(of_model, name), added(of_model, than)
    return None if not n_calls or ours is None or theirs is None else 1000 * (ours - theirs) / n_calls


def tiny_verdicts(mlp, verdicts):
    for ours, theirs, limit, words in ((ALL, THEIR_ALL, 0.4, "everything"), (MEMORY, THEIR_MEMORY, 0.3, "shapes and memory")):
        of_ours, of_theirs = added(mlp, ours), added(mlp, theirs)
        verdicts.at_most(f"added to a step of a tiny MLP, {words}, of what torch.profiler adds", limit,
                         of_ours / of_theirs if of_ours is not None and of_theirs else None, "×", "{:.2f}")
    verdicts.at_most("operators and tensors, added to a call of an operator (tiny MLP)", OPERATOR_NS, operator_ns(mlp, MEMORY), "ns", "{:.0f}")
    ours, theirs = mlp[ALL].bytes_per_step, mlp[THEIR_ALL].bytes_per_step
    verdicts.at_most("recording against torch.profiler's JSON, everything", 0.1, ours / theirs if ours and theirs else None, "×", "{:.3f}")


def large_verdicts(found, verdicts):
    for model, _, _ in LARGE:
        bare = lowest(found[model][BARE])
        beside = [f"{words} {100 * added(found[model], name) / bare:+.1f} %" for name, words in LEAST
                  if added(found[model], name) is not None]
        noise = 100 * (added(found[model], NOOP_MODE) or 0) / bare if bare else 0
        for name, limit, words in ((ALL, 4, "everything"), (SAMPLED, 2, "everything with HEAP=sampled")):
            more = added(found[model], name)
            verdicts.at_most(f"added to a step of a {model} by {words}", limit, more and 100 * more / bare, "%", "{:+.1f}",
                             ", ".join(beside) or None, noise)
        if bare and bare < 1000 * LARGE_STEP_MS and not Options.is_smoke:
            progress(f"a step of {model} takes less than {LARGE_STEP_MS} ms: {bare / 1000:.1f}")


def rows_of(of_model):
    bare = lowest(of_model[BARE])
    for name, times in of_model.items():
        if times.cpu:
            yield [name, cell(lowest(times)), cell(lowest(times) - bare, "{:+.1f}"), cell(100 * (lowest(times) / bare - 1), "{:+.1f} %"),
                   cell(statistics.median(times.cpu)), cell(100 * (statistics.median(times.cpu) / statistics.median(of_model[BARE].cpu) - 1), "{:+.1f} %"),
                   cell(min(times.wall)), cell(statistics.median(times.wall)), cell(statistics.median(times.writer_cpu_s), "{:.2f}"),
                   cell(times.bytes_per_step, "{:,.0f}")]


def operator_words(mlp):
    """The tiny model's calls of operators, and what is added to each."""
    if not mlp[INPUTS].calls_per_step:
        return []
    beyond = cell(operator_ns(mlp, MEMORY, INPUTS), "{:.0f}")
    return [f"{mlp[INPUTS].calls_per_step:.0f} calls of operators a step: operators and tensors add "
            f"{cell(operator_ns(mlp, MEMORY), '{:.0f}')} ns to each, an empty callback that gets arguments "
            f"{cell(operator_ns(mlp, INPUTS), '{:.0f}')} ns; beyond that the agent takes {beyond} ns.", ""]


def section(found, verdicts):
    if not found:
        return []
    tiny_verdicts(found["mlp"], verdicts)
    large_verdicts(found, verdicts)
    lines = ["## Steps of training beside torch.profiler", "",
             "µs a step on one processor, one thread; the writer has the other one, and its CPU seconds are of the whole process with",
             "its import and, but for the mlp, all models. torch.profiler's `with_stack` traces each call of Python, and each",
             "operator has the Python stack of its time; ours takes stacks, native and Python's, of what allocates, and records",
             "every block of the C heap, which torch.profiler doesn't. resnet18 is written anew, layer by layer as torchvision's.", ""]
    heading = ["", "CPU time, lowest", "added", "added, %", "CPU time, median", "added to that, %", "wall, lowest", "wall, median",
               "writer's CPU s", "bytes written a step"]
    for model, of_model in found.items():
        lines += [f"### {model}", "", *table(heading, list(rows_of(of_model)))]
        lines += operator_words(of_model) if model == "mlp" else []
    return lines


def sections(machine, verdicts):
    return section(measure(machine), verdicts)
