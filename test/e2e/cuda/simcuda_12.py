#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The simulated CUDA 12 beside CUDA 13: programs that were compiled with its headers do the same as with those of 13, each finds
its own libraries, and the agent reads the records of its CUPTI. PyTorch's builds with CUDA 12 are tested as those with 13 are:
make test TORCH=2.3.1 NEEDS=torch.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import LIBRARIES, duration_ns, of_kind, read_truth, record_simulated, simulate, use_cuda_12  # noqa: E402

KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
LAUNCHES, REPLAYS = 50, 3
ASK = """
import ctypes, sys
shown = ctypes.c_int()
for version in sys.argv[1:]:
    ctypes.CDLL(f"libcudart.so.{version}").cudaRuntimeGetVersion(ctypes.byref(shown))
    print(shown.value)
    ctypes.CDLL(f"libcupti.so.{version}").cuptiGetVersion(ctypes.byref(shown))
    print(shown.value)
"""


def program(name, version):
    use_cuda_12()
    return BUILD / "simcuda/programs" / ("12" if version == 12 else "") / name


def ran(name, version, *arguments):
    """What a program printed, and what it did."""
    path = scratch() / "truth"
    result = simulate([program(name, version), *map(str, arguments)], path, clock="virtual")
    expect_equal(result.returncode, 0, result.stderr.decode())
    truth = read_truth(path)
    expect_equal(of_kind(truth, "violation", "unsupported"), [], "complaints")
    return result.stdout.decode().splitlines(), truth


def work(truth):
    return [(line["kind"], line.get("name"), line.get("bytes"), line.get("memory"), line.get("node"))
            for line in of_kind(truth, "alloc", "free", "graph", *KINDS)]


@case
def a_program_does_the_same_with_cuda_12_as_with_13():
    for name, arguments in (("toolkit", [LAUNCHES]), ("memory", ["ways"]), ("memory", ["context"])):
        (shown_12, truth_12), (shown_13, truth_13) = (ran(name, version, *arguments) for version in (12, 13))
        expect_equal(shown_12[1:], shown_13[1:], f"output of {name}")
        assert work(truth_12), name
        expect_equal(work(truth_12), work(truth_13), f"what {name} does")


@case
def a_program_has_the_version_of_its_headers():
    for version in (12, 13):
        shown, truth = ran("toolkit", version, LAUNCHES)
        first = shown[0].replace(",", "").split()
        expect_equal((first[1], int(first[1]) // 1000), (first[3], version), "its version, and its headers")
        expect_equal(shown[1:], ["1: Simulated CUDA device, 9.0, 132 multiprocessors, 49152 bytes shared, 232448 at most, "
                                f"{16 << 30} bytes", "of 512 bytes 288 came back, 224 were left alone", "prefetched", "graph of 4 nodes, 1 and 1 before", "advised"], "the rest")
        expect_equal(len(of_kind(truth, "kernel")), LAUNCHES + 2 * REPLAYS, "kernels")


@case
def both_versions_are_there_at_once():
    use_cuda_12()
    shown = simulate([sys.executable, "-c", ASK, "12", "13"]).stdout.decode().split()
    expect_equal([int(number) // 1000 for number in shown[::2]], [12, 13], "runtimes")
    # CUPTI counted its versions until 13.
    assert 18 <= int(shown[1]) < 100 and int(shown[3]) >= 130000, shown
    shown = simulate([sys.executable, "-c", ASK, "12"], runtime_version=12080, cupti_version=26).stdout.decode().split()
    expect_equal(shown, ["12080", "26"], "as they are set")


@case
def the_rules_of_cupti_hold_in_12():
    use_cuda_12()
    for rules in ("cupti_contract", "cupti_callbacks"):
        result = run([program(rules, 12)], clean_environment())
        expect_equal(result.returncode, 0, result.stdout.decode()[-3000:])


@case
def every_symbol_of_12_has_its_version():
    use_cuda_12()
    for name in ("libcudart.so.12", "libcupti.so.12"):
        listed = run(["nm", "-D", "--defined-only", LIBRARIES / name]).stdout.decode().splitlines()
        symbols = [line.split()[-1] for line in listed if " T " in line]
        assert len(symbols) > 50, name
        expect_equal([symbol for symbol in symbols if not symbol.endswith(f"@@{name}")], [], f"without a version in {name}")


def expect_all(found, truth):
    """Every operation once, with its name, bytes and nanoseconds."""
    key = lambda line: (line["correlation"], line["node"])  # noqa: E731
    ours = {key(event): event for event in found if event["event"] in KINDS.values()}
    expected = {key(line): line for line in of_kind(truth, *KINDS)}
    expect_equal(of_kind(truth, "violation"), [], "violations")
    expect_equal(sorted(ours), sorted(expected), "operations")
    for at, line in expected.items():
        event = ours[at]
        expect_equal((event["event"], event["duration_ns"]), (KINDS[line["kind"]], duration_ns(line)), "what, and how long")
        expect_equal([event[name] for name in ("device", "context", "stream", "graph")],
                     [line[name] for name in ("device", "context", "stream", "graph")], "where")
        if line["kind"] == "kernel":
            expect_equal((event["name"], [event[f"grid_{axis}"] for axis in "xyz"], event["dynamic_shared_bytes"]),
                         (line["name"], line["grid"], line["shared"]), "kernel")
        else:
            expect_equal(event["bytes"], line["bytes"], "bytes")


@case
def a_program_of_cuda_12_is_recorded_exactly():
    output, truth = record_simulated([program("toolkit", 12), LAUNCHES], kernel_ns=12345)
    found = events(output)
    expect_all(found, truth)
    expect_equal(len(of_kind(truth, "kernel")), LAUNCHES + 2 * REPLAYS, "kernels")
    report = read_report("kernels", output, "--limit", "0")
    expect_equal([(process["mode"], process["dropped"], process["invalid"]) for process in report["processes"]],
                 [("CUPTI", 0, 0)], "mode")
    (kernel,) = report["kernels"]
    expect_equal((kernel["symbol"], kernel["calls"], kernel["total_ns"]),
                 ("_Z5scalePffi", LAUNCHES + 2 * REPLAYS, 12345 * (LAUNCHES + 2 * REPLAYS)), "torsh kernels")
    peak = read_report("peak", output, "--device", "cuda:0")
    expect_equal(peak["peak_bytes"], 1 << 20, "torsh peak")


@case
def the_cupti_of_the_programs_own_cuda_is_opened():
    called = collections.defaultdict(set)
    for version in (12, 13):
        path, output = scratch("truth") / "truth", scratch()
        # Nothing of a version is preloaded, and all of it is where the loader looks.
        env = {**agent_environment(output), "LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_LOG": str(path)}
        result = run([program("toolkit", version), LAUNCHES], env)
        expect_equal(result.returncode, 0, result.stderr.decode())
        truth = read_truth(path)
        expect_all(events(output), truth)
        called[version] = {line["name"] for line in of_kind(truth, "calls") if line["name"].startswith("cuptiSubscribe")}
    # The second form came with 13.
    expect_equal(dict(called), {12: {"cuptiSubscribe"}, 13: {"cuptiSubscribe_v2"}}, "what was called")


if __name__ == "__main__":
    main()
