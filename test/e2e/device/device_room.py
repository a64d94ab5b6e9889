#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The driver's report of a device's memory at a new peak and at a refused allocation, on the
simulated CUDA: to the byte what the simulation's log has for that moment, with CUPTI and through
the driver's entry points."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import cuda_python, need_simcuda, of_kind, record_simulated  # noqa: E402
from device_memory import ARRAY, DEVICE, GRANULE, leaks_of, peak_of, replay  # noqa: E402

MIB = 1 << 20
TOTAL, OTHERS = 2 << 30, 300 * MIB
REFUSED = "cuptiSubscribe_v2=999@1"
PASSIVE = {"NSYS_PROFILING_SESSION_ID": "1"}
AT_END, BY_PROGRAM, AT_HIGH = 0, 1, 2  # enum room_asked

# A training that runs out of memory: what the cache has makes room the first time, nothing the second.
RUNNING_OUT = """
import sys, torch
MIB = 1 << 20
def take(n):
    return torch.empty(n * MIB, dtype=torch.uint8, device="cuda")
held = take(300)
cached = take(400)
del cached
more = take(500)
try:
    take(800)
except torch.cuda.OutOfMemoryError:
    print("out", file=open(sys.argv[1], "a"))
last = take(20)
torch.cuda.synchronize()
"""


def record(command, faults="", **more):
    return record_simulated(command, memory=TOTAL, others=OTHERS, faults=faults, **more)


def program():
    need_simcuda()
    return BUILD / "simcuda/programs/room"


def changes(truth, device=0):
    """What the device's live sum is after each of the log's allocations, and how much of the device is left then."""
    live = 0
    for line in of_kind(truth, "alloc", "free", "create", "release"):
        if line["device"] != device or line.get("mapped") or line.get("memory", DEVICE) not in (DEVICE, ARRAY):
            continue
        is_got = line["kind"] in ("alloc", "create")
        live += line["bytes"] if is_got else -line["bytes"]
        if is_got:
            yield live, line["left"]


def highs(truth, device=0):
    """When the agent queries: at a new peak, higher by at least a sixteenth and a granule."""
    mark = 0
    for live, left in changes(truth, device):
        if live >= mark + max(mark // 16, GRANULE):
            mark = live
            yield live, left


def rooms(output, queried):
    return [event for event in events(output) if event["event"] == "device_room" and event["is_asked"] == queried]


def expect_highs(output, truth):
    expected = list(highs(truth))
    assert len(expected) > 10, expected
    expect_equal([event["free_bytes"] for event in rooms(output, AT_HIGH)], [left for _, left in expected], "left at the query")
    return expected


@case
def the_driver_is_queried_at_each_new_peak():
    for faults in ("", REFUSED):
        output, truth = record([program(), "growth"], faults)
        live, left = expect_highs(output, truth)[-1]
        peak, driver = peak_of(output, "cuda:0"), peak_of(output, "cuda:0")["driver"]
        expect_equal(peak["peak_bytes"], replay(truth)["cuda:0"].peak_bytes, "peak")
        expect_equal((driver["live_bytes"], driver["free_bytes"], driver["total_bytes"]), (live, left, TOTAL), "near the peak")
        expect_equal((driver["asked_by"], driver["asked_at"]), ("agent", "high"), "origin of the query")
        expect_equal(driver["others_bytes"], TOTAL - left - live, "of others")
        assert OTHERS <= driver["others_bytes"] < OTHERS + MIB, driver
        assert 16 * peak["peak_bytes"] < 17 * live <= 17 * peak["peak_bytes"], (live, peak["peak_bytes"])
        assert driver["reason"] and "live_bytes" in driver["reason"], driver
        share = live * 100 // peak["peak_bytes"]
        assert f"before the peak, when {share}% of that was alive: " in torsh("peak", output, "--device", "cuda:0")
        (device,) = leaks_of(output, "cuda:0")["devices"]
        (end,) = rooms(output, AT_END)
        expect_equal((device["driver"]["asked_at"], device["driver"]["reason"], device["driver"]["free_bytes"]),
                     ("end", None, end["free_bytes"]), "at the end")


@case
def at_the_peak_itself_nothing_is_left_open():
    for faults in ("", REFUSED):
        output, truth = record([program(), "refused"], faults)
        peak = peak_of(output, "cuda:0")
        left = dict(changes(truth))[peak["peak_bytes"]]
        expect_equal((peak["driver"]["live_bytes"], peak["driver"]["free_bytes"], peak["driver"]["reason"]),
                     (peak["peak_bytes"], left, None), "at the peak")
        assert "the driver's count at the peak: " in torsh("peak", output, "--device", "cuda:0")


@case
def the_drivers_pool_is_recorded_near_the_peak():
    output, truth = record([program(), "growth"])
    pools = peak_of(output, "cuda:0")["driver"]["pools"]
    assert pools["reserved_bytes"] >= pools["used_bytes"] > 0, pools


@case
def asking_disturbs_no_capture():
    # The program itself looks at its captures, their mode, the current context, and the runtime's last error.
    for faults in ("", REFUSED):
        output, truth = record([program(), "capture"], faults)
        assert len(rooms(output, AT_HIGH)) > 10, rooms(output, AT_HIGH)
        expect_equal(of_kind(truth, "violation"), [], "violations")
        if not faults:
            expect_highs(output, truth)


@case
def queries_of_the_agent_are_none_of_the_programs_calls():
    output, truth = record([program(), "growth"], log_calls=1)
    queried = [line for line in of_kind(truth, "call") if line["name"] == "cuMemGetInfo_v2"]
    expect_equal(len(queried), len(list(highs(truth))) + 1, "queries: at each high, and at the end")
    reported = {event["api"] for event in events(output) if event["event"] in ("launch", "device_call")}
    assert not {name for name in reported if name.startswith(("cuDevicePrimaryCtxRel", "cuMemGetInfo", "cuCtxP"))}, told
    expect_equal(rooms(output, BY_PROGRAM), [], "as the program's")


@case
def where_the_driver_may_not_be_queried_nothing_is_invented():
    output, truth = record([program(), "refused"], REFUSED, env=PASSIVE)
    expect_equal(len(rooms(output, BY_PROGRAM)), 1, "queries of the program")
    expect_equal(rooms(output, AT_HIGH) + rooms(output, AT_END), [], "queries of the agent")
    report = peak_of(output, "cuda:0")
    expect_equal(report["refused"]["count"], len(of_kind(truth, "refused")), "refused")
    for refused in report["refused"]["latest"]:
        expect_equal(refused["driver"]["free_bytes"], None, "free")
        assert "another tool" in refused["driver"]["reason"], refused


@case
def a_driver_that_does_not_answer_harms_nobody():
    for faults in ("", REFUSED + ","):
        output, truth = record([program(), "growth"], faults + "cuMemGetInfo_v2=999")
        report = peak_of(output, "cuda:0")
        expect_equal(report["peak_bytes"], replay(truth)["cuda:0"].peak_bytes, "peak")
        expect_equal((report["driver"]["used_bytes"], report["driver"]["live_bytes"]), (None, None), "unknown")
        assert "nor the agent" in report["driver"]["reason"], report["driver"]


@case
def allocations_that_are_refused_are_counted_with_their_lines():
    for faults in ("", REFUSED):
        output, truth = record([program(), "refused"], faults)
        expected = of_kind(truth, "refused")
        expect_equal(len(expected), 7, "in the log")
        refused = peak_of(output, "cuda:0")["refused"]
        expect_equal((refused["count"], refused["given_up"]), (7, 0), "count")
        expect_equal([(one["bytes"], one["driver"]["free_bytes"]) for one in refused["latest"]],
                     [(line["bytes"], line["left"]) for line in expected], "bytes, and what was left")
        expect_equal({one["driver"]["total_bytes"] for one in refused["latest"]}, {TOTAL}, "total")
        expect_equal(refused["largest"], refused["latest"][5], "the largest")
        functions = [[frame["function"] for frame in one["stack"]] for one in refused["latest"]]
        assert all("be_refused" in stack for stack in functions[:6]) and "try_again" in functions[6], functions
        (half,) = {line["bytes"] for line in of_kind(truth, "alloc")} - {refused["latest"][6]["bytes"]}
        expect_equal([one["live_bytes"] for one in refused["latest"]], [0] * 6 + [half], "alive then")
        apis = [one["api"] for one in refused["latest"]]
        runtime = ["cudaMalloc", "cudaMallocPitch"] if not faults else ["cuMemAlloc_v2", "cuMemAllocPitch_v2"]
        expect_equal(apis, ["cuMemAlloc_v2", *runtime, "cuMemAllocAsync", "cuMemCreate", "cuArrayCreate_v2", "cuMemAlloc_v2"],
                     "functions")
        text = torsh("peak", output, "--device", "cuda:0")
        assert "allocations that the driver refused: 7\n  the largest: 4.00 TiB by cuArrayCreate_v2" in text, text
        assert "be_refused, test/simcuda/programs/room.c:" in text and "try_again, " in text, text
        assert "a device was out of memory: " in torsh("report", output)


@case
def refusals_that_are_injected_are_reported_and_a_program_without_memory_has_a_report():
    output, truth = record([program(), "growth"], "cuMemAlloc_v2=2@1", expect=1)
    report = peak_of(output, "cuda:0")
    expect_equal((report["peak_bytes"], report["refused"]["count"]), (0, 1), "nothing was got")
    expect_equal((report["refused"]["largest"]["bytes"], report["refused"]["largest"]["driver"]["free_bytes"]),
                 (MIB // 2, TOTAL - OTHERS), "requested, and left")


@case
@needs("torch")
def pytorch_that_runs_out_of_memory_and_goes_on_is_understood():
    for faults in ("", REFUSED):
        said_by = scratch("printed") / "outs"
        output, truth = record_simulated([cuda_python(), "-c", RUNNING_OUT, said_by], memory=1 << 30, others=OTHERS // 3,
                                         faults=faults)
        expect_equal(said_by.read_text().split(), ["out"], "errors that the program caught")
        report = peak_of(output, "cuda:0")
        expected, refused = of_kind(truth, "refused"), report["refused"]
        assert len(expected) > 1, expected
        expect_equal((refused["count"], refused["given_up"]), (len(expected), 1), "refused by the driver, given up by PyTorch")
        expect_equal([(one["bytes"], one["driver"]["free_bytes"]) for one in refused["latest"]],
                     [(line["bytes"], line["left"]) for line in expected], "bytes, and what was left")
        first, last = refused["latest"][0], refused["latest"][-1]
        # 500 MiB were requested while 300 were in use and 400 in the cache, which was freed for it.
        expect_equal((first["bytes"], first["live_bytes"]), (500 * MIB, 700 * MIB), "the first")
        expect_equal(first["framework"], {"allocated_bytes": 300 * MIB, "reserved_bytes": 700 * MIB}, "what PyTorch had")
        expect_equal((last["bytes"], last["operator"]), (800 * MIB, "aten::empty"), "the last")
        for one, line in ((first, 9), (last, 11)):
            assert [frame for frame in one["stack"] if (frame["file"], frame["line"]) == ("<string>", line)], one["stack"]
        text = torsh("peak", output, "--device", "cuda:0")
        assert "the framework's allocator gave up once\n" in text, text
        expect_equal(report["peak_bytes"], replay(truth)["cuda:0"].peak_bytes, "peak")


@case
@needs("torch")
def refusals_are_recorded_with_each_of_pytorchs_allocators():
    # PyTorch 2.3 doesn't make room in CUDA's own pool for more than is free there.
    for allocator, script in (("expandable_segments:True", RUNNING_OUT),
                              ("backend:cudaMallocAsync", RUNNING_OUT.replace("more = take(500)\n", ""))):
        said_by = scratch("printed") / "outs"
        output, truth = record_simulated([cuda_python(), "-c", script, said_by], memory=1 << 30, others=OTHERS // 3,
                                         env={"PYTORCH_CUDA_ALLOC_CONF": allocator})
        expect_equal(said_by.read_text().split(), ["out"], "errors that the program caught")
        expected, refused = of_kind(truth, "refused"), peak_of(output, "cuda:0")["refused"]
        assert expected, allocator
        expect_equal([(one["bytes"], one["driver"]["free_bytes"]) for one in refused["latest"]],
                     [(line["bytes"], line["left"]) for line in expected][-100:], f"bytes, and what was left, {allocator}")
        expect_equal(refused["count"], len(expected), f"count, {allocator}")


@case
def memory_of_a_pool_that_was_found_by_its_place_is_its_devices():
    for faults in ("", REFUSED):
        output, truth = record([program(), "pools"], faults, devices=3)
        for device, n_bytes in (("cuda:2", 3 * MIB), ("cuda:1", 5 * MIB)):
            expect_equal((peak_of(output, device)["peak_bytes"], replay(truth)[device].peak_bytes), (n_bytes, n_bytes), device)


if __name__ == "__main__":
    main()
