#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The owners of a device's memory, on the simulated CUDA: of each kind as many bytes as the model's own objects have in the
blocks of PyTorch's allocator, at marks and at the peak; of programs without a framework what the simulation's log has. They
always add up to what the driver says.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import TORCH  # noqa: E402
from schema import expect_fits  # noqa: E402
from simcuda import cuda_python, recording_environment  # noqa: E402

PROGRAM = ROOT / "test/simcuda/programs/owners.py"
KINDS = ("parameters", "gradients", "optimizer_state", "activations", "inputs")
OTHERS = ("outputs", "temporaries", "workspace", "unknown")
TRAININGS = ("sgd", "momentum", "adam", "accumulated", "checkpointed", "convolutional")
WITHOUT_STACKS = {"TORSH_PROFILER_ACTIVITIES": "torch,cuda"}


def ran(name, env=None, **settings):
    """The recording of a run of the program, and what it knows of its memory."""
    def make(folder):
        result = run([cuda_python(), "-W", "ignore", PROGRAM, name],
                     recording_environment(folder, folder / "truth", env, **settings), timeout=300)
        expect_equal(result.returncode, 0, result.stderr.decode()[-2000:])
        return str(folder), json.loads(result.stdout)
    words = [name, *(env or {}).values(), *map(str, settings.values()), TORCH]
    output, truth = once("owners-" + "-".join(words).replace("/", "_"), make)
    return pathlib.Path(output), truth


def owners_of(output, moment="peak", device="cuda:0", *arguments):
    report = read_report("peak", output, "--device", device, "--at", moment, "--limit", "0", *arguments)
    expect_fits("peak", report)
    expect_equal(report["attributed_bytes"], report["moment"]["bytes"], f"holders at {moment}")
    whole = report["moment"]["bytes"] if report["driver_bytes"] is None else report["driver_bytes"]
    expect_equal(sum(owner["bytes"] for owner in report["owners"]), whole, f"sum of the owners at {moment}")
    return report


def by_kind(report):
    found = collections.Counter()
    for owner in report["owners"]:
        found[owner["kind"]] += owner["bytes"]
    return found


def compare(what, report, expected):
    found = by_kind(report)
    wrong = {kind: (found[kind], expected.get(kind, 0)) for kind in KINDS if found[kind] != expected.get(kind, 0)}
    assert not wrong, (what, "found, expected", wrong, report["owners"])
    expect_equal(sum(found[kind] for kind in OTHERS), expected.get("others", 0) + expected.get("outputs", 0), f"others, {what}")
    expect_equal(found["unknown"], 0, f"unknown, {what}")


def compare_all(name, env=None):
    output, truth = ran(name, env)
    assert len(truth) > 5, truth
    for moment, expected in truth.items():
        compare(f"{name} at {moment}", owners_of(output, moment), expected)
    return output, truth


@case
@needs("torch")
def tensors_of_trainings_have_the_kinds_that_the_models_objects_have():
    for name in TRAININGS:
        output, truth = compare_all(name)
        last = truth["last"]
        assert last["parameters"] and last["gradients"], last
        print(name, {moment: dict(found) for moment, found in truth.items() if moment in ("peak", "last")})


@case
@needs("torch")
def without_stacks_shapes_tell_parameters():
    for name in ("adam", "sgd", "convolutional"):
        compare_all(name, WITHOUT_STACKS)


@case
@needs("torch")
def the_optimizers_state_is_what_it_keeps():
    for name, times in (("sgd", 0), ("momentum", 1), ("adam", 2)):
        output, truth = ran(name)
        report = owners_of(output, "last")
        found = by_kind(report)
        elements = truth["last"]["gradients"]  # all of them are of trained parameters
        assert (times == 0) == (found["optimizer_state"] == 0), found
        # A large block may have up to 1 MiB that is not split off.
        assert times * elements <= found["optimizer_state"] <= times * elements + (1 << 20) * times, (found, truth["last"])


@case
@needs("torch")
def inference_has_no_gradients_and_no_state():
    output, truth = compare_all("inference")
    for moment in truth:
        found = by_kind(owners_of(output, moment))
        expect_equal((found["gradients"], found["optimizer_state"], found["activations"]), (0, 0, 0), moment)
    expect_equal(by_kind(owners_of(output, "last"))["outputs"], truth["last"]["outputs"], "results that are kept")


if __name__ == "__main__":
    main()
