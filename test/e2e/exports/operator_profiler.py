#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The other files of the operator profiler (yottalabsai/Profiler), on the simulated CUDA: its manifest, its map of kernels to
operators, and our Chrome trace read as its correlator reads PyTorch's, all against the operator profile of the same recording.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from simcuda import cuda_python, of_kind, record_simulated  # noqa: E402
import schema  # noqa: E402

MODEL = """
import torch
torch.backends.cudnn.enabled = False
blocks = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.LayerNorm(32), torch.nn.Linear(32, 32), torch.nn.GELU()) for _ in range(4)))
model = torch.nn.Sequential(torch.nn.Linear(16, 32), blocks).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.ones(8, 16).cuda()).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""
SHARED = ("kernel_id", "stream_id", "device_id", "start_ns", "end_ns", "duration_ns", "grid_dim", "block_dim")


def exported(output, *options):
    """By format: the files of one recording, which fit their schemas; and their folder."""
    folder, found = scratch("exported"), {}
    for form in ("profile", "manifest", "corr", "part"):
        path = folder / f"a.{form}.json"
        torsh("export", output, "--format", form, "-o", path, *(options if form in ("profile", "manifest") else ()))
        found[form] = json.loads(path.read_text())
        if form != "part":
            schema.expect_fits(form, found[form])
    return found, folder


def kernels_by_operator(profile):
    """{kernel id: (the kernel, its operator or None)}"""
    found = {kernel["kernel_id"]: (kernel, operator) for operator in profile["operators"] for kernel in operator["kernels"]}
    found.update((kernel["kernel_id"], (kernel, None)) for kernel in profile["unattributed_kernels"])
    return found


def check_manifest(manifest, profile, part):
    expected = kernels_by_operator(profile)
    expect_equal([entry["kernel_id"] for entry in manifest["kernels"]], sorted(expected), "kernels by start")
    labels = collections.defaultdict(set)
    for entry in manifest["kernels"]:
        kernel, operator = expected[entry["kernel_id"]]
        expect_equal([entry[name] for name in SHARED], [kernel[name] for name in SHARED], "the same kernel")
        expect_equal(entry["kernel_name"], kernel["demangled_name"], "name")
        attribution = entry["attribution"]
        expect_equal([attribution["method"], attribution["confidence"], attribution["nvtx_range"]],
                     [kernel["attribution_method"], kernel["confidence"], kernel["nvtx_range"]], "evidence")
        expect_equal(attribution["source_operators"][:1], [operator["operator_name"]] if operator else [], "its operator")
        if operator and operator["layer_group"] is not None:
            expect_equal(entry["is_unique_partition"], operator["is_representative"], "representative")
            labels[operator["layer_group"], operator["layer_instance"]].add(entry["layer_partition"])
        else:
            expect_equal((entry["layer_partition"], entry["is_unique_partition"]), (None, False), "no layer")
    expect_equal({len(names) for names in labels.values()} - {1}, set(), "a label for each layer")
    # A layer that is like no other one is in no map.
    found = {entry["layer_partition"] for entry in manifest["kernels"]
             if entry["layer_partition"] and not entry["is_unique_partition"]}
    expect_equal(found, set(part), "layers that another one stands for")
    expect_equal(manifest["warnings"], profile["warnings"], "warnings")


def check_read(folder, files):
    """What a reader makes of them that is not ours."""
    result = run([environment_python("models"), ROOT / "test/lib/readers/manifest_models.py", folder / "a.manifest.json",
                  folder / "a.corr.json"])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
    read, expected = json.loads(result.stdout), kernels_by_operator(files["profile"])
    operators = collections.defaultdict(list)
    for name in sorted(expected):
        kernel, operator = expected[name]
        if operator and kernel["attribution_method"] != "unattributed":
            operators[operator["operator_name"]].append(name)
    expect_equal(read["operators"], operators, "kernels by operator")
    expect_equal(sorted(read["unattributed"]), sorted(set(expected) - {name for names in operators.values() for name in names}),
                 "without one")
    sure = {name: operator["operator_name"] for name, (kernel, operator) in expected.items()
            if operator and kernel["confidence"] == "high"}
    expect_equal(read["mapped"], sure, "the map")
    return sure


@case
@needs("torch", "models")
def manifests_and_maps_have_the_operators_of_the_profile():
    output, truth = record_simulated([cuda_python(), "-c", MODEL])
    files, folder = exported(output)
    expect_equal(len(files["manifest"]["kernels"]), len(of_kind(truth, "kernel")), "kernels of the simulation's log")
    check_manifest(files["manifest"], files["profile"], files["part"])
    assert any(entry["is_unique_partition"] for entry in files["manifest"]["kernels"]), "no layers"
    sure = check_read(folder, files)
    expect_equal(len(sure), len(files["manifest"]["kernels"]), "all have an operator")
    check_trace(output, files, sure)


def check_trace(output, files, sure):
    """Our Chrome trace as the correlator of the operator profiler reads PyTorch's: External id leads from a kernel to its
    operator, which counts if it has a namespace."""
    path = scratch("chrome") / "a.json"
    torsh("export", output, "--format", "chrome", "-o", path)
    trace = json.loads(path.read_text())["traceEvents"]
    operators = {int(event["args"]["External id"]): event["name"] for event in trace if event.get("cat") == "cpu_op"}
    kernels = sorted((event for event in trace if event.get("cat") == "kernel"), key=lambda event: event["ts"])
    seen, found = collections.Counter(), {}
    for event in kernels:
        found[event["name"], seen[event["name"]]] = operators.get(int(event["args"].get("External id", -1)))
        seen[event["name"]] += 1
    expect_equal(found, {(entry["kernel_name"], entry["invocation"]): entry["op_name"] for entry in files["corr"]["entries"]},
                 "operators by name and number")
    expect_equal(len(found), len(sure), "kernels")


@case
@needs("models")
def what_only_a_range_or_a_name_tells_is_not_in_the_map():
    output, _ = record_simulated([PROGRAMS / "cuda_evidence", "layers"], devices=2)
    files, folder = exported(output)
    check_manifest(files["manifest"], files["profile"], files["part"])
    expect_equal(check_read(folder, files), {}, "operators for sure")
    output, _ = record_simulated([PROGRAMS / "cuda_evidence"], devices=2)
    files, folder = exported(output)
    check_manifest(files["manifest"], files["profile"], files["part"])
    assert {entry["attribution"]["confidence"] for entry in files["manifest"]["kernels"]} == {"medium", "low", "unattributed"}
    check_read(folder, files)


@case
def names_of_model_and_device_can_be_given():
    output, _ = record_simulated([PROGRAMS / "cuda_evidence"])
    plain, _ = exported(output)
    named, _ = exported(output, "--model-name", 'My "model"', "--device-name", "A100 SXM4 80GB")
    for form in ("profile", "manifest"):
        metadata = dict(named[form]["capture_metadata"])
        expect_equal((metadata["model_name"], metadata["device_name"]), ('My "model"', "A100 SXM4 80GB"), "names")
        metadata.update({name: plain[form]["capture_metadata"][name] for name in ("model_name", "device_name")})
        expect_equal(metadata, plain[form]["capture_metadata"], "the rest")
        expect_equal(plain[form]["capture_metadata"]["model_name"], "cuda_evidence", "the program's name")
    for form in ("corr", "chrome", "speedscope"):
        result = run([TORSH, "export", output, "--format", form, "--model-name", "x"])
        expect_equal(result.returncode, 2, f"status with {form}")
        assert b"are of profile and manifest" in result.stderr, result.stderr


if __name__ == "__main__":
    main()
