#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The rules of tools/analysis on the simulated CUDA: for each a program in which it has to fire, with numbers that the
simulation's own log has too, and one in which it must not.
"""

import functools
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import DRIVER, cuda_python, duration_ns, of_kind, record_simulated, used  # noqa: E402
import schema  # noqa: E402

MS = 1_000_000
STEPS = 4
MODULES = {"PYTHONPATH": str(ROOT / "tools/python")}
# Of PyTorch's own heap no rule here judges anything: recording it takes as long as importing PyTorch does.
WITHOUT_HEAP = {**MODULES, "TORSH_PROFILER_ACTIVITIES": "torch,cuda,nvtx"}

# The driver's functions, in steps that are marked: each_step(function) runs it so often.
PRELUDE = f"""
{DRIVER}
import time
import torsh
other = ctypes.c_void_p()
need(cuda.cuStreamCreate(ctypes.byref(other), 1))
size = ctypes.c_size_t(1 << 20)
memory, pinned = ctypes.c_uint64(), ctypes.c_void_p()
need(cuda.cuMemAlloc_v2(ctypes.byref(memory), size))
need(cuda.cuMemHostAlloc(ctypes.byref(pinned), size, 0))
pageable = ctypes.create_string_buffer(1 << 20)
def launch(grid=4096, threads=1024, shared=0, name=b"_Z4workPf", on=stream):
    need(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    if shared:
        need(cuda.cuFuncSetAttribute(function, 8, shared))  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    need(cuda.cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, shared, on, None, None))
def each_step(work):
    for i in range({STEPS}):
        torsh.step(i)
        work()
    synchronize()
"""


def recorded(work, env=None, **settings):
    """What a step does, as a script; the recording and the simulation's log."""
    return record_simulated([sys.executable, "-c", f"{PRELUDE}\ndef work():\n    {work}\neach_step(work)"],
                            env={**MODULES, **(env or {})}, **settings)


@functools.lru_cache(None)
def reported(output, files):
    """The report of torsh report on files in a folder; the operator profile agrees."""
    report = read_report("report", output, "--no-lines")
    schema.expect_fits("report", report)
    path = scratch("exported") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    profile = json.loads(path.read_text())
    schema.expect_fits("profile", profile)
    expect_equal(profile["analysis"]["rules"], report["rules"], "rules")
    expect_equal(profile["analysis"]["inefficiencies"], report["inefficiencies"], "findings")
    return report


def judged(output, rule):
    """What became of a rule, and its findings."""
    report = reported(output, tuple(recordings(output)))
    (result,) = [row for row in report["rules"] if row["rule"] == rule]
    return result, [finding for finding in report["inefficiencies"] if finding["rule"] == rule]


def expect_clear(output, rule):
    result, found = judged(output, rule)
    expect_equal((result["state"], found), ("clear", []), f"{rule} ({result['reason']})")


def expect_unjudged(output, rule, word):
    result, found = judged(output, rule)
    expect_equal((result["state"], found), ("not_judged", []), rule)
    assert word in result["reason"], result


def expect_fired(output, rule):
    """Its findings, each with evidence that passed every limit of the rule."""
    result, found = judged(output, rule)
    expect_equal((result["state"], result["findings"]), ("fired", len(found)), f"{rule} ({result['reason']})")
    sides = {"below": lambda a, b: a < b, "above": lambda a, b: a > b, "at most": lambda a, b: a <= b,
             "at least": lambda a, b: a >= b}
    for finding in found:
        passed = {item["name"]: item for item in finding["evidence"] if item["limit"]}
        expect_equal(sorted(passed), sorted(limit["name"] for limit in result["limits"]), "limits")
        for item in passed.values():
            assert sides[item["limit"]["side"]](item["value"], item["limit"]["value"]), finding
    text = torsh("report", output, "--no-lines", "--verbose")
    assert f", {rule}" in text or "more rule" in text, text
    return found


def value(finding, name):
    (item,) = [item for item in finding["evidence"] if item["name"] == name]
    return item["value"]


def only(items):
    (item,) = items
    return item


def kernels_of(truth, name="_Z4workPf"):
    return [kernel for kernel in of_kind(truth, "kernel") if kernel["name"] == name]


def expect_kernels(finding, kernels):
    expect_equal((value(finding, "calls"), value(finding, "total_ns")),
                 (len(kernels), sum(duration_ns(kernel) for kernel in kernels)), "kernels")
    expect_equal(finding["where"]["kernel_name"], "work(float*)", "name")


# ---- kernels ------------------------------------------------------------------------------------------------------------

@case
def small_grids_are_found_and_large_ones_are_not():
    # Two blocks of 1024 threads on each of 132 multiprocessors are one wave.
    output, truth = recorded("launch(100); synchronize()", kernel_ns=5 * MS)
    finding = only(expect_fired(output, "grid_starvation"))
    expect_kernels(finding, kernels_of(truth))
    expect_equal(value(finding, "waves_per_sm"), 100 / (2 * 132), "waves")
    expect_equal((finding["kind"], finding["severity"]), ("LowThroughput", "Critical"), "kind and severity")
    output, _ = recorded("launch(528); synchronize()", kernel_ns=5 * MS)
    expect_clear(output, "grid_starvation")


@case
def much_shared_memory_is_found_and_little_is_not():
    output, truth = recorded("launch(threads=128, shared=100000); synchronize()", kernel_ns=5 * MS)
    finding = only(expect_fired(output, "shared_memory_limited"))
    expect_kernels(finding, kernels_of(truth))
    expect_equal({kernel["shared"] for kernel in kernels_of(truth)}, {value(finding, "dynamic_smem")}, "shared memory")
    output, _ = recorded("launch(threads=128, shared=10000); synchronize()", kernel_ns=5 * MS)
    expect_clear(output, "shared_memory_limited")


@case
def counters_of_kernels_are_judged_by_what_they_are():
    """Formulas of test/simcuda/cupti/metrics.def, by the log's nanoseconds and threads."""
    seen = set()
    for threads in (32, 64, 96, 192):
        output, truth = recorded(f'launch(1, {threads}, name=b"ampere_sgemm_64x64_nn"); synchronize()', kernel_ns=5 * MS,
                                 env={"TORSH_PROFILER_COUNTERS": "operators:2"})
        kernels = kernels_of(truth, "ampere_sgemm_64x64_nn")
        (ns,) = {duration_ns(kernel) for kernel in kernels}
        expected = {"gemm_without_tensor_cores": threads % 192 == 0, "latency_bound": (5 * ns + threads) % 101 < 20,
                    "register_spills": 2 * threads % 128 > 0}
        for rule, fires in expected.items():
            seen.add((rule, fires))
            if fires:
                expect_equal(value(only(expect_fired(output, rule)), "calls"), len(kernels), f"kernels of {rule}")
            else:
                expect_clear(output, rule)
        expect_unjudged(output, "divergence", "is not among those")
    expect_equal(len(seen), 6, "each rule fires and doesn't")


@case
def without_counters_what_needs_them_is_not_judged():
    output, _ = recorded('launch(name=b"ampere_sgemm_64x64_nn"); synchronize()', kernel_ns=5 * MS)
    for rule in ("gemm_without_tensor_cores", "latency_bound", "divergence", "register_spills"):
        expect_unjudged(output, rule, "counters were off")
    expect_unjudged(output, "memory_bound", "no kernel has an operator")
    expect_unjudged(output, "counters_refused", "not requested")


ADD = """
import torch, torsh
x = torch.ones(1 << 20, device="cuda")
for step in range(3):
    torsh.step(step)
    y = x + 1
    torch.cuda.synchronize()
"""


@case
@needs("torch")
def operators_that_only_move_memory_are_found_where_they_move_it_fast():
    seen = set()
    for kernel_ns in (5 * MS, 5 * MS + 50):
        output, truth = record_simulated([cuda_python(), "-c", ADD], kernel_ns=kernel_ns,
                                         env={**WITHOUT_HEAP, "TORSH_PROFILER_COUNTERS": "operators:2"})
        if used["version"] == "12":  # the first CUPTI that measures kernels is that of CUDA 12.6
            expect_unjudged(output, "memory_bound", "were not counted")
            return
        threads = {math.prod(kernel["grid"]) * math.prod(kernel["block"]) for kernel in of_kind(truth, "kernel")
                   if "CUDAFunctorOnSelf_add" in kernel["name"]}
        fires = (kernel_ns + 3 * only(threads)) % 101 >= 60
        seen.add(fires)
        if not fires:
            expect_clear(output, "memory_bound")
            continue
        finding = only(expect_fired(output, "memory_bound"))
        expect_equal(finding["where"]["operator_name"], "aten::add", "operator")
        expect_equal(value(finding, "intensity"), (1 << 20) / (96 * only(threads)), "FLOP a byte")
    expect_equal(seen, {True, False}, "fires and doesn't")


# ---- devices ------------------------------------------------------------------------------------------------------------

@case
def many_short_kernels_are_launch_bound_and_long_ones_are_not():
    output, truth = recorded("for i in range(500): launch()", kernel_ns=200, launch_ns=100)
    finding = only(expect_fired(output, "launch_bound"))
    expect_equal(value(finding, "kernels"), len(kernels_of(truth)), "kernels")
    expect_equal(only(expect_fired(output, "device_underused"))["where"]["device_id"], 0, "device")
    output, _ = recorded("for i in range(20): launch()\n    synchronize()", kernel_ns=5 * MS)
    expect_clear(output, "launch_bound")
    expect_clear(output, "device_underused")


@case
def long_pauses_of_a_device_are_found_and_short_ones_are_not():
    output, truth = recorded("launch(); synchronize(); time.sleep(0.6)", kernel_ns=MS)
    kernels = kernels_of(truth)
    longest_ns = max(b["start"] - a["end"] for a, b in zip(kernels, kernels[1:]))
    # The agent's clock and the device's are a microsecond apart at most.
    assert abs(value(only(expect_fired(output, "device_gap")), "longest_gap_ns") - longest_ns) < 1000, longest_ns
    output, _ = recorded("launch(); synchronize()", kernel_ns=MS)
    expect_clear(output, "device_gap")


@case
def communication_is_exposed_where_nothing_is_computed_beside_it():
    kernels = {"kernels": f"*nccl*={20 * MS}", "kernel_ns": 20 * MS}
    output, truth = recorded("launch(); synchronize(); all_reduce(other); synchronize()", **kernels)
    finding = only(expect_fired(output, "exposed_communication"))
    (name,) = {kernel["name"] for kernel in of_kind(truth, "kernel")} - {"_Z4workPf"}
    expect_equal(value(finding, "communication_ns"), sum(duration_ns(kernel) for kernel in kernels_of(truth, name)), "time")
    assert value(finding, "exposed_ns") <= value(finding, "communication_ns"), finding
    output, _ = recorded("all_reduce(other); launch(); launch(); synchronize()", **kernels)
    expect_clear(output, "exposed_communication")


# Two ranks, each with a simulation of its own; how long each is in its collectives. The second's log is another file.
RANKS = """
RANK=1 SIMCUDA_KERNELS="*nccl*=$3" SIMCUDA_LOG="$SIMCUDA_LOG.1" "$0" -c "$1" &
RANK=0 SIMCUDA_KERNELS="*nccl*=$2" "$0" -c "$1" && wait $!
"""


def record_ranks(work, *times_ns):
    script = f"{PRELUDE}\ndef work():\n    {work}\neach_step(work)"
    return record_simulated(["sh", "-c", RANKS, sys.executable, script, *map(str, times_ns)], env=MODULES)


@case
def a_rank_that_waits_for_another_is_reported_with_which():
    output, truth = record_ranks("launch(); all_reduce(other); synchronize()", 200 * MS, 2 * MS)
    finding = only(expect_fired(output, "late_rank"))
    expect_equal((value(finding, "waited_ns"), value(finding, "collectives"), value(finding, "late_rank")),
                 (STEPS * 198 * MS, STEPS, 1), "how long it waited, and for whom")
    (name,) = {kernel["name"] for kernel in of_kind(truth, "kernel")} - {"_Z4workPf"}
    expect_equal([duration_ns(kernel) for kernel in kernels_of(truth, name)], [200 * MS] * STEPS, "its collectives")
    output, _ = record_ranks("launch(); all_reduce(other); synchronize()", 20 * MS, 20 * MS)
    expect_clear(output, "late_rank")


# ---- the host -----------------------------------------------------------------------------------------------------------

@case
def copies_are_judged_by_their_memory_and_their_call():
    copy = "need(cuda.cuMemcpyHtoD{}(memory, {}, size{}))"
    for how, found in (("pageable", "pageable_async_copy"), ("pinned", None), ("synchronous", "synchronous_copy")):
        is_async = how != "synchronous"
        output, truth = recorded(copy.format("Async_v2" if is_async else "_v2", "pinned" if how == "pinned" else "pageable",
                                             ", stream" if is_async else "") + "; synchronize()")
        for rule in ("pageable_async_copy", "synchronous_copy"):
            if rule != found:
                expect_clear(output, rule)
                continue
            finding = only(expect_fired(output, rule))
            expect_equal(value(finding, "copies"), len(of_kind(truth, "memcpy")), "copies")
            expect_equal(finding["where"]["api"], "cuMemcpyHtoDAsync_v2" if is_async else "cuMemcpyHtoD_v2", "call")


@case
def memsets_are_judged_by_their_call():
    output, truth = recorded("need(cuda.cuMemsetD8_v2(memory, 1, size)); launch()")
    finding = only(expect_fired(output, "synchronous_memset"))
    expect_equal(value(finding, "memsets"), len(of_kind(truth, "memset")), "memsets")
    output, _ = recorded("need(cuda.cuMemsetD8Async(memory, 1, size, stream)); launch()")
    expect_clear(output, "synchronous_memset")


@case
def waits_are_counted_by_the_step_and_weighed_by_their_time():
    output, truth = recorded("launch(); synchronize(); synchronize(); synchronize()", kernel_ns=5 * MS)
    finding = only(expect_fired(output, "excess_synchronisation"))
    # The last step, in which the program ends, does not count.
    expect_equal((value(finding, "calls"), finding["where"]["api"]), (3 * (STEPS - 1), "cuCtxSynchronize"), "waits")
    expect_equal(finding["kind"], "CpuUnderutilization", "kind")
    finding = only(expect_fired(output, "blocking_calls"))
    waited_ns = sum(duration_ns(kernel) for kernel in kernels_of(truth))
    assert value(finding, "host_ns") > 0.9 * waited_ns, (finding, waited_ns)
    # One a step, and one behind the last one.
    output, _ = recorded("launch(); synchronize()", kernel_ns=1000)
    expect_clear(output, "excess_synchronisation")


@case
def time_in_waits_is_judged_by_its_share():
    output, _ = recorded("launch(); time.sleep(0.05)", kernel_ns=1000)
    expect_clear(output, "blocking_calls")


@case
def memory_that_is_got_in_each_step_is_found_and_that_of_pools_is_not():
    output, truth = recorded("""
    a = ctypes.c_uint64()
    need(cuda.cuMemAlloc_v2(ctypes.byref(a), size))
    need(cuda.cuMemFree_v2(a))
    launch()""")
    found = expect_fired(output, "allocation_churn")
    expect_equal(sorted((finding["where"]["api"], value(finding, "calls")) for finding in found),
                 [("cuMemAlloc_v2", STEPS - 2), ("cuMemFree_v2", STEPS - 2)], "calls in steps that are neither first nor last")
    expect_equal({finding["kind"] for finding in found}, {"FrequentAllocation"}, "kind")
    # One more for what all steps use.
    expect_equal(len([line for line in of_kind(truth, "alloc") if line["bytes"] == 1 << 20 and line["memory"] == 3]), STEPS + 1,
                 "the simulation's allocations")
    output, _ = recorded("""
    a = ctypes.c_uint64()
    need(cuda.cuMemAllocAsync(ctypes.byref(a), size, stream))
    need(cuda.cuMemFreeAsync(a, stream))
    launch()""")
    expect_clear(output, "allocation_churn")


@case
def code_that_is_loaded_after_the_first_step_is_found():
    load = "for i in range(200): need(cuda.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), b'code'))"
    output, _ = recorded(f"{load}\n    launch()")
    expect_equal(value(only(expect_fired(output, "module_loads")), "calls"), 200 * (STEPS - 2), "loads")
    output, _ = recorded("launch()")
    expect_clear(output, "module_loads")


LOADING = """
import sys, time, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        time.sleep(float(sys.argv[1]))
        return torch.ones(8)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in torch.utils.data.DataLoader(Data()):
    model(batch).sum().backward()
    optimizer.step()
    time.sleep(0.1)
"""


@case
@needs("torch")
def waiting_for_data_is_found_where_it_takes_long():
    output, _ = record_simulated([cuda_python(), "-c", LOADING, "0.05"], env=WITHOUT_HEAP)
    finding = only(expect_fired(output, "data_loading"))
    steps = read_report("steps", output)["steps"]
    expect_equal(value(finding, "data_ns"), sum(step["phases"]["data"] for step in steps), "time of torsh steps")
    expect_equal(value(finding, "steps"), len(steps), "steps")
    output, _ = record_simulated([cuda_python(), "-c", LOADING, "0"], env=WITHOUT_HEAP)
    expect_clear(output, "data_loading")


# Batches of another size in each step; beside that products of sizes that come in turns.
SHAPES = """
import torch, torsh
model = torch.nn.Linear(16, 16).cuda()
for step in range(12):
    torsh.step(step)
    model(torch.ones(4 + step, 16, device="cuda"))
    torch.mm(model.weight, torch.ones(16, 1 + step % 4, device="cuda"))
torch.cuda.synchronize()
"""


@case
@needs("torch")
def shapes_that_are_new_in_each_step_are_found():
    output, _ = record_simulated([cuda_python(), "-c", SHAPES], env=WITHOUT_HEAP)
    found = {finding["where"]["operator_name"]: finding for finding in expect_fired(output, "new_shapes")}
    assert "aten::addmm" in found and "aten::mm" not in found, found
    finding = found["aten::addmm"]
    expect_equal((value(finding, "shapes"), value(finding, "steps_with_new_pct")), (12, 100), "shapes")


# ---- memory -------------------------------------------------------------------------------------------------------------

BLOCKS = """
import sys, torch
n, large = int(sys.argv[1]), int(sys.argv[2])
small = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda") for i in range(n)]
small.clear()
x = torch.empty(large << 20, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
"""


@case
@needs("torch")
def reserved_memory_is_judged_where_most_is_allocated():
    output, truth = record_simulated([cuda_python(), "-c", BLOCKS, "10", "1100"], env=WITHOUT_HEAP)
    finding = only(expect_fired(output, "memory_waste"))
    reserved = sum(line["bytes"] for line in of_kind(truth, "alloc") if line["memory"] == 3 and line["bytes"] >= 100 << 20)
    expect_equal((value(finding, "reserved"), value(finding, "allocated")), (reserved, 1100 << 20), "memory")
    expect_equal((finding["kind"], finding["share_of"]), ("MemoryWaste", "the device's memory"), "kind and share")
    output, _ = record_simulated([cuda_python(), "-c", BLOCKS, "10", "100"], env=WITHOUT_HEAP)
    expect_clear(output, "memory_waste")
    expect_clear(output, "large_allocation")


@case
@needs("torch")
def tensors_of_much_of_the_device_are_found():
    output, _ = record_simulated([cuda_python(), "-c", BLOCKS, "0", "5000"], env=WITHOUT_HEAP)
    finding = only(expect_fired(output, "large_allocation"))
    expect_equal((value(finding, "tensor"), value(finding, "device_memory")), (5000 << 20, 16 << 30), "bytes")
    expect_equal((finding["kind"], finding["where"]["operator_name"]), ("LargeAllocation", "aten::empty"), "kind and operator")


# ---- the recording ------------------------------------------------------------------------------------------------------

@case
@needs("torch")
def work_of_no_operator_is_found_and_that_of_operators_is_not():
    output, truth = recorded("launch(); synchronize()", kernel_ns=MS)
    finding = only(expect_fired(output, "high_unattributed"))
    expect_equal((finding["kind"], value(finding, "unattributed_ns")),
                 (None, sum(duration_ns(kernel) for kernel in kernels_of(truth))), "what is of no operator")
    output, _ = record_simulated([cuda_python(), "-c", ADD], env=WITHOUT_HEAP)
    expect_clear(output, "high_unattributed")


@case
def records_that_are_missing_are_reported():
    output, truth = recorded("launch(); synchronize()", untimed_kernels=2)
    finding = only(expect_fired(output, "events_missing"))
    expect_equal(value(finding, "device_records"), len(kernels_of(truth)) // 2, "records")
    output, _ = recorded("launch(); synchronize()")
    expect_clear(output, "events_missing")


@case
def counters_that_are_refused_are_reported_with_the_reason():
    counters = {"TORSH_PROFILER_COUNTERS": "operators"}
    output, _ = recorded("launch(); synchronize()", env=counters, faults="cuptiProfilerInitialize=35")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in only(expect_fired(output, "counters_refused"))["note"]
    expect_unjudged(output, "register_spills", "NVreg_RestrictProfilingToAdminUsers=0")
    output, _ = recorded("launch(); synchronize()", env=counters)
    expect_clear(output, "counters_refused")


@case
def time_that_cupti_takes_for_itself_is_reported():
    output, _ = recorded("launch(); synchronize()", flush_ns=500 * MS)
    finding = only(expect_fired(output, "profiler_too_heavy"))
    assert value(finding, "cupti_ns") >= 500 * MS, finding
    sentence = next(line for line in torsh("report", output).splitlines() if "The recorder took" in line)
    is_remark = finding["severity"] in ("Low", "Medium")
    assert sentence.startswith("The recorder" if is_remark else "!!"), f"{finding['severity']}: {sentence}"
    output, _ = recorded("launch(); synchronize(); time.sleep(0.1)")
    expect_clear(output, "profiler_too_heavy")


@case
def a_program_without_a_device_is_reported_to_have_none():
    _, output = record([PROGRAMS / "lifecycle"])
    report = read_report("report", output, "--no-lines")
    schema.expect_fits("report", report)
    result = report["rules"][0]
    expect_equal((result["state"], result["reason"]), ("not_judged", "no device was used"), "rule")
    assert "FINDINGS" not in torsh("report", output, "--no-lines"), "a section about nothing"


if __name__ == "__main__":
    main()
