# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The CPython interpreters on this machine, extension modules built for them, and programs with packages that are installed
for them.
"""

import functools
import json
import os
import pathlib
import shutil
import sys

from harness import BUILD, ROOT, clean_environment, expect_equal, missing, once, record, run, scratch

OLDEST, NEWEST = 8, 15
SOURCES = ROOT / "test/python"

_ABOUT = """
import json, platform, sys, sysconfig
print(json.dumps({"executable": sys.executable, "implementation": platform.python_implementation(),
                  "version": platform.python_version(), "minor": sys.version_info[:2][1], "major": sys.version_info[0],
                  "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                  "include": sysconfig.get_paths()["include"], "suffix": sysconfig.get_config_var("EXT_SUFFIX")}))
"""


class Python:
    def __init__(self, about):
        self.path = pathlib.Path(about["executable"]).resolve()
        self.version, self.minor = about["version"], about["minor"]
        self.is_free_threaded = about["free_threaded"]
        self.include, self.suffix = pathlib.Path(about["include"]), about["suffix"]
        # Distributions strip theirs: names that are not exported are gone.
        is_debians = self.path.parent.match("usr/bin")
        self.has_symbols = not is_debians
        place = "debian" if is_debians else "t" if self.is_free_threaded else ""
        self.name = "python_" + self.version.replace(".", "_") + (f"_{place}" if place else "")

    def build(self, source, name=None):
        """The folder that holds an extension module made of a C file."""
        if not (self.include / "Python.h").exists():
            missing(f"{self.path} has no headers: {self.include}/Python.h")
        source = pathlib.Path(source)
        folder = BUILD / "test/python" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        module = folder / ((name or source.stem) + self.suffix)
        if module.exists() and module.stat().st_mtime > source.stat().st_mtime:
            return folder
        made = module.with_suffix(f".{os.getpid()}")
        result = run(["gcc", "-g", "-O1", "-fPIC", "-shared", "-pthread", f"-I{self.include}", "-o", made, source])
        assert result.returncode == 0, result.stderr.decode()
        made.rename(module)
        return folder

    def install(self, package, holds=None, into="packages"):
        """
        The folder that holds a package from PyPI, or None where that can't be had; holds: what the package brings; into:
        for packages that bring the same.
        """
        folder = BUILD / "test/python" / self.name / into
        options = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "--target", folder]
        # Debian's interpreters come without pip: then that of the one that runs this finds what is for them, or that of an
        # environment.
        others = [sys.executable, *sorted((ROOT / "build").glob("*venv/bin/python3"))]
        for installer in ([self.path, *options], *([other, *options, "--python-version", self.version] for other in others)):
            if (folder / (holds or package)).exists():
                break
            if run([*installer, package], env={**clean_environment(), "PIP_NO_INPUT": "1"}).returncode:
                shutil.rmtree(folder / (holds or package), ignore_errors=True)
        return folder if (folder / (holds or package)).exists() else None


def _candidates():
    yield pathlib.Path("/usr/bin/python3")
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for minor in range(OLDEST, NEWEST + 2):
            for letter in ("", "t"):
                yield pathlib.Path(folder) / f"python3.{minor}{letter}"
    yield from sorted(pathlib.Path.home().glob(".pyenv/versions/*/bin/python3"))
    yield from sorted((BUILD / "pythons").glob("*/bin/python3*"))


def _ask_all(_):
    """What the interpreters report about themselves; the shims of version managers lead to the
    interpreter that they would start."""
    results = [run([path, "-c", _ABOUT]) for path in _candidates() if os.access(path, os.X_OK)]
    return [json.loads(result.stdout) for result in results if result.returncode == 0]


@functools.lru_cache(None)
def find_all():
    """Each CPython from 3.8 on, once. Twenty interpreters are started once a run, not for each case."""
    found = {}
    for about in once("pythons", _ask_all):
        if about["implementation"] == "CPython" and about["major"] == 3 and about["minor"] >= OLDEST:
            python = Python(about)
            found.setdefault(python.path, python)
    return sorted(found.values(), key=lambda python: (python.minor, python.name))


@functools.lru_cache(None)
def with_module(module):
    """The path of an interpreter that has it; skips the case where there is none."""
    for path in (ROOT / "build/venv/bin/python3", *(python.path for python in reversed(find_all()))):
        if os.access(path, os.X_OK) and run([path, "-c", f"import {module}"]).returncode == 0:
            return path
    return missing(f"no CPython of this machine has {module}")


def versions_not_here():
    """Versions that the agent supports and that are not here."""
    there = {python.minor for python in find_all()}
    return [f"3.{minor}" for minor in range(OLDEST, NEWEST + 1) if minor not in there]


# What loses memory through ctypes.
MALLOC = """
import ctypes
malloc = ctypes.CDLL(None).malloc
malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
"""


def lay_out(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def record_program(own, installed, command, extension=None):
    folder = lay_out(scratch("own"), own)
    packages = lay_out(scratch("env") / "lib/python3.11/site-packages", installed)
    packages.mkdir(parents=True, exist_ok=True)
    for built in extension.glob("keeper.*") if extension else ():
        shutil.copy(built, packages)
    result, output = record([sys.executable, *command], env={"PYTHONPATH": packages}, cwd=folder)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return output


def keeper():
    """The folder of the extension module test/python/imports/keeper.c."""
    python = next((python for python in find_all() if python.path == pathlib.Path(sys.executable).resolve()), None)
    return python.build(SOURCES / "imports/keeper.c") if python else missing("this interpreter is not supported")
