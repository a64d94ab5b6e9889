#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Blocks and bytes of each Python line, against tracemalloc in the same run and against known
sizes: Python objects, numpy arrays, PyTorch tensors. To the byte."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
from environments import torch_python  # noqa: E402


def record_truth(python, script, **env):
    """The recording of a script that writes JSON to its first argument, and what it wrote."""
    truth = scratch("truth") / "sums.json"
    result, output = record([python, script, truth], env={"OPENBLAS_NUM_THREADS": "1", **env})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    return output, json.loads(truth.read_text(), object_hook=lambda sums: {
        int(key) if key.isdigit() else key: value for key, value in sums.items()})


def sums_of_lines(entries, script, is_wanted):
    """{line: [blocks, bytes]} of the entries, by the innermost frame of the script."""
    sums = {}
    for entry in filter(is_wanted, entries):
        frame = next((frame for frame in entry["stack"] if frame.get("language") == "python"), None)
        if frame and frame["file"] == str(script):
            blocks, size = sums.get(frame["line"], (0, 0))
            sums[frame["line"]] = [blocks + entry["blocks"], size + entry["bytes"]]
    return sums


def expect_sums(found, expected, what):
    wrong = sorted(line for line in {**found, **expected} if found.get(line) != expected.get(line))
    assert not wrong, f"{what}: " + "; ".join(
        f"line {line}: {found.get(line)}, expected {expected.get(line)}" for line in wrong)
    print(f"{what}: {sum(n for n, _ in found.values())} blocks of {len(found)} lines")


TABLES_OF_TRACEMALLOC = ("tracemalloc_add_trace", "traceback_new", "_Py_hashtable_set", "_Py_hashtable_new")


def is_not_of_tracemalloc(entry):
    """It keeps what it sees in tables of its own."""
    return not any(name.startswith(TABLES_OF_TRACEMALLOC) for name in functions(entry))


def check_objects(python):
    script = pythons.SOURCES / "traced_objects.py"
    output, truth = record_truth(python.path, script, TORSH_PROFILER_PYTHON_ALLOCATORS="1")
    report = leaks(output, "--depth", "0", "--no-default-suppressions")
    check_counts(report["events"])
    found = sums_of_lines(report["leaks"], script, is_not_of_tracemalloc)
    # Before these lines tracemalloc hasn't started, behind them the script looks at what it did.
    start, end = map(script.read_text().splitlines().index, ("tracemalloc.start()", "def seen():"))
    found, truth = ({line: each for line, each in sums.items() if start + 1 < line <= end} for sums in (found, truth))
    expect_sums(found, truth, f"objects of CPython {python.version}")


for objects_python in pythons.find_all():
    if objects_python.has_symbols:
        add_case(f"objects_of_{objects_python.name}_as_tracemalloc_says", check_objects, objects_python)


def is_of_numpy(entry):
    """Headers of arrays and their shapes come from Python's allocators, the data from numpy itself."""
    return "_multiarray_umath" in (entry["stack"][0]["module"] or "")


@case
def arrays_of_numpy_as_tracemalloc_has_them():
    python, script = pythons.with_module("numpy"), pythons.SOURCES / "arrays.py"
    output, truth = record_truth(python, script)
    expect_sums(sums_of_lines(leaks(output, "--depth", "0", "--no-default-suppressions")["leaks"], script, is_of_numpy),
                truth["end"], "numpy, at the end")
    expect_sums(sums_of_lines(peak(output, "--depth", "0")["holders"], script, is_of_numpy), truth["peak"],
                "numpy, at the peak")


@case
@needs("torch")
def tensors_of_pytorch_as_they_report():
    python, script = torch_python(), pythons.SOURCES / "tensors.py"
    output, truth = record_truth(python, script)
    # What importing PyTorch keeps is suppressed, or there would be a hundred thousand stacks of it.
    report = leaks(output, "--depth", "0", "--no-lines")
    check_counts(report["events"])
    found = sums_of_script(report["leaks"], script)
    imported = script.read_text().splitlines().index("import torch") + 1
    expect_sums({line: sums for line, sums in found.items() if line != imported}, truth, "tensors")


def sums_of_script(entries, script):
    """Storages by the innermost line of the script itself: between it and the storage may be lines of PyTorch."""
    sums = {}
    for entry in entries:
        line = next((frame["line"] for frame in entry["stack"] if frame.get("file") == str(script)), None)
        if line and any("alloc_cpu" in name for name in functions(entry)[:4]):
            blocks, size = sums.get(line, (0, 0))
            sums[line] = [blocks + entry["blocks"], size + entry["bytes"]]
    return sums


main()
