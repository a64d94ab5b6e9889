#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The memory of devices where CUPTI is refused or another tool measures, on the simulated CUDA: seen by the driver's entry points,
it is what the simulation's own log has, and what the same run with CUPTI has, at the same lines.
"""

import collections
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import cuda_python, of_kind, record_simulated  # noqa: E402
from device_memory import (ALLOCATORS, GRANULE, KIB, LEAKING, allocator_variables, by_function, compare,  # noqa: E402
                           expected_ways, leaked, leaks_of, lines_of, peak_of, program, replay)

ENTRIES = PROGRAMS / "cuda_entries"
HOW = ("symbol", "default", "dlsym", "proc", "own", "ptsz")
N_BYTES = 4096  # of cuda_entries
REFUSED = "cuptiSubscribe_v2=999@1"
PASSIVE = {"NSYS_PROFILING_SESSION_ID": "1"}


def record(command, faults="", **more):
    return record_simulated(command, faults=",".join(filter(None, (REFUSED, faults))), **more)


def mode_of(output):
    (process,) = read_report("kernels", output, "--limit", "0")["processes"]
    return process["mode"]


@case
def every_way_to_get_memory_is_recorded_with_its_line_without_cupti():
    for env, mode in (({}, "EVENTS"), (PASSIVE, "HOST_ONLY")):
        output, truth = record([program(), "ways"], env=env)
        expect_equal(mode_of(output), mode, "mode")
        expect_equal(peak_of(output, "cuda:0")["seen_by"], "entry points", "seen by")
        assert b"private tables" in run([TORSH, "leaks", output, "--device", "cuda:0"]).stdout
        places = compare(output, truth)
        expect_equal(set(places), {"cuda:0", "managed", "pinned", "registered", "imported"}, "places")
        found = collections.Counter()
        for name in places:
            found.update(by_function(leaks_of(output, name)["leaks"]))
        expect_equal(dict(found), expected_ways(), "bytes left by each way")


@case
def each_way_to_the_entry_points_of_memory_is_seen():
    for how in HOW:
        output, truth = record([ENTRIES, how, 3])
        for name, peak_bytes, left in (("cuda:0", 5 * N_BYTES, 2 * N_BYTES), ("managed", 5 * N_BYTES, 0),
                                       ("pinned", 3 * N_BYTES, N_BYTES)):
            leaks, peak = leaks_of(output, name), peak_of(output, name)
            place = replay(truth)[name]
            expect_equal((peak["peak_bytes"], place.peak_bytes), (peak_bytes, peak_bytes), f"peak of {name} by {how}")
            # What was left ended with the primary context.
            expect_equal((leaks["with_context"]["bytes"], leaks["leaked_bytes"]), (left, left), f"left of {name} by {how}")
            (device,) = leaks["devices"]
            expect_equal((device["allocs"], device["current_bytes"]), (place.allocs, 0), f"allocations in {name} by {how}")


@case
def memory_of_two_devices_is_distinguished_without_cupti():
    output, truth = record([program(), "ways"], devices=2)
    places = compare(output, truth)
    assert {"cuda:0", "cuda:1"} <= set(places), set(places)
    expect_equal(set(by_function(leaks_of(output, "cuda:1")["leaks"])),
                 {"cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"}, "ways of the second device")


@case
def random_memory_is_recorded_exactly_without_cupti():
    for seed in (1, 2, 3):
        output, truth = record([program(), "random", seed])
        compare(output, truth)


@case
def memory_of_many_threads_ends_as_it_should_without_cupti():
    output, truth = record([program(), "threads", 1])
    for name, place in replay(truth).items():
        leaks, peak = leaks_of(output, name), peak_of(output, name)
        expect_equal((leaks["leaked_bytes"], leaks["leaked_blocks"]), (place.bytes, len(place.live)), f"live in {name}")
        assert 0.9 * place.peak_bytes <= peak["peak_bytes"] <= place.peak_bytes, (name, peak["peak_bytes"], place.peak_bytes)


@case
def physical_memory_counts_until_nothing_shows_it_without_cupti():
    output, truth = record([program(), "mappings"])
    compare(output, truth)
    expect_equal(leaks_of(output, "cuda:0")["leaked_bytes"], GRANULE, "mapped at the end")


@case
def memory_that_ends_with_its_context_is_a_leak_without_cupti():
    output, truth = record([program(), "context"])
    place = replay(truth)["cuda:0"]
    leaks, peak = leaks_of(output, "cuda:0"), peak_of(output, "cuda:0")
    expect_equal(leaks["with_context"], {"bytes": 300 * KIB, "blocks": 1}, "ended with the context")
    (device,) = leaks["devices"]
    expect_equal((device["current_bytes"], device["unknown_frees"]), (place.bytes, 0), "alive")
    expect_equal(peak["peak_bytes"], place.peak_bytes, "peak")
    expect_equal(leaks_of(output, "pinned")["with_context"], {"bytes": 50 * KIB, "blocks": 1}, "of the host")


@case
def a_context_that_is_not_destroyed_keeps_its_memory():
    output, _ = record([program(), "context"], faults="cuCtxDestroy_v2=201", expect=1)
    leaks = leaks_of(output, "cuda:0")
    expect_equal((leaks["with_context"]["blocks"], leaks["leaked_bytes"]), (0, 300 * KIB), "kept")
    output, truth = record([program(), "release"])
    leaks = leaks_of(output, "cuda:0")
    expect_equal((leaks["with_context"]["blocks"], leaks["leaked_bytes"]), (0, 70 * KIB), "kept by whoever holds it, too")
    compare(output, truth)


@case
def frees_and_allocations_that_fail_change_nothing_without_cupti():
    output, truth = record([program(), "mistakes"])
    leaks = leaks_of(output, "cuda:0")
    expect_equal(leaks["leaked_bytes"], 100 * KIB, "leaked")
    expect_equal(peak_of(output, "cuda:0")["peak_bytes"], replay(truth)["cuda:0"].peak_bytes, "peak")
    (device,) = leaks["devices"]
    expect_equal((device["failed_frees"], device["unknown_frees"], device["allocs"]), (4, 0, 2), "frees, allocations")
    for name in ("cuMemAlloc_v2", "cudaMalloc"):
        output, truth = record([program(), "ways"], faults=f"{name}=2@1", expect=1)
        found = [event for event in events(output) if event["event"] == "device_alloc"]
        expect_equal(len(found), len(of_kind(truth, "alloc", "create", "import")), "allocations")


@case
def an_exit_and_a_fork_leave_memory_as_it_was_without_cupti():
    output, _ = record([program(), "exit"], expect=3)
    expect_equal(leaks_of(output, "cuda:0")["leaked_bytes"], 70 * KIB, "leaked")
    output, truth = record([program(), "fork"])
    report = leaks_of(output, "cuda:0")
    expect_equal(report["leaked_bytes"], replay(truth)["cuda:0"].bytes, "leaked")
    expect_equal([process["leaked_bytes"] for process in report["processes"]], [70 * KIB, 0], "by process")


@case
def the_drivers_count_is_queried_at_the_end_but_not_where_another_tool_measures():
    output, _ = record([program(), "ways"], memory="1G")
    (device,) = leaks_of(output, "cuda:0")["devices"]
    driver = device["driver"]
    expect_equal((driver["total_bytes"], driver["asked_by"]), (1 << 30, "agent"), "total")
    assert 0 <= driver["others_bytes"] < 2 << 20, driver
    output, _ = record([program(), "ways"], memory="1G", env=PASSIVE)
    assert not [event for event in events(output) if event["event"] == "device_room"]


@case
def what_memory_is_not_wanted_of_is_not_recorded_without_cupti():
    output, _ = record([program(), "ways"], env={"TORSH_PROFILER_PROFILE_MEMORY": "0"})
    assert not [event for event in events(output) if event["event"] in ("device_alloc", "device_free")]
    output, truth = record([program(), "ways"], env={"TORSH_PROFILER_WITH_STACK": "0"})
    compare(output, truth)


def shown(frame):
    """The driver's own function is in stacks of CUPTI alone, which was called in it; and the runtime's in another line."""
    library = pathlib.Path(frame.get("module") or "").name
    if library.startswith("libcuda.so"):
        return []
    return [(frame["function"], *(() if library.startswith("libcudart") else (frame["file"], frame["line"])))]


def holders(report, key):
    """What holds memory, without what differs between two runs: addresses and times."""
    return collections.Counter(
        (holder["bytes"], holder["blocks"], holder.get("what"), holder["operator"], holder["module"],
         tuple(itertools.chain.from_iterable(map(shown, holder["stack"]))))
        for holder in report[key])


def reports_of(output, truth):
    return leaks_of(output, "cuda:0"), peak_of(output, "cuda:0"), replay(truth)["cuda:0"], mode_of(output)


@needs("torch")
def at_the_lines_where_it_is_with_cupti(allocator):
    leaks, peak, place, mode = reports_of(*record([cuda_python(), "-c", LEAKING, scratch("printed") / "numbers"],
                                                  env=allocator_variables(allocator)))
    expect_equal(mode, "EVENTS", "mode")
    (device,) = leaks["devices"]
    expect_equal((device["current_bytes"], peak["peak_bytes"]), (place.bytes, place.peak_bytes), f"against the log, {allocator}")
    expect_equal(peak["attributed_bytes"], place.peak_bytes, "attributed")
    expect_equal(lines_of(leaks, "leaks", "<string>")["leak", 5], 3 * (3 << 20), "the leak")
    output, truth, _ = leaked(allocator)
    same_leaks, same_peak, _, mode = reports_of(output, truth)
    expect_equal(mode, "CUPTI", "mode")
    expect_equal(holders(leaks, "leaks"), holders(same_leaks, "leaks"), f"leaks as with CUPTI, {allocator}")
    expect_equal(holders(peak, "holders"), holders(same_peak, "holders"), f"holders at the peak as with CUPTI, {allocator}")
    expect_equal(device["framework"], same_leaks["devices"][0]["framework"], "what PyTorch reports")


for name in ALLOCATORS:
    add = add_case if name == "plain" else add_long_case
    add(f"pytorchs_{name}_memory_without_cupti_is_at_the_lines_where_it_is_with_it", at_the_lines_where_it_is_with_cupti, name)


if __name__ == "__main__":
    main()
