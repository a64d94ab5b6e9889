# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The simulated CUDA: running programs on it, and reading its log of what happened."""

import json
import pathlib

from environments import TORCH, torch_python
from harness import BUILD, ROOT, Skip, agent_environment, clean_environment, expect_equal, missing, once, run, scratch

RUN = ROOT / "test/simcuda/run"
# Python ends when the threads of PyTorch's autograd are idle, lest it abort.
QUIET_END = {"PYTHONPATH": str(ROOT / "test/python/quiet_end")}
LIBRARIES = BUILD / "simcuda/lib"
# In the order in which they need each other; {} is CUDA's version.
PRELOADED = ("libsimcuda.so", "libcuda.so.1", "libcudart.so.{}", "libcupti.so.{}", "libnvidia-ml.so.1", "libcublasLt.so.{}",
             "libcublas.so.{}", "libnccl.so.2", "libcusparse.so.12", "libnvrtc.so.{}")
# Libraries with versions of their own.
PRELOADED_OF = {"13": ("libcudnn.so.9", "libcufft.so.12", "libcusolver.so.12"),
                "12": ("libcudnn.so.8", "libcufft.so.11", "libcusolver.so.11")}
VERSIONS = ("13", "12")
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
# A program of the driver's, by its functions: need() what must succeed, a context, a stream, and all_reduce(on) of NCCL's.
DRIVER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL("libnccl.so.2")
class Unique(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
def need(result):
    if result:
        sys.exit(f"error {result}")
need(cuda.cuInit(0))
context, module, function, stream = (ctypes.c_void_p() for _ in range(4))
need(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
need(cuda.cuModuleLoadData(ctypes.byref(module), b"code"))
need(cuda.cuStreamCreate(ctypes.byref(stream), 1))
def synchronize():
    need(cuda.cuCtxSynchronize())
communicator = ctypes.c_void_p()
def all_reduce(on=stream):
    if not communicator:
        need(nccl.ncclCommInitRank(ctypes.byref(communicator), 1, Unique(), 0))
    need(nccl.ncclAllReduce(None, None, ctypes.c_size_t(1024), 7, 0, communicator, on))
"""
# The version of CUDA that an installed PyTorch was built for, without importing it.
CUDA_OF_TORCH = """
import importlib.util, pathlib, runpy
torch = pathlib.Path(importlib.util.find_spec("torch").origin)
print(runpy.run_path(str(torch.with_name("version.py")))["cuda"] or "")
"""
CPU_ONLY = "the PyTorch here is built without CUDA"


used = {"version": VERSIONS[0]}  # of CUDA: that of the PyTorch which cuda_python gave, once it did


def need_simcuda():
    if not (LIBRARIES / "libcudart.so.13").exists():
        missing("no simulated CUDA was built: there are no CUDA headers (PyPI's wheels below build/venv, or CUDA_HOME)")


def use_cuda_12(library="libcudart"):
    """From here on the libraries of CUDA 12 are preloaded."""
    need_simcuda()
    if not (LIBRARIES / f"{library}.so.12").exists():
        missing(f"no simulated {library}.so.12 was built: `test/python/environment cuda12`, or a PyTorch of CUDA 12, has its headers")
    used["version"] = "12"


def preload_names():
    """Their names, of the version of CUDA that is used."""
    version = used["version"]
    names = [name.format(version) for name in PRELOADED] + list(PRELOADED_OF[version])
    return tuple(name for name in names if (LIBRARIES / name).exists())


def preloaded():
    """The libraries for LD_PRELOAD: found so also where a program has a path of its own for the vendor's."""
    return ":".join(str(LIBRARIES / name) for name in preload_names())


def cuda_python():
    """The PyTorch that can run on it. A case that uses it is marked with @needs("torch")."""
    python = torch_python()
    version = run([python, "-c", CUDA_OF_TORCH]).stdout.decode().partition(".")[0].strip()
    if version not in VERSIONS:
        raise Skip(f"{CPU_ONLY} {' or '.join(VERSIONS)}" if version else CPU_ONLY)
    need_simcuda()
    if version == "12":
        use_cuda_12("libcublas")
    return python


def simulate(command, truth=None, timeout=120, env=None, **settings):
    """Run a command with settings SIMCUDA_NAME=value; its ground truth goes to the file truth."""
    need_simcuda()
    variables = {f"SIMCUDA_{name.upper()}": str(value) for name, value in settings.items()}
    if truth:
        truth.unlink(missing_ok=True)
        variables["SIMCUDA_LOG"] = str(truth)
    environment = {**clean_environment(), "BUILD": str(BUILD), **variables, **(env or {})}
    return run([RUN, *command], environment, timeout=timeout)


def read_truth(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_kind(truth, *kinds):
    return [line for line in truth if line["kind"] in kinds]


def duration_ns(line):
    return line["end"] - line["start"]


def recording_environment(output, truth, env=None, **settings):
    """The environment of a program that the agent records on the simulated CUDA."""
    need_simcuda()
    variables = agent_environment(output, **{f"SIMCUDA_{name.upper()}": value for name, value in settings.items()})
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{preloaded()}"
    return {**variables, "LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_LOG": str(truth), **QUIET_END, **(env or {})}


def record_simulated(command, env=None, expect=0, output=None, **settings):
    """The recording of a command under the agent on the simulated CUDA, and the simulation's log of
    what it did."""
    truth, output = scratch("truth") / "truth", output or scratch()
    result = run(command, recording_environment(output, truth, env, **settings))
    expect_equal(result.returncode, expect, f"status\n{result.stderr.decode()[-3000:]}\n")
    return output, read_truth(truth)


def recorded_once(name, *command, env=None, **settings):
    """The same, made by the first case of a run that looks at it: the others find it."""
    def make(folder):
        _, truth = record_simulated([cuda_python(), *command], env, output=folder, **settings)
        return str(folder), truth
    output, truth = once(f"simulated-{name}-{TORCH}", make)
    return pathlib.Path(output), truth


def trained_with_graphs():
    return recorded_once("graphs", ROOT / "test/simcuda/programs/train.py", scratch("traces"))
