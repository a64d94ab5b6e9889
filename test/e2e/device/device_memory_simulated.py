#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The memory of devices, on the simulated CUDA: what is alive and what was the peak, of each place where memory lies, against the
simulation's own log; leaks at their lines; what frees that fail, contexts that end and forks do to it.
"""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import of_kind, record_simulated  # noqa: E402
from device_memory import (GRANULE, KIB, by_function, compare, expected_ways, leaked, leaks_of, lines_of, peak_of,  # noqa: E402
                           program, replay)


@case
def every_way_to_get_simulated_memory_is_recorded_with_its_line():
    output, truth = record_simulated([program(), "ways"])
    expect_equal(of_kind(truth, "unsupported"), [], "calls that are not simulated")
    places = compare(output, truth)
    expect_equal(set(places), {"cuda:0", "managed", "pinned", "registered", "imported"}, "places")
    found = collections.Counter()
    for name in places:
        leaks = leaks_of(output, name)["leaks"]
        expect_equal({leak["stack"][2]["function"][:5] for leak in leaks}, {"leak_"}, "two frames below the API's function")
        found.update(by_function(leaks))
    expect_equal(dict(found), expected_ways(), "bytes left by each way")
    expect_equal(peak_of(output, "cuda:0")["seen_by"], "CUPTI", "seen by")


@case
def simulated_memory_of_two_devices_is_distinguished():
    output, truth = record_simulated([program(), "ways"], devices=2)
    places = compare(output, truth)
    assert {"cuda:0", "cuda:1"} <= set(places), set(places)
    # The pool is the second device's, and the stream the first one's.
    expect_equal(set(by_function(leaks_of(output, "cuda:1")["leaks"])),
                 {"cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"}, "ways of the second device")


@case
def calls_of_the_driver_within_the_runtimes_are_reported_once_whatever_their_numbers():
    for shared in (0, 1):
        output, truth = record_simulated([program(), "ways"], shared_correlation=shared)
        compare(output, truth)


@case
def random_simulated_memory_is_recorded_exactly():
    for seed in (1, 2, 3):
        output, truth = record_simulated([program(), "random", seed])
        compare(output, truth)


@case
def simulated_memory_of_many_threads_ends_as_it_should():
    output, truth = record_simulated([program(), "threads", 1])
    for name, place in replay(truth).items():
        leaks, peak = leaks_of(output, name), peak_of(output, name)
        expect_equal((leaks["leaked_bytes"], leaks["leaked_blocks"]), (place.bytes, len(place.live)), f"live in {name}")
        # Frees are recorded before the call, allocations after it: the sum is never above the
        # log's.
        assert 0.9 * place.peak_bytes <= peak["peak_bytes"] <= place.peak_bytes, (name, peak["peak_bytes"], place.peak_bytes)


@case
def physical_memory_counts_until_nothing_shows_it():
    output, truth = record_simulated([program(), "mappings"])
    compare(output, truth)
    expect_equal(leaks_of(output, "cuda:0")["leaked_bytes"], GRANULE, "mapped at the end")
    expect_equal(peak_of(output, "cuda:0")["peak_bytes"], 4 * GRANULE, "peak")


@case
def memory_that_ends_with_its_context_is_a_leak_and_reported_as_gone():
    output, truth = record_simulated([program(), "context"])
    place = replay(truth)["cuda:0"]
    leaks, peak = leaks_of(output, "cuda:0"), peak_of(output, "cuda:0")
    expect_equal(leaks["with_context"], {"bytes": 300 * KIB, "blocks": 1}, "ended with the context")
    expect_equal(leaks["leaked_bytes"], 300 * KIB + place.bytes, "leaked")
    (device,) = leaks["devices"]
    expect_equal(device["current_bytes"], place.bytes, "alive")
    expect_equal(peak["peak_bytes"], place.peak_bytes, "peak")
    expect_equal(leaks_of(output, "pinned")["with_context"], {"bytes": 50 * KIB, "blocks": 1}, "of the host")


@case
def frees_and_allocations_that_fail_change_nothing():
    output, truth = record_simulated([program(), "mistakes"])
    place = replay(truth)["cuda:0"]
    leaks = leaks_of(output, "cuda:0")
    expect_equal((leaks["leaked_bytes"], place.bytes), (100 * KIB, 100 * KIB), "leaked")
    expect_equal(peak_of(output, "cuda:0")["peak_bytes"], place.peak_bytes, "peak")
    (device,) = leaks["devices"]
    expect_equal((device["failed_frees"], device["unknown_frees"], device["allocs"]), (4, 0, 2), "frees, allocations")


@case
def simulated_memory_that_runs_out_is_not_recorded():
    for name in ("cuMemAlloc_v2", "cudaMalloc"):
        output, truth = record_simulated([program(), "ways"], faults=f"{name}=2@1", expect=1)
        found = [event for event in events(output) if event["event"] == "device_alloc"]
        expect_equal(len(found), len(of_kind(truth, "alloc", "create", "import")), "allocations")


@case
def an_exit_in_the_middle_and_a_fork_leave_simulated_memory_as_it_was():
    output, _ = record_simulated([program(), "exit"], expect=3)
    # The simulation's log ends before; the program prints what it left.
    expect_equal(leaks_of(output, "cuda:0")["leaked_bytes"], 70 * KIB, "leaked")
    output, truth = record_simulated([program(), "fork"])
    report = leaks_of(output, "cuda:0")
    expect_equal(report["leaked_bytes"], replay(truth)["cuda:0"].bytes, "leaked")
    expect_equal([process["leaked_bytes"] for process in report["processes"]], [70 * KIB, 0], "by process")


@case
def the_drivers_own_count_at_the_end_explains_the_difference():
    output, truth = record_simulated([program(), "ways"], memory="1G")
    (device,) = leaks_of(output, "cuda:0")["devices"]
    driver = device["driver"]
    expect_equal((driver["total_bytes"], driver["asked_by"]), (1 << 30, "agent"), "total")
    expect_equal(driver["others_bytes"], driver["used_bytes"] - device["current_bytes"], "of others")
    # Sizes are rounded up to 512 bytes there, and the pool keeps what was freed.
    assert 0 <= driver["others_bytes"] < 2 << 20, driver
    expect_equal((driver["live_bytes"], driver["reason"]), (device["current_bytes"], None), "at the end")


@case
def the_drivers_pool_is_shown_beside_what_was_got_from_it():
    output, truth = record_simulated([program(), "ways"])
    used = collections.Counter()
    for line in of_kind(truth, "alloc", "free"):
        rounded = -(-line["bytes"] // 512) * 512
        used[line["pool"]] += rounded if line["kind"] == "alloc" else -rounded
    del used[0]
    (device,) = leaks_of(output, "cuda:0")["devices"]
    driver = device["driver"]
    # The device's own pool, not that which the program made.
    assert driver["pools"]["used_bytes"] in used.values(), (driver, used)
    assert driver["pools"]["used_high_bytes"] >= driver["pools"]["used_bytes"] > 0, driver
    assert driver["pools"]["reserved_high_bytes"] >= driver["pools"]["reserved_bytes"] >= driver["pools"]["used_bytes"], driver
    assert "the driver's pool had reserved " in torsh("peak", output, "--device", "cuda:0")
    output, _ = record_simulated([program(), "context"])
    expect_equal(peak_of(output, "cuda:0")["driver"]["pools"], None, "of a program without pools")


@case
def an_unknown_device_is_refused_with_those_that_there_are():
    output, _ = record_simulated([program(), "ways"])
    for command in ("leaks", "peak"):
        result = run([TORSH, command, output, "--device", "cuda:7"])
        expect_equal(result.returncode, 2, "status")
        for name in ("cuda:7", "cuda:0", "managed", "pinned", "registered", "imported"):
            assert name in result.stderr.decode(), result.stderr


@case
def without_memory_none_of_devices_is_recorded():
    output, _ = record_simulated([program(), "ways"], env={"TORSH_PROFILER_PROFILE_MEMORY": "0"})
    assert not [event for event in events(output) if event["event"].startswith("device_") and "alloc" in event["event"]]
    result = run([TORSH, "leaks", output, "--device", "cuda:0"])
    expect_equal(result.returncode, 2, "status")
    assert b"no memory of devices" in result.stderr, result.stderr


@case
def without_stacks_simulated_memory_is_counted():
    output, truth = record_simulated([program(), "ways"], env={"TORSH_PROFILER_WITH_STACK": "0"})
    compare(output, truth)


def joint_by_hand(found):
    """The largest sum of heap and devices at any change of either, from the dump of all events."""
    heap, devices = {}, {}
    best = bytes_now = 0
    pending = {}
    for event in found:
        kind = event["event"]
        if kind == "alloc":
            old = pending.pop(event["thread"], 0) if event["entry"] == 2 else 0
            bytes_now += event["size"] - old - heap.get(event["address"], 0)
            heap[event["address"]] = event["size"]
        elif kind == "free":
            bytes_now -= heap.pop(event["address"], 0)
        elif kind == "realloc_begin":
            pending[event["thread"]] = heap.pop(event["address"], 0)
        elif kind == "realloc_failed":
            heap[event["address"]] = pending.pop(event["thread"], 0)
        elif kind == "device_alloc" and event["kind"] not in (4, 7) and not event["flags"] & 2:
            devices[event["address"]] = event["bytes"]
            bytes_now += event["bytes"]
        elif kind == "device_free":
            bytes_now -= devices.pop(event["address"], 0)
        best = max(best, bytes_now)
    return best


@case
def the_joint_peak_of_heap_and_simulated_devices_is_exact():
    for seed in (4, 5):
        output, _ = record_simulated([program(), "random", seed], env={"TORSH_PROFILER_RECORD": "full"})
        report = peak_of(output, "all")
        expect_equal(report["peak_bytes"], report["joint"]["bytes"], "bytes")
        parts = report["joint"]["heap_bytes"] + sum(device["bytes"] for device in report["joint"]["devices"])
        expect_equal(parts, report["peak_bytes"], "parts")
        expect_equal(report["attributed_bytes"], parts - report["joint"]["heap_bytes"], "attributed to devices")
        expect_equal(report["peak_bytes"], joint_by_hand(everything(output)), "against all events")


def everything(output):
    """Heap and devices in the order of time: of equal times those of the heap first, as they were folded."""
    found = [json.loads(line) for line in torsh("dump", output, "--only", "events,timeline").splitlines()]
    return sorted(found, key=lambda event: event["at_ns"])


@case
@needs("torch")
def pytorchs_memory_on_simulated_cuda_is_at_its_lines():
    output, truth, said_by = leaked("plain")
    reserved, peak_reserved = map(int, said_by.read_text().split())
    place = replay(truth)["cuda:0"]
    leaks, peak = leaks_of(output, "cuda:0"), peak_of(output, "cuda:0")
    (device,) = leaks["devices"]
    expect_equal(device["current_bytes"], place.bytes, "alive")
    expect_equal(reserved, device["framework"]["reserved_bytes"], "reserved, as PyTorch reports")
    expect_equal(peak["peak_bytes"], place.peak_bytes, "peak")
    expect_equal(peak["attributed_bytes"], place.peak_bytes, "attributed")
    expect_equal(peak["peak_bytes"], peak_reserved + peak["framework"]["unmanaged_bytes"], "reserved at the peak, as PyTorch reports")
    expect_equal(lines_of(leaks, "leaks", "<string>")["leak", 5], 3 * (3 << 20), "the leak")
    (cache,) = leaks["bookkeeping"]["by"]
    expect_equal(leaks["leaked_bytes"] + cache["bytes"] + leaks["suppressed"]["bytes"], place.bytes, "leaks and cache")
    expect_equal(lines_of(peak, "holders", "<string>")["<module>", 13], 50 << 20, "the largest at the peak")
    (leak,) = [leak for leak in leaks["leaks"] if leak["bytes"] == 3 * (3 << 20)]
    expect_equal((leak["what"], leak["blocks"], leak["operator"]), ("tensors", 3, "aten::empty"), "what, operator")


@case
@needs("torch")
def pytorchs_expandable_segments_on_simulated_cuda_add_up():
    output, truth, _ = leaked("expandable")
    place = replay(truth)["cuda:0"]
    assert of_kind(truth, "create"), "no physical memory was made"
    leaks, peak = leaks_of(output, "cuda:0"), peak_of(output, "cuda:0")
    (device,) = leaks["devices"]
    expect_equal(device["current_bytes"], place.bytes, "alive")
    expect_equal((peak["peak_bytes"], peak["attributed_bytes"]), (place.peak_bytes, place.peak_bytes), "peak")
    expect_equal(lines_of(leaks, "leaks", "<string>")["leak", 5], 3 * (3 << 20), "the leak")


@case
@needs("torch")
def pytorchs_asynchronous_allocator_on_simulated_cuda_adds_up():
    output, truth, _ = leaked("asynchronous")
    place = replay(truth)["cuda:0"]
    leaks, peak = leaks_of(output, "cuda:0"), peak_of(output, "cuda:0")
    (device,) = leaks["devices"]
    expect_equal(device["current_bytes"], place.bytes, "alive")
    expect_equal(peak["peak_bytes"], place.peak_bytes, "peak")
    expect_equal(lines_of(leaks, "leaks", "<string>")["leak", 5], 3 * (3 << 20), "the leak")


if __name__ == "__main__":
    main()
