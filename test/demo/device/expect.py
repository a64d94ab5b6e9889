# SPDX-License-Identifier: Apache-2.0 OR MIT
"""expect.py WORK OUT SOURCE.c: fails unless the device demo exported and reported what the
simulation's log contains: its kernels, arrows to them, the planted leak and the peak."""

import collections
import json
import pathlib
import sys

LEAK_MARK, LEAKING, LARGE = "the planted leak", "keep_answer", "sort_batch"
LAYERS = 4  # as in train.py


def expect(is_so, what):
    if not is_so:
        sys.exit(f"the demo failed: {what}")


def read_truth(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def expect_profile(path, truth):
    profile = json.loads(path.read_text())
    kernels = [kernel for operator in profile["operators"] for kernel in operator["kernels"]] + profile["unattributed_kernels"]
    found = collections.Counter((kernel["kernel_name"], kernel["duration_ns"]) for kernel in kernels)
    expected = collections.Counter((line["name"], line["end"] - line["start"]) for line in truth if line["kind"] == "kernel")
    expect(found == expected, f"{path.name} has other kernels than the simulation")
    return profile, len(kernels)


def expect_trace(path, n_kernels):
    events = json.loads(path.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    expect(len(kernels) == n_kernels, f"{path.name} has {len(kernels)} kernels of {n_kernels}")
    arrows = [event for event in events if event.get("cat") == "ac2g"]
    starts = {event["id"] for event in arrows if event["ph"] == "s"}
    expect(starts and starts == {event["id"] for event in arrows if event["ph"] == "f"}, f"{path.name} has no arrows, or half ones")
    return len(starts)


def at_line(stacks, function, line, source):
    return all(any((frame.get("function"), pathlib.Path(frame.get("file") or "").name, frame.get("line")) ==
                   (function, source.name, line) for frame in stack) for stack in stacks)


def expect_memory(work, truth, source):
    lines = source.read_text().splitlines()
    leak_line = next(i for i, line in enumerate(lines, 1) if LEAK_MARK in line)
    large_line = next(i for i, line in enumerate(lines, 1) if "cudaMalloc(&scratch" in line)
    live, n_bytes, peak_bytes = {}, 0, 0
    for line in truth:
        if line["kind"] == "alloc":
            live[line["address"]] = line["bytes"]
            n_bytes += line["bytes"]
            peak_bytes = max(peak_bytes, n_bytes)
        elif line["kind"] == "free":
            n_bytes -= live.pop(line["address"])
    leaks, peak = (json.loads((work / f"{name}.json").read_text()) for name in ("leaks", "peak"))
    found = sum(leak["bytes"] for leak in leaks["leaks"])
    expect(found == n_bytes, f"{found} bytes of leaks were reported, and {n_bytes} leaked")
    expect(at_line([leak["stack"] for leak in leaks["leaks"]], LEAKING, leak_line, source), "the leak is not at its line")
    expect(peak["peak_bytes"] == peak_bytes, f"the peak is printed to be {peak['peak_bytes']}, and was {peak_bytes}")
    largest = max(peak["holders"], key=lambda holder: holder["bytes"])
    expect(at_line([largest["stack"]], LARGE, large_line, source), "the largest holder is not at its line")
    print(f"The planted leak was found: {LEAKING} ({source.name}:{leak_line}), {found} bytes; the peak of the device, "
          f"{peak_bytes} bytes, at {LARGE} ({source.name}:{large_line})")


def main(work, out, source):
    work, out, source = pathlib.Path(work), pathlib.Path(out), pathlib.Path(source)
    for name in ("serve", "train"):
        profile, n_kernels = expect_profile(out / f"{name}.profile.json", read_truth(work / f"{name}.truth"))
        n_arrows = expect_trace(out / f"{name}.trace.json", n_kernels)
        print(f"{name}: {n_kernels} kernels are in the profile once each, and in the trace, with {n_arrows} arrows")
    instances = {operator["layer_instance"] for operator in profile["operators"] if operator["layer_group"]}
    expect(instances == set(range(LAYERS)), f"the model's {LAYERS} layers were found as {sorted(instances)}")
    expect_memory(work, read_truth(work / "serve.truth"), source)


main(*sys.argv[1:])
