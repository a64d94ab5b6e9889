# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The headers of NVTX and a Python that has ITT, from the machine or from PyPI."""

import functools
import os
import pathlib

import pythons
from harness import BUILD, ROOT, Skip, missing, run, scratch

NVTX_PACKAGE = "nvidia-nvtx"
PYTORCH = ROOT / "build/venv"


def _nvtx_places():
    """Folders that may hold nvtx3/, the newest first."""
    yield from sorted(PYTORCH.glob("lib/python3*/site-packages/nvidia/cu*/include"), reverse=True)
    yield from sorted(PYTORCH.glob("lib/python3*/site-packages/nvidia/nvtx/include"))
    for root in (os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/usr", "/usr/local"):
        if root:
            yield pathlib.Path(root) / "include"
    for python in reversed(pythons.find_all()):
        folder = python.install(NVTX_PACKAGE, holds="nvidia")
        if folder:
            yield from folder.glob("nvidia/cu*/include")
        return


@functools.lru_cache(None)
def nvtx_headers():
    """The folder to be searched for nvtx3/nvToolsExt.h and its payload extension."""
    for place in _nvtx_places():
        if (place / "nvtx3/nvToolsExtPayload.h").exists():
            return place
    return missing(f"there are no headers of NVTX 3 here, and {NVTX_PACKAGE} can't be had from PyPI")


def nvtx_2_library():
    """NVIDIA's last libnvToolsExt.so.1 but a few."""
    for python in reversed(pythons.find_all()):
        folder = python.install("nvidia-nvtx-cu12==12.4.127", holds="nvidia/nvtx", into="nvtx-2")
        if folder:
            return python, folder / "nvidia/nvtx/lib/libnvToolsExt.so.1"
    return missing("libnvToolsExt.so.1 can't be had from PyPI")


def build(name, source, *flags):
    """Compiles one source into a program or a library of the case's own."""
    output = scratch("built-" + name) / name
    made = run(["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-pthread", "-o", output, source, *flags, "-ldl"])
    assert made.returncode == 0, made.stderr.decode()
    return output


def python_with(package):
    """A CPython of this machine and the folder in which it has a package of PyPI's; the newest that can have it."""
    for python in reversed(pythons.find_all()):
        folder = python.install(package)
        if folder:
            return python, folder
    return missing(f"{package} can't be had from PyPI")


def itt_flags():
    """What the compiler needs for a program with ITT's static part: its sources, from $ITTAPI or
    build/ittapi, or the library in PyTorch's."""
    for root in (os.environ.get("ITTAPI"), BUILD / "ittapi"):
        root = pathlib.Path(root or "/nonexistent")
        if (root / "src/ittnotify/ittnotify_static.c").exists():
            return [f"-I{root}/include", f"-I{root}/src/ittnotify", f"{root}/src/ittnotify/ittnotify_static.c", "-w"]
    for torch in PYTORCH.glob("lib/python3*/site-packages/torch"):
        if (torch / "include/ittnotify.h").exists():
            return [f"-I{torch}/include", f"-L{torch}/lib", "-ltorch_cpu", f"-Wl,-rpath,{torch}/lib",
                    "-Wl,--allow-shlib-undefined"]
    raise Skip("there is no static part of ITT here: neither sources (ITTAPI=FOLDER) nor PyTorch")
