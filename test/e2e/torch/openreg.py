#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PyTorch's own example of an accelerator, torch_openreg, built against this PyTorch. Its source is
in PyTorch's tree, test/cpp_extensions/open_registration_extension/torch_openreg, of the version that
is installed, and is not kept here: OPENREG has the folder, or one into which it was installed;
otherwise this is left to the stand-in of torch_accelerator.py."""

import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from timeline import events  # noqa: E402

PRIVATE_USE_1 = 20  # c10::DeviceType
# Operators that an accelerator may leave to the CPU are fine: what counts is that they were called.
PROGRAM = """
import json, torch
import torch_openreg
device = torch.device("openreg")
kept = torch.ones(256, 256).to(device)
for i in range(3):
    other = torch.empty(128, 64, device=device)
    total = torch.add(kept, kept)
    del other
print(json.dumps({"sum": float(total.cpu().sum()), "kept": kept.untyped_storage().nbytes(),
                  "device": str(kept.device), "addresses": [kept.data_ptr(), total.data_ptr()]}))
"""


# On the device by the program; what falls back to the CPU calls it once more, with its result.
ADDED = "float32[256,256]@privateuseone:0;float32[256,256]@privateuseone:0;1"


def built(python):
    """The folder to import torch_openreg from."""
    given = os.environ.get("OPENREG")
    if not given:
        raise Skip("OPENREG does not name the folder of torch_openreg, which is in PyTorch's tree")
    folder = pathlib.Path(given)
    if (folder / "torch_openreg/lib").exists():
        return folder
    if not (folder / "setup.py").exists():
        raise Skip(f"OPENREG={given} has no setup.py")
    if not shutil.which("cmake"):
        raise Skip("there is no cmake, with which torch_openreg is built")
    copy, site = scratch("openreg") / "source", scratch("openreg") / "site"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    # PyTorch's build of CUDA asks the machine for its devices unless they are named, which old versions of cmake can't.
    env = {**clean_environment(), "CMAKE_BUILD_PARALLEL_LEVEL": "1", "MAX_JOBS": "1", "TORCH_CUDA_ARCH_LIST": "8.0",
           "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    made = run([python, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", site, copy], env)
    expect_equal(made.returncode, 0, f"status of the build\n{made.stdout.decode()[-1000:]}{made.stderr.decode()[-3000:]}\n")
    return site


def recorded():
    """What the program printed, and its events."""
    def make(folder):
        python = torch_python()
        path = {"PYTHONPATH": str(built(python))}
        bare = run([python, "-c", PROGRAM], {**clean_environment(), **path})
        expect_equal(bare.returncode, 0, f"status without the agent ({bare.stderr.decode()[-1000:]})")
        result, output = record([python, "-c", PROGRAM], folder / "out", env=path)
        expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
        said, before = json.loads(result.stdout), json.loads(bare.stdout)
        expect_equal([said[key] for key in ("sum", "kept", "device")], [before[key] for key in ("sum", "kept", "device")], "results")
        return said, str(output)
    said, output = once("openreg", make)
    return said, output, events(output)


@case
@needs("torch")
def operators_on_the_example_accelerator_of_pytorch_are_recorded():
    _, output, found = recorded()
    calls = [event for event in found if event["event"] == "op_begin"]
    expect_equal(sum(event["name"] == "aten::add" and event["inputs"] == ADDED for event in calls), 3, "additions on it")
    assert any(event["name"] == "aten::to" for event in calls), {event["name"] for event in calls}
    added, = [row for row in read_report("ops", output)["ops"] if row["name"] == "aten::add"]
    assert added["device_ns"] > 0, added  # by the accelerator's own events


@case
@needs("torch")
def memory_of_the_example_accelerator_of_pytorch_is_recorded():
    said, _, found = recorded()
    tensors = [event for event in found if event["event"] == "tensor" and event["device"] >> 8 == PRIVATE_USE_1]
    if not tensors:
        # Without c10's reportMemoryUsageToProfiler there is nothing by which any profiler could know.
        raise Skip("this torch_openreg does not report its memory to PyTorch's profilers")
    allocated = {int(str(event["address"]), 0): event["bytes"] for event in tensors if not event["is_free"]}
    for address in said["addresses"]:
        expect_equal(allocated.get(address, 0) >= said["kept"], True, f"a tensor at {address:#x} among {allocated}")


main()
