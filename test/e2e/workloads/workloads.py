#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh workloads: the figures of a comparison against the workload's own numbers and PyTorch's FlopCounterMode; runs that fail,
that are interrupted, that were complete before; on simulated CUDA the files of the operator profiler.
"""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from simcuda import RUN, cuda_python  # noqa: E402
import schema  # noqa: E402

MIB = 1 << 20
# A step allocates 3 MiB, frees 1 of them, and returns the other 2; its input has 4 bytes.
KNOWN = f"""
import torch
class Known(torch.nn.Module):
    def forward(self, x):
        first = torch.empty({MIB}, dtype=torch.uint8)
        second = torch.zeros({2 * MIB // 4})
        del first
        return second + x
def get_model_and_input():
    return Known(), torch.ones(1)
"""
BROKEN = """
import sys
def get_model_and_input():
    print("the weights are", file=sys.stderr)
    raise RuntimeError("lost at sea")
"""
FIXED = """
import torch
def get_model_and_input():
    return torch.nn.Identity(), torch.ones(3)
"""
# Says that it waits by making one file, and waits until there is another one.
WAITS = """
import os, torch
def get_model_and_input():
    os.mkfifo(os.environ["GATE"])
    open(os.environ["GATE"]).read()
    return torch.nn.Identity(), torch.ones(3)
"""
# Tells when each of its calls begins and ends, and on a thread of its own every moment at which it runs.
TICKS = """
import os, threading, time, torch
def tell(word):
    with open(os.environ["TOLD"] + "/" + os.path.basename(__file__), "a") as file:
        print(word, time.clock_gettime_ns(time.CLOCK_MONOTONIC), file=file)
def tick():
    while True:
        tell("tick")
        time.sleep(0.002)
class Ticks(torch.nn.Module):
    def forward(self, x):
        tell("begin")
        time.sleep(0.05)
        tell("end")
        return x + 1
def get_model_and_input():
    threading.Thread(target=tick, daemon=True).start()
    return Ticks(), torch.ones(3)
"""
TRUTH = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
from torch.utils.flop_counter import FlopCounterMode
from torsh.workloads import WORKLOADS, load
found = {}
for name in WORKLOADS:
    model, inputs = load(name, "cpu", "small")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(*inputs)
    found[name] = counter.get_total_flops()
    # Of the full size, which needs no memory on this device.
    model, inputs = load(name, "meta", "full")
    with torch.no_grad():
        model(*inputs)
    found[name + " parameters"] = sum(parameter.numel() for parameter in model.parameters())
json.dump(found, sys.stdout)
"""


def workloads(*arguments, env=None, expect=0, python=None):
    """What a command prints as JSON, and what on stderr."""
    command = [TORSH, "workloads", *arguments, "--json"] + (["--python", python] if python else [])
    result = run(command, {**clean_environment(), **(env or {})}, timeout=600)
    expect_equal(result.returncode, expect, f"status of {command}\n{result.stderr.decode()[-3000:]}\n")
    found = json.loads(result.stdout)
    schema.expect_fits("workloads", found)
    return found, result.stderr.decode()


def written(name, text, folder=None):
    path = (folder or scratch("source")) / f"{name}.py"
    path.write_text(text)
    return path


def only(found):
    (row,) = found["runs"]
    return row


@case
def the_list_has_the_operator_profilers_workloads_and_more():
    found, _ = workloads("list")
    names = {row["name"]: row for row in found["workloads"]}
    assert names.keys() >= {"conv_block", "depthwise_separable_conv", "embedding_projection", "gpt2", "lstm_sequence_encoder",
                            "mlp_activations", "sdpa_attention"}, names
    expect_equal([name for name in names if "channels_last" in names[name]["variants"]],
                 ["conv_block", "depthwise_separable_conv", "unet_block"], "those of images")
    text = torsh("workloads", "list")
    assert all(name in text for name in names), text


@case
def wrong_usage_of_workloads_is_status_2():
    for printed, *arguments in (("list, run or compare", "show"), ("list, run or compare?",), ("there is no workload ocean", "run", "ocean"),
                                ("there is no variant fast", "run", "--variants", "fast"), ("is no number from 1 on", "run", "-j", "0"),
                                ("there is no folder", "compare", "-o", "/nonexistent"),
                                ("there is no program /nonexistent", "run", "--python", "/nonexistent"),
                                ("has no result", "compare", "-o", scratch("empty"))):
        result = run([TORSH, "workloads", *arguments])
        expect_equal(result.returncode, 2, f"status of {arguments} ({result.stderr!r})")
        assert printed in result.stderr.decode(), f"{printed} isn't printed: {result.stderr!r}"


@case
@needs("torch")
def figures_of_a_workload_are_its_own():
    folder, source = scratch("runs"), written("known", KNOWN)
    options = ("--variants", "eager,amp", "--devices", "cpu", "-o", folder, "--measure-iters", "3", "--warmup-iters", "1")
    found, _ = workloads("run", source, *options, python=torch_python())
    expect_equal([(row["workload"], row["variant"], row["status"], row["was_kept"]) for row in found["runs"]],
                 [("known", "eager", "ok", False), ("known", "amp", "ok", False)], "runs")
    rows, _ = workloads("compare", "-o", folder)
    eager, amp = rows["runs"]
    # zeros, empty, add and what they call, which is the same in each step; the output of the step before is still there.
    expect_equal((eager["steps"], eager["flops"], eager["model_flops"], eager["device_ns"]), (3, 0, 0, None), "figures")
    # The result of the step before, an empty one that is freed, zeros, and the sum.
    expect_equal(eager["peak_bytes"], (2 + 2 + 2) * MIB + 4, "peak")
    expect_equal((amp["difference"], amp["ratios"]["peak_bytes"]), (0.0, 1.0), "autocast leaves a sum alone")
    seen = json.loads((folder / "known/cpu-eager/seen.json").read_text())
    steps = {step["index"]: step for step in read_report("steps", folder / "known/cpu-eager/recording")["steps"]}
    for i, own_ns in enumerate(seen["durations_ns"]):
        # A step begins before the program reads its clock, and ends after.
        assert steps[1 + i]["duration_ns"] >= own_ns, (i, own_ns, steps[1 + i])
    expect_equal(eager["step_ns"], sorted(steps[i]["duration_ns"] for i in (1, 2, 3))[1], "median")
    text = torsh("workloads", "compare", "-o", folder)
    assert "6 MiB" in text and "known" in text, text


@case
@long
@needs("torch")
def what_fails_is_listed_with_its_reason_and_tried_again():
    folder, place = scratch("runs"), scratch("source")
    sources = [written("broken", BROKEN, place), written("known", KNOWN, place)]
    options = (*sources, "--variants", "eager", "--devices", "cpu", "-o", folder, "-j", "2")
    found, progress = workloads("run", *options, python=torch_python(), expect=1)
    broken, known = found["runs"]
    expect_equal((broken["status"], known["status"]), ("failed", "ok"), "status")
    assert broken["reason"].startswith("status 1\n") and "the weights are" in broken["reason"], broken
    assert broken["reason"].endswith("RuntimeError: lost at sea"), broken
    assert "broken eager on cpu: failed" in progress, progress
    rows, _ = workloads("compare", "-o", folder, expect=1)
    expect_equal([(row["workload"], row["status"], row["step_ns"] is None) for row in rows["runs"]],
                 [("broken", "failed", True), ("known", "ok", False)], "rows")
    # One is as it was, the other one is another program now.
    before = (folder / "known/cpu-eager/result.json").stat()
    written("broken", FIXED, place)
    found, progress = workloads("run", *options, python=torch_python())
    expect_equal([(row["status"], row["was_kept"]) for row in found["runs"]], [("ok", False), ("ok", True)], "second run")
    after = (folder / "known/cpu-eager/result.json").stat()
    expect_equal((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns), "result that was kept")
    assert "known" not in progress, progress
    found, _ = workloads("run", sources[1], *options[2:], "--again", python=torch_python())
    expect_equal(only(found)["was_kept"], False, "with --again")


@case
@needs("torch")
def while_one_measures_the_others_are_stopped():
    folder, place, told = scratch("runs"), scratch("source"), scratch("told")
    sources = [written(name, TICKS, place) for name in ("one", "two")]
    workloads("run", *sources, "--variants", "eager", "--devices", "cpu", "-o", folder, "-j", "2", "--measure-iters", "6",
              python=torch_python(), env={"TOLD": str(told)})
    lines = {name: [line.split() for line in (told / f"{name}.py").read_text().splitlines()] for name in ("one", "two")}
    measured, ticks = {}, {}
    for name, of_it in lines.items():
        times = {word: [int(at) for said, at in of_it if said == word] for word in ("begin", "end", "tick")}
        # Two calls warm up, six are measured; FLOPs are counted in others.
        measured[name], ticks[name] = (times["begin"][2], times["end"][7]), times["tick"]
        assert len([at for at in ticks[name] if measured[name][0] < at < measured[name][1]]) > 20, f"{name} runs while it measures"
    for name, other in (("one", "two"), ("two", "one")):
        assert measured[name][1] < measured[other][0] or measured[other][1] < measured[name][0], measured
        expect_equal([at for at in ticks[other] if measured[name][0] < at < measured[name][1]], [], f"when {other} ran while {name} measured")


def is_alive(pid):
    try:
        return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(path.parent.name), *descendants(int(path.parent.name))]
    return found


def interrupted(number):
    folder, place = scratch("runs"), scratch("source")
    gate = place / "gate"
    sources = [written("known", KNOWN, place), written("waits", WAITS, place)]
    options = [*sources, "--variants", "eager", "--devices", "cpu", "-o", folder, "-j", "1"]
    environment = {**clean_environment(), "GATE": str(gate)}
    with started([TORSH, "workloads", "run", *options, "--python", torch_python()], environment, stdout=subprocess.DEVNULL,
                 stderr=subprocess.PIPE) as process:
        wait_until(gate.exists, "the second one waits", 240)
        expect_equal((folder / "known/cpu-eager/result.json").exists(), True, "result of the first one")
        # A second run at the same time is refused.
        other = run([TORSH, "workloads", "run", *options, "--python", torch_python()], environment)
        assert b"in use by another" in other.stderr and other.returncode != 0, other
        workers = descendants(process.pid)
        assert workers, "no worker"
        process.send_signal(number)
        last = process.communicate(timeout=60)[1].decode().splitlines()[-1:]
        is_told = number == signal.SIGTERM
        expect_equal(process.returncode, 128 + number if is_told else -number, "status")
        expect_equal(last == ["torsh: interrupted by SIGTERM; the same command goes on"], is_told, f"what it says: {last}")
        wait_until(lambda: not any(map(is_alive, workers)), "the worker ends too")
    expect_equal((folder / "waits/cpu-eager/result.json").exists(), False, "a result of what was interrupted")
    gate.unlink()
    with started([TORSH, "workloads", "run", *options, "--json", "--python", torch_python()], environment, stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL) as process:
        wait_until(gate.exists, "the second one waits again", 240)
        gate.write_text("go on")  # opens when the other side reads
        found = json.loads(process.stdout.read())
    expect_equal([(row["workload"], row["status"], row["was_kept"]) for row in found["runs"]],
                 [("known", "ok", True), ("waits", "ok", False)], "what went on")


@case
@needs("torch")
def a_killed_run_goes_on():
    interrupted(signal.SIGKILL)


@case
@long
@needs("torch")
def a_terminated_run_goes_on():
    interrupted(signal.SIGTERM)


@case
@needs("torch")
def what_takes_too_long_is_ended():
    folder, place = scratch("runs"), scratch("source")
    source = written("waits", WAITS, place)
    found, _ = workloads("run", source, "--variants", "eager", "--devices", "cpu", "-o", folder, "--timeout", "1", expect=1,
                         env={"GATE": str(place / "gate")}, python=torch_python())
    assert only(found)["reason"].startswith("it was still running after 1 s"), found


@case
@long
@needs("torch")
def each_workload_has_the_flops_that_pytorch_counts():
    truth = json.loads(run([torch_python(), "-c", TRUTH, ROOT / "tools/python"], timeout=600).stdout)
    # Hugging Face's GPT2Model of gpt2 has as many parameters.
    expect_equal(truth["gpt2 parameters"], 124439808, "parameters of GPT-2 small")
    folder = scratch("runs")
    workloads("run", "--variants", "eager", "--devices", "cpu", "-o", folder, "--measure-iters", "1", "-j", "2", python=torch_python())
    rows, _ = workloads("compare", "-o", folder)
    expect_equal({row["workload"]: row["model_flops"] for row in rows["runs"]},
                 {name: flops for name, flops in truth.items() if "parameters" not in name}, "FLOPs without computing")
    expect_equal({row["workload"]: row["flops"] for row in rows["runs"]},
                 {name: flops for name, flops in truth.items() if "parameters" not in name}, "FLOPs of the recording")


@case
@needs("torch")
def on_simulated_cuda_runs_are_called_simulated_and_have_the_operator_profilers_files():
    folder = scratch("runs")
    found, _ = workloads("run", "gpt2", "--variants", "eager,amp", "--devices", "cuda", "-o", folder, "--measure-iters", "2",
                         "--launcher", RUN, python=cuda_python(), env={"BUILD": str(BUILD)})
    expect_equal({row["status"] for row in found["runs"]}, {"ok"}, "status")
    for row in found["runs"]:
        files = {name: json.loads((pathlib.Path(row["folder"]) / name).read_text()) for name in row["files"]}
        expect_equal(set(files), {"profile.json", "manifest.json", "corr.json", "part.json"}, "files")
        for name in ("profile", "manifest", "corr"):
            schema.expect_fits(name, files[f"{name}.json"])
        metadata = files["manifest.json"]["capture_metadata"]
        expect_equal((metadata["model_name"], metadata["device_name"]), ("gpt2", "Simulated CUDA device"), "names")
        # Blocks of the model are layers that the first one stands for.
        expect_equal({label: of for label, of in files["part.json"].items() if label.startswith("GPT2.h.")},
                     {f"GPT2.h.{i}": "GPT2.h.0" for i in range(1, 4)}, "layers")
    rows, _ = workloads("compare", "-o", folder)
    expect_equal({(row["is_simulated"], row["difference"], row["device_name"]) for row in rows["runs"]},
                 {(True, None, "Simulated CUDA device")}, "what they are")
    text = torsh("workloads", "compare", "-o", folder)
    assert "cuda (simulated)" in text and "Times of a simulated device are made up" in text, text


if __name__ == "__main__":
    main()
