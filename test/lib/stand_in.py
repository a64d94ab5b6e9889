# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The stand-in for PyTorch in test/torch_stand_in, built for a Python of this machine."""

import pathlib
import shutil

import pythons
from harness import ROOT, expect_equal, missing, need_command, once, run

SOURCES = ROOT / "test/torch_stand_in"


def find_python():
    for python in pythons.find_all():
        if (python.include / "Python.h").exists() and not python.is_free_threaded:
            return python
    return missing("no CPython here has its headers")


def build(python, layout):
    """The folder with the package, which the first case of a run that needs it makes."""
    return pathlib.Path(once(f"torch-stand-in-{layout}{python.suffix}", lambda folder: str(built_in(folder, python, layout))))


def built_in(folder, python, layout):
    compiler = need_command("g++")
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    common = ["-g", "-fPIC", "-shared", f"-L{folder}", "-Wl,-rpath,$ORIGIN,-rpath,$ORIGIN/.."]
    for command in (
            [compiler, "-std=c++17", f"-DLAYOUT={layout}", "-DPART=1", *common, SOURCES / "libtorch.cc", "-o", folder / "libc10.so"],
            [compiler, "-std=c++17", f"-DLAYOUT={layout}", "-DPART=2", *common, SOURCES / "libtorch.cc", "-lc10",
             "-o", folder / "libtorch_cpu.so"],
            ["gcc", f"-I{python.include}", *common, SOURCES / "extension.c", "-Wl,--no-as-needed", "-ltorch_cpu",
             "-o", folder / f"torch/_C{python.suffix}"]):
        result = run(command)
        expect_equal(result.returncode, 0, f"status of the compiler ({result.stderr.decode()})")
    return folder
