#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh whatif, on the simulated CUDA: each prediction against a second run of the same program that does what was asked:
twice the batch, another allocator, checkpoints, a smaller device. The truth is what PyTorch reports of itself.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import TORCH  # noqa: E402
from schema import expect_fits  # noqa: E402
from simcuda import cuda_python, recording_environment  # noqa: E402

PROGRAM = ROOT / "test/simcuda/programs/whatif.py"
MIB = 1 << 20
SEGMENT = 20 * MIB  # what the allocator takes for a large block, at least
WITHIN = 0.01
BATCHES = {"mlp": 64, "cnn": 32, "transformer": 16, "lstm": 64, "accumulated": 8, "gru": 20}
TIMES_FIRST = {"gru": 35}  # what is first there, and so taken for the batch: all grows with it as well
# Of networks with checkpoints: the batch, and the class that has them.
CHECKPOINTED = {"cnn": (32, "Residual"), "resnet": (64, "Basic"), "vgg": (64, "Stage"), "layers": (512, "Layer"),
                "transformer": (16, "Attention"), "accumulated": (8, "Attention")}
SETTINGS = {"expandable_segments": "expandable_segments:True", "max_split_size_mb:32": "max_split_size_mb:32"}
WITHOUT_HEAP = {"TORSH_PROFILER_ACTIVITIES": "torch,cuda"}


def ran(*arguments, settings="", expect=0):
    """The recording of a run of the program, and the peaks that PyTorch had then; None if it failed."""
    def make(folder):
        env = {**WITHOUT_HEAP, **({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})}
        result = run([cuda_python(), "-W", "ignore", PROGRAM, *map(str, arguments)],
                     recording_environment(folder, folder / "truth", env), timeout=300)
        expect_equal(result.returncode, expect, result.stderr.decode()[-2000:])
        return str(folder), json.loads(result.stdout) if result.returncode == 0 else None
    output, peaks = once("-".join(map(str, ("whatif", *arguments, settings, TORCH))), make)
    return pathlib.Path(output), peaks


def answer(output, *options):
    report = read_report("whatif", output, *options)
    expect_fits("whatif", report)
    device, = report["devices"]
    return device


def share_off(found, expected):
    return (found - expected) / expected


def compare(what, found, expected):
    """Within 1 %."""
    off = {name: share_off(found[name], expected[name]) for name in expected}
    print(f"{what}: " + ", ".join(f"{name} {found[name] / MIB:.1f} MiB, {off[name]:+.2%}" for name in off))
    for name, share in off.items():
        assert abs(share) <= WITHIN, (what, name, found, expected)


@case
@needs("torch")
def a_recorded_run_is_replayed_to_the_peaks_that_pytorch_reported():
    for name, batch in BATCHES.items():
        output, peaks = ran(name, batch)
        device = answer(output)
        expect_equal(device["recorded"], peaks, f"peaks of {name}")
        compare(name, device["replayed"], peaks)
        expect_equal((device["is_reliable"], device["predicted"]), (True, device["replayed"]), name)


@case
@needs("torch")
def allocations_of_any_size_are_replayed_under_every_setting():
    for settings in ("", *SETTINGS.values(), "roundup_power2_divisions:8"):
        output, peaks = ran("random", 3, settings=settings)
        device = answer(output)
        expect_equal(device["recorded"], peaks, "peaks")
        compare(f"random {settings}", device["replayed"], peaks)
        assert any("released as often" in text for text in device["assumptions"]), device["assumptions"]


@case
@long
@needs("torch")
def twice_and_half_the_batch_are_predicted():
    for name, batch in BATCHES.items():
        (small, few), (large, many) = ran(name, batch), ran(name, 2 * batch)
        compare(f"{name}, twice", answer(small, "--batch", "2x")["predicted"], many)
        compare(f"{name}, half", answer(large, "--batch", "0.5x")["predicted"], few)
        assumptions = answer(small, "--batch", "2x")["assumptions"]
        first = TIMES_FIRST.get(name, batch)
        assert any(f"The batch is {first}," in text and f"becomes {2 * first}." in text for text in assumptions), assumptions
        assert any("grow with it, by their shapes" in text for text in assumptions), assumptions
        assert any("do not: parameters, gradients" in text for text in assumptions), assumptions


@case
@long
@needs("torch")
def other_settings_of_the_allocator_are_predicted_from_either_run():
    for name, batch in BATCHES.items():
        native, peaks = ran(name, batch)
        for option, settings in SETTINGS.items():
            other, changed = ran(name, batch, settings=settings)
            compare(f"{name}, {option}", answer(native, "--allocator", option)["predicted"], changed)
            compare(f"{name}, native again", answer(other, "--allocator", "native")["predicted"], peaks)


@case
@long
@needs("torch")
def modules_with_checkpoints_are_predicted():
    for name, (batch, module) in CHECKPOINTED.items():
        output, _ = ran(name, batch)
        _, peaks = ran(name, batch, "checkpoint")
        device = answer(output, "--checkpoint", module)
        compare(f"{name}, checkpoints", device["predicted"], peaks)
        for what in "are checkpointed", "is concluded from their sizes":
            assert any(what in text for text in device["assumptions"]), device["assumptions"]
    by_path = answer(ran("transformer", 16)[0], "--checkpoint", "blocks.1")["predicted"]
    assert device["predicted"]["allocated_bytes"] < by_path["allocated_bytes"], "one of three blocks"


def fits(output, mib, *options):
    return answer(output, "--capacity", f"{mib}M", *options)["capacity"]["fits"]


@case
@needs("torch")
def a_device_is_too_small_where_the_program_runs_out_of_memory():
    output, peaks = ran("transformer", 16)
    most = next(mib for mib in range(peaks["reserved_bytes"] // MIB, 0, -2) if not fits(output, mib))
    # The simulated device gives out whole ranges only: the limit is the allocator's.
    ran("transformer", 16, f"limit={most}", expect=1)
    ran("transformer", 16, f"limit={most + 2}")
    device = answer(output, "--capacity", f"{most}M")
    lacking = device["capacity"]["out_of_memory"]
    assert lacking["missing_bytes"] > 0 and lacking["operator"].startswith("aten::"), lacking
    assert lacking["reserved_bytes"] <= most * MIB < lacking["reserved_bytes"] + lacking["bytes"] + SEGMENT, lacking
    text = torsh("whatif", output, "--capacity", f"{most}M")
    assert f"{most} MiB are not enough: out of memory in step {lacking['step']}, " in text, text
    assert lacking["operator"] in text, text
    assert "MiB are enough, with " in torsh("whatif", output, "--capacity", "16G", "--batch", "2x").replace("GiB", "MiB")


@case
@needs("torch")
def options_combine():
    output, _ = ran("transformer", 16)
    batch = ("--batch", "2x")
    plain = answer(output, *batch)["predicted"]
    both = answer(output, *batch, "--checkpoint", "Attention")["predicted"]
    all_three = answer(output, *batch, "--checkpoint", "Attention", "--allocator", "expandable_segments")["predicted"]
    assert both["allocated_bytes"] < plain["allocated_bytes"], (both, plain)
    assert all_three["reserved_bytes"] != both["reserved_bytes"], (all_three, both)
    assert fits(output, 10 << 10, *batch) and not fits(output, 100, *batch), "the capacity holds for the prediction"


@case
@needs("torch")
def an_allocator_that_reports_nothing_is_not_replayed():
    output, _ = ran("mlp", 64, settings="backend:cudaMallocAsync")
    expect_equal(read_report("whatif", output)["devices"], [], "devices")
    assert "there is nothing to replay" in torsh("whatif", output)


@case
def what_cannot_be_answered_is_one_sentence():
    result, output = record([PROGRAMS / "entries"])
    expect_equal(result.returncode, 0, "status")
    expect_equal(read_report("whatif", output)["devices"], [], "devices")
    assert "there is nothing to replay" in torsh("whatif", output)
    for options, sentence in ((("--batch", "2"), "--batch 2: expected a factor"), (("--batch", "-1x"), "expected a factor"),
                              (("--batch", "0x"), "expected a factor"), (("--batch", "2000x"), "expected a factor"),
                              (("--allocator", "mine"), "--allocator mine: expected native"),
                              (("--allocator", "max_split_size_mb:1"), "expected native"),
                              (("--allocator", "backend:cudaMallocAsync"), "only PyTorch's native allocator"),
                              (("--capacity", "0"), "more than 0 bytes"), (("--capacity", "much"), "--capacity")):
        result = run([TORSH, "whatif", output, *options])
        expect_equal(result.returncode, 2, f"status with {options}")
        assert sentence in result.stderr.decode(), (options, result.stderr.decode())


@case
@needs("torch")
def a_module_that_did_not_run_is_named():
    output, _ = ran("mlp", 64)
    result = run([TORSH, "whatif", output, "--checkpoint", "Decoder"])
    expect_equal(result.returncode, 2, "status")
    assert "no module has the class or path Decoder in this recording" in result.stderr.decode(), result.stderr.decode()


if __name__ == "__main__":
    main()
