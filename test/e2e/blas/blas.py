#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Calls of BLAS and LAPACK with their sizes, against a library that writes down each of its calls: from C in every way in which a call
reaches a library, and what the program sees with the activity, without it and without the agent.
"""

import collections
import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
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
        assert len(expected) == 11, expected
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
    expect_equal(rows["dgesdd_", None]["flops"], None, "dgesdd")
    expect_equal({row["type"] for row in rows.values()}, {"float32", "float64", "complex128"}, "types")
    row = rows["cblas_sgemm", 55]
    expect_equal(row["gflops_per_s"], 2 * 33 * 44 * 55 / row["total_ns"], "GFLOP/s")


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
