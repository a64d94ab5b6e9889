#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Calls of BLAS and LAPACK with their sizes, against a library that writes down each of its calls: from C in every way in which a call
reaches a library, and what the program sees with the activity, without it and without the agent. In numpy and scipy the sizes follow
from the program.
"""

import collections
import functools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python, torch_python  # noqa: E402
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parent
ACTIVE = {"TORSH_PROFILER_ACTIVITIES": "cpu,blas"}


def compiled(output, source, *options):
    result = run(["gcc", "-O1", "-g", "-Wl,-rpath,$ORIGIN", *options, SOURCES / source, "-o", output])
    expect_equal(result.returncode, 0, result.stderr.decode())


@functools.lru_cache(None)
def folder():
    """With the libraries, and the program bound lazily and at once."""
    need_command("gcc")
    here = scratch("blas")
    for name, options in (("liboracle", ()), ("libwide", ("-DWIDE",)), ("libother", ())):
        compiled(here / f"{name}.so", "oracle_so.c", "-shared", "-fPIC", "-Wl,-Bsymbolic", f'-DLIBRARY="{name}.so"', *options)
    links = ("-L", here, "-loracle", "-lwide", "-pthread", "-ldl", "-lm")
    for name, options in (("lazy", ("-Wl,-z,lazy",)), ("now", ("-Wl,-z,now",))):
        compiled(here / name, "calls_of_blas.c", *options, "-Wl,--no-as-needed", *links)
    other = ("-shared", "-fPIC", "-Wl,--no-as-needed", "-L", here, "-lother")
    compiled(here / "libcaller_own.so", "caller_so.c", *other)
    compiled(here / "libcaller_lazy.so", "caller_so.c", "-Wl,-z,lazy", *other)
    compiled(here / "libcaller_deep.so", "caller_so.c", "-Wl,-z,now", *other)
    return here


def calls_of(text):
    """What the oracle wrote: by library, name, sizes and letters."""
    found = collections.Counter()
    for line in text.splitlines():
        _, library, name, *sizes, letters = line.split()
        sizes = tuple(None if int(size) < 0 else int(size) for size in sizes)
        found[(library, name, *sizes, "" if letters == "-" else letters.upper())] += 1
    return found


def calls_in(output, *arguments):
    report = read_report("blas", output, *arguments)
    expect_fits("blas", report)
    return collections.Counter({tuple(row[name] for name in ("library", "name", "m", "n", "k", "batch", "letters")): row["calls"]
                                for row in report["calls"]})


def outer(calls):
    """Without the product within the factorisation."""
    return collections.Counter({key: n for key, n in calls.items() if key[1:5] != ("dgemm_", 2, 2, 2) or key[6] != "NN"})


def both(program, way):
    """What the program printed, and its recorded and its written calls; as it runs without the agent."""
    here = folder()
    truths = scratch("truth")
    truth, written = truths / "bare", truths / "agent"
    bare = run([program, way, here], env={**clean_environment(), "ORACLE": str(truth)})
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record([program, way, here], env={**ACTIVE, "ORACLE": written})
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), f"{way}: the program")
    expected = calls_of(written.read_text())
    expect_equal(expected, calls_of(truth.read_text()), f"{way}: the library's calls")
    return output, outer(expected)


@case
def every_form_has_its_sizes():
    for name in ("lazy", "now"):
        output, expected = both(folder() / name, "all")
        assert len(expected) == 13, expected
        expect_equal(calls_in(output), expected, name)


@case
def invalid_arguments_reach_the_routine():
    output, expected = both(folder() / "now", "wrong")
    expect_equal(calls_in(output), expected, "calls")
    report = read_report("blas", output)
    row = next(row for row in report["calls"] if row["m"] is None)
    assert row["flops"] is None and row["flops_reason"], row


@case
def threads_and_children_are_told_apart():
    output, expected = both(folder() / "lazy", "threads")
    expect_equal(calls_in(output), expected, "threads")
    rows = [json.loads(line) for line in torsh("dump", output).splitlines()]
    events = [row for row in rows if row.get("event") == "library_call"]
    expect_equal(sorted(collections.Counter(row["thread"] for row in events).values()), [50] * 4, "calls of a thread")
    for name in ("lazy", "now"):
        output, expected = both(folder() / name, "first")
        expect_equal((sum(expected.values()), calls_in(output)), (2, expected), f"{name}: a call within another thread's first one")
    output, expected = both(folder() / "lazy", "fork")
    expect_equal(calls_in(output), expected, "fork")


@case
def libraries_that_are_opened_later_are_seen():
    for name in ("lazy", "now"):
        output, expected = both(folder() / name, "opened")
        expect_equal(calls_in(output), expected, name)
        expect_equal({key[0] for key in expected}, {"liboracle.so", "libother.so"}, "libraries that were called")


@case
def flops_follow_from_the_sizes():
    output, _ = both(folder() / "now", "all")
    rows = {(row["name"], row["k"]): row for row in read_report("blas", output)["calls"]}
    expect_equal(rows["dgemm_", 10]["flops"], 3 * 2 * 30 * 20 * 10, "dgemm")
    expect_equal(rows["cblas_dgemm_batch_strided", 4]["flops"], 2 * 2 * 3 * 4 * 11, "a batch")
    expect_equal(rows["cblas_zgemm_batch_strided", 4]["flops"], 8 * 2 * 3 * 4 * 12, "a complex batch")
    expect_equal(rows["ztrsm_", None]["flops"], 6 * 20 * 30 * 31 // 2 + 2 * 20 * 30 * 29 // 2, "ztrsm")
    expect_equal(rows["scipy_cblas_dgemm64_", 5000000000]["flops"], 2 * 3 * 4 * 5000000000, "64-bit sizes")
    expect_equal(rows["cublasZgemmStridedBatched", 5]["flops"], 8 * 3 * 4 * 5 * 12, "of a device")
    expect_equal(rows["cublasZgemmStridedBatched", 5]["gflops_per_s"], None, "its speed")
    expect_equal(rows["dgesdd_", None]["flops"], None, "dgesdd")
    expect_equal({row["type"] for row in rows.values()}, {"float32", "float64", "complex128"}, "types")
    row = rows["cblas_sgemm", 55]
    speed = 2 * 33 * 44 * 55 / row["total_ns"]
    assert abs(row["gflops_per_s"] - speed) <= 1e-4 * speed + 1e-6, (row, speed)


# What a program leaves behind: results to the last bit, threads, descriptors.
STATE = """
import hashlib, os
def state(*arrays):
    print(*(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays))
    print(len(os.listdir("/proc/self/task")), sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 512))
"""

NUMPY = STATE + """
import numpy as np
a, b = np.arange(600.0).reshape(30, 20), np.arange(500.0).reshape(20, 25)
s, v = np.eye(20) * 99 + 1, np.ones(20)
z = (a + 1j) @ (b - 2j)
state(a @ b, a.T @ a, a @ v, z, (a.astype("f") @ b.astype("f")), np.linalg.solve(s, b), np.linalg.cholesky(s), np.linalg.svd(a)[1],
      np.linalg.det(s), np.linalg.eigvalsh(s), *(a @ b for _ in range(4)))
"""

SCIPY = STATE + """
import numpy as np, scipy.linalg as linalg, scipy.linalg.blas as blas
a, s = np.asfortranarray(np.arange(600.0).reshape(30, 20)), np.eye(20) * 99 + 1
state(blas.dgemm(1.0, a, a, trans_a=1), blas.dtrsm(1.0, s, a, side=1), linalg.lu_factor(s)[0], linalg.cholesky(s), linalg.qr(a)[1],
      blas.sgemm(2.0, a.astype("f"), s.astype("f")), np.ones((3, 4)) @ np.ones((4, 5)))
"""


def of_python(python, program):
    """The calls of a program, by routine without the names' prefixes and suffixes; with its results as they are without the agent."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    bare = run([python, "-c", program], env={**clean_environment(), **environment})
    result, output = record([python, "-c", program], env={**ACTIVE, **environment})
    expect_equal((result.returncode, result.stdout, result.stderr), (0, bare.stdout, bare.stderr), "the program")
    report = read_report("blas", output)
    expect_fits("blas", report)
    return collections.Counter({tuple(row[name] for name in ("routine", "m", "n", "k", "letters")): row["calls"]
                                for row in report["calls"]}), report


@case
def numpys_calls_have_the_sizes_of_its_arrays():
    calls, report = of_python(torch_python(), NUMPY)
    expect_equal(calls, collections.Counter({
        ("dgemm", 30, 25, 20, "NN"): 5, ("dsyrk", None, 20, 30, "UT"): 1, ("dgemv", 20, 30, None, "T"): 1,
        ("zgemm", 30, 25, 20, "NN"): 1, ("sgemm", 30, 25, 20, "NN"): 1, ("dgesv", None, 20, 25, ""): 1,
        ("dpotrf", None, 20, None, "L"): 1, ("dgesdd", 30, 20, None, "A"): 1, ("dgetrf", 20, 20, None, ""): 1,
        ("dsyevd", None, 20, None, "NL"): 1}), "calls")
    expect_equal({row["name"] for row in report["calls"] if row["routine"] == "dgemm"}, {"scipy_cblas_dgemm64_"}, "the name in numpy's wheel")
    assert all("openblas" in row["library"] for row in report["calls"]), report["calls"]


@case
def scipys_calls_go_to_its_own_library():
    calls, report = of_python(environment_python("popular"), SCIPY)
    expect_equal(calls, collections.Counter({
        ("dgemm", 20, 20, 30, "TN"): 1, ("dtrsm", 30, 20, None, "RUNN"): 1, ("dgetrf", 20, 20, None, ""): 1,
        ("dpotrf", None, 20, None, "U"): 1, ("dgeqrf", 30, 20, None, ""): 1, ("dorgqr", 30, 30, 20, ""): 1,
        ("sgemm", 30, 20, 20, "NN"): 1, ("dgemm", 3, 5, 4, "NN"): 1}), "calls")
    expect_equal(len({row["library"] for row in report["calls"]}), 2, "libraries: scipy's and numpy's")


TORCH = """
import numpy, torch
torch.set_num_threads(1)
a = torch.ones(32, 32)
(a @ a).sum()
with torch.profiler.record_function("outer"):
    numpy.ones((30, 20)) @ numpy.ones((20, 25))
"""


@case
def torchs_own_calls_are_said_to_be_unseen():
    result, output = record([torch_python(), "-c", TORCH], env={**ACTIVE, "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(result.returncode, 0, result.stderr.decode())
    report = read_report("blas", output)
    expect_equal([(row["routine"], row["m"], row["n"], row["k"]) for row in report["calls"]], [("dgemm", 30, 25, 20)], "calls")
    assert any("calls inside libtorch_cpu.so are not seen" in note for note in report["notes"]), report["notes"]
    trace = json.loads(exported(output, "trace.json", "--format", "chrome").read_text())["traceEvents"]
    call = next(event for event in trace if event.get("cat") == "library_call")
    outer = next(event for event in trace if event.get("name") == "outer" and event.get("ph") == "X")
    expect_equal(({name: call["args"][name] for name in ("m", "n", "k", "FLOPs", "Type")}, call["name"]),
                 ({"m": 30, "n": 25, "k": 20, "FLOPs": 2 * 30 * 25 * 20, "Type": "float64"}, "scipy_cblas_dgemm64_"), "the slice")
    assert "<module>" in call["args"]["Call stack"], call
    expect_equal(call["tid"], outer["tid"], "its thread")
    assert outer["ts"] <= call["ts"] and call["ts"] + call["dur"] <= outer["ts"] + outer["dur"], (outer, call)
    trace = exported(output, "trace.pftrace", "--format", "perfetto").read_bytes()
    assert b"library_call" in trace and b"scipy_cblas_dgemm64_" in trace


@case
def nothing_is_redirected_unless_requested():
    here = folder()
    written = scratch("truth") / "off"
    result, output = record([here / "now", "all"], env={"ORACLE": written})
    expect_equal(result.returncode, 0, result.stderr.decode())
    assert calls_of(written.read_text())
    expect_equal(read_report("blas", output)["calls"], [], "calls without the activity")
    assert "No calls" in torsh("blas", output), "text without calls"
    exported = run(["nm", "-D", "--defined-only", AGENT]).stdout.decode()
    assert not [line for line in exported.splitlines() if "gemm" in line or "getrf" in line], exported


main()
