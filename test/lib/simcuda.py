# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The simulated CUDA: running programs on it, and reading what it knows that happened."""

import json

from environments import torch_python
from harness import BUILD, ROOT, Skip, agent_environment, clean_environment, expect_equal, run, scratch

RUN = ROOT / "test/simcuda/run"
LIBRARIES = BUILD / "simcuda/lib"
# In the order in which they need each other.
PRELOADED = ("libsimcuda.so", "libcuda.so.1", "libcudart.so.13", "libcupti.so.13", "libnvidia-ml.so.1", "libcublasLt.so.13",
             "libcublas.so.13", "libnccl.so.2")
# A script: FOLDER N. So many windows of torch.profiler, each with five times a sum, a copy to the host and one back.
PROFILED = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(1 << 10, device="cuda")
for window in range(int(sys.argv[2])):
    y = x * 2
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for i in range(5):
            y = (x + i).cpu().cuda()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(f"{sys.argv[1]}/{window}.json")
    y = x * 3
torch.cuda.synchronize()
"""
CPU_ONLY = "the PyTorch here is built without CUDA"


def need_simcuda():
    if not (LIBRARIES / "libcudart.so.13").exists():
        raise Skip("no simulated CUDA was built: there are no CUDA headers (PyPI's wheels below build/venv, or CUDA_HOME)")


def preloaded():
    """The libraries for LD_PRELOAD: found so also where a program has a path of its own for the vendor's."""
    return ":".join(str(LIBRARIES / name) for name in PRELOADED)


def cuda_python():
    """The PyTorch that can run on it. A case that asks for it is marked with @needs("torch")."""
    python = torch_python()
    need_simcuda()
    version = run([python, "-c", "import torch; print(torch.version.cuda or '')"]).stdout.decode().strip()
    if not version.startswith("13"):
        raise Skip(f"{CPU_ONLY} 13" if version else CPU_ONLY)
    return python


def simulate(command, truth=None, timeout=120, env=None, **settings):
    """Run a command with settings SIMCUDA_NAME=value; its ground truth goes to the file truth."""
    need_simcuda()
    variables = {f"SIMCUDA_{name.upper()}": str(value) for name, value in settings.items()}
    if truth:
        truth.unlink(missing_ok=True)
        variables["SIMCUDA_LOG"] = str(truth)
    return run([RUN, *command], {**clean_environment(), "BUILD": str(BUILD), **variables, **(env or {})}, timeout=timeout)


def read_truth(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_kind(truth, *kinds):
    return [line for line in truth if line["kind"] in kinds]


def duration_ns(line):
    return line["end"] - line["start"]


def record_simulated(command, env=None, expect=0, **settings):
    """The recording of a command under the agent on the simulated CUDA, and what the simulation says that it did."""
    need_simcuda()
    truth, output = scratch("truth") / "truth", scratch()
    variables = agent_environment(output, **{f"SIMCUDA_{name.upper()}": value for name, value in settings.items()})
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{preloaded()}"
    variables.update({"LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_LOG": str(truth), **(env or {})})
    result = run(command, variables)
    expect_equal(result.returncode, expect, f"status\n{result.stderr.decode()[-3000:]}\n")
    return output, read_truth(truth)
