#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Counters of devices (TORSH_PROFILER_COUNTERS) on the simulated CUDA, which computes counters from
kernels by formulas: each measured value against the simulation's own log; what must not be
measured; and the messages where nothing can be measured."""

import collections
import json
import math
import pathlib
import sqlite3
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import (DRIVER, LIBRARIES, cuda_python, duration_ns, need_simcuda, of_kind, preloaded,  # noqa: E402
                     read_truth, used)
from consumers import ask_trace_processor  # noqa: E402
import schema  # noqa: E402

PROGRAM = PROGRAMS / "cuda_driver"
SAMPLES = 3  # kernels that are measured of launches that are alike
NUMBERS_A_DEVICE = 32

# test/simcuda/cupti/metrics.def, as a reader of it understands it: of nanoseconds and threads.
KERNEL_VALUES = {
    "gpu_time_duration_ns": lambda ns, threads: ns,
    "sm_active_cycles": lambda ns, threads: 132 * ns,
    "sm_active_pct": lambda ns, threads: (ns + 7 * threads) % 101,
    "achieved_occupancy": lambda ns, threads: (3 * ns + threads) % 101,
    "dram_throughput_pct": lambda ns, threads: (ns + 3 * threads) % 101,
    "dram_bytes_read": lambda ns, threads: 64 * threads,
    "dram_bytes_written": lambda ns, threads: 32 * threads,
    "executed_instructions": lambda ns, threads: 5 * threads,
    "tensor_instructions": lambda ns, threads: threads % 192,
    "tensor_instructions_pct": lambda ns, threads: (ns + 2 * threads) % 101,
    "l1_hit_rate": lambda ns, threads: (2 * ns + 3 * threads) % 101,
    "l1_sectors": lambda ns, threads: 4 * threads,
    "l2_request_hit_rate": lambda ns, threads: (3 * ns + 2 * threads) % 101,
    "l2_sectors": lambda ns, threads: 3 * threads,
    "l2_bytes": lambda ns, threads: 96 * threads,
}
TWO_PASSES = {
    **{name: value for name, value in KERNEL_VALUES.items() if name not in ("tensor_instructions_pct", "l2_request_hit_rate")},
    "tensor_core_active_pct": lambda ns, threads: (ns + 5 * threads) % 101,
    "l2_hit_rate": lambda ns, threads: (4 * ns + threads) % 101,
    "warp_cycles_per_instruction": lambda ns, threads: (ns + threads) % 64,
    "eligible_cycles_pct": lambda ns, threads: (5 * ns + threads) % 101,
    "ipc_active": lambda ns, threads: (ns + threads) % 4,
    "issued_instructions": lambda ns, threads: 6 * threads,
    "local_memory_spills": lambda ns, threads: 2 * threads % 128,
}

ALL_PASSES = {
    **TWO_PASSES,
    "sm_throughput_pct": lambda ns, threads: (ns + threads) % 101,
    "memory_throughput_pct": lambda ns, threads: (2 * ns + threads) % 101,
    "mem_busy_pct": lambda ns, threads: (ns + 4 * threads) % 101,
    "avg_threads_per_warp": lambda ns, threads: threads % 33,
}
PASSES_OF_ALL = 8  # of sm_throughput_pct, which takes most

# launch(threads) a kernel.
PRELUDE = f"""
{DRIVER}
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
def launch(threads, times=1):
    for _ in range(times):
        need(cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, None, None))
"""

TRAIN = """
import torch
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(5):
    x = torch.randn(16, 64).to(device)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""


def measure(counters, command, expect=0, env=None, **settings):
    """A command under the agent on the simulated CUDA; the recording, the simulation's log, and what was printed."""
    need_simcuda()
    truth, output = scratch("truth") / "truth", scratch()
    variables = agent_environment(output, **{f"SIMCUDA_{name.upper()}": value for name, value in settings.items()})
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{preloaded()}"
    variables.update({"LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_LOG": str(truth), "TORSH_PROFILER_COUNTERS": counters,
                      **(env or {})})
    result = run(command, variables)
    expect_equal(result.returncode, expect, f"status\n{result.stderr.decode()[-3000:]}\n")
    lines = read_truth(truth)
    expect_equal(of_kind(lines, "violation"), [], "violations")
    return output, lines, result.stderr.decode()


def measure_script(counters, script, **options):
    return measure(counters, [sys.executable, "-c", PRELUDE + script], **options)


def number(bits):
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return None if math.isnan(value) else value


def fields_of(found):
    """{number of a metric: field}"""
    return {event["number"]: event["field"] for event in found if event["event"] == "counter_metric"}


def values_of(event, fields):
    return {fields[event["first"] + i]: number(event[f"value_{i}"]) for i in range(event["n"])}


def measured(found):
    """{correlation: {field: value}} of kernels."""
    fields, kernels = fields_of(found), collections.defaultdict(dict)
    for event in found:
        if event["event"] == "counter_range":
            kernels[event["correlation"]].update(values_of(event, fields))
    return dict(kernels)


def threads_of(kernel):
    return math.prod(kernel["grid"]) * math.prod(kernel["block"])


def shape_of(kernel):
    return kernel["name"], tuple(kernel["grid"]), tuple(kernel["block"]), kernel["shared"]


def compare(found, truth, formulas):
    """Every measured kernel has every value; of launches that are alike the first ones are measured."""
    kernels, expected, seen = measured(found), {}, collections.Counter()
    for kernel in sorted(of_kind(truth, "kernel"), key=lambda kernel: kernel["correlation"]):
        seen[shape_of(kernel)] += 1
        if seen[shape_of(kernel)] <= SAMPLES and not kernel["node"] and "nccl" not in kernel["name"]:
            arguments = duration_ns(kernel), threads_of(kernel)
            expected[kernel["correlation"]] = {name: value(*arguments) for name, value in formulas.items()}
    expect_equal(kernels, expected, "values of measured kernels")


def report_of(output):
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    return report


def sums_of(output):
    (device,) = report_of(output)["counters"]
    return device["sums"]


def threads_measured(output, truth):
    """How often a kernel of so many threads was measured."""
    kernels = {line["correlation"]: threads_of(line) for line in of_kind(truth, "kernel")}
    return collections.Counter(kernels[correlation] for correlation in measured(events(output)))


@case
def counters_of_simulated_kernels_are_theirs():
    output, truth, _ = measure("operators", [PROGRAM, 1, 20], kernel_ns=12345)
    found = events(output)
    compare(found, truth, KERNEL_VALUES)
    expect_equal(len(measured(found)), SAMPLES, "measured kernels")
    report = report_of(output)
    (device,) = report["counters"]
    expect_equal([device[name] for name in ("mode", "device", "chip", "passes", "metrics", "reason")],
                 ["operators", 0, "GH100", 1, len(KERNEL_VALUES), None], "how")
    (kernel,) = report["kernels"]
    expect_equal(kernel["counters"]["measured"], SAMPLES, "measured")
    path = scratch("sqlite") / "t.sqlite"
    torsh("export", output, "--format", "sqlite", "-o", path)
    rows = sqlite3.connect(path).execute("select correlation, metric, value from kernel_counters").fetchall()
    by_kernel = collections.defaultdict(dict)
    for correlation, metric, value in rows:
        by_kernel[correlation][metric] = value
    expect_equal(sorted(by_kernel), sorted(measured(found)), "kernels with counters in the database")
    names = {metric["name"] for metric in kernel["counters"]["metrics"]}
    assert all(set(values) == names for values in by_kernel.values()), (names, by_kernel)
    for metric in kernel["counters"]["metrics"]:
        if metric["aggregate"] == "sum":
            expect_equal(sum(values[metric["name"]] for values in by_kernel.values()), metric["value"], metric["name"])
    metrics = {metric["field"]: metric for metric in kernel["counters"]["metrics"]}
    threads = 4 * 2 * 64
    expect_equal((metrics["dram_bytes_read"]["value"], metrics["dram_bytes_read"]["per_kernel"]),
                 (SAMPLES * 64 * threads, 64 * threads), "a sum")
    expect_equal(metrics["l1_hit_rate"]["value"], (2 * 12345 + 3 * threads) % 101, "a mean")
    shown = torsh("kernels", output, "--counters")
    assert "dram_bytes_read, of 3 measured" in shown, shown


@case
def two_passes_measure_more_of_simulated_kernels():
    output, truth, _ = measure("operators:2", [PROGRAM, 1, 20])
    compare(events(output), truth, TWO_PASSES)
    (device,) = report_of(output)["counters"]
    expect_equal((device["passes"], device["metrics"]), (2, len(TWO_PASSES)), "passes and metrics")


@case
def all_counters_of_simulated_kernels_are_in_the_operator_profile():
    output, truth, _ = measure("operators:full", [PROGRAM, 1, 20], kernel_ns=12345)
    compare(events(output), truth, ALL_PASSES)
    report = report_of(output)
    (device,) = report["counters"]
    expect_equal((device["passes"], device["metrics"]), (PASSES_OF_ALL, len(ALL_PASSES)), "passes and metrics")
    (note,) = [note for note in report["notes"] if note.startswith("counters: ")]
    assert f"up to {SAMPLES} ran {PASSES_OF_ALL} times each" in note, note
    path = scratch("profile") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    profile = json.loads(path.read_text())
    schema.expect_fits("profile", profile)
    # Without an operator nothing is summed: what the operator profiler would sum is in the kernels' raw values.
    kernel = next(kernel for kernel in profile["unattributed_kernels"] if kernel["metrics_source"] == "measured")
    arguments = 12345, 4 * 2 * 64
    for name, field in (("sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm_throughput_pct"),
                        ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory_throughput_pct"),
                        ("l1tex__throughput.avg.pct_of_peak_sustained_active", "mem_busy_pct"),
                        ("smsp__average_thread_inst_executed_per_inst_executed.ratio", "avg_threads_per_warp")):
        expect_equal(kernel["metrics"]["raw"][name], ALL_PASSES[field](*arguments), field)


@case
def the_sums_of_all_counters_are_weighted_by_time():
    output, _, _ = measure("operators:full", [PROGRAMS / "cuda_evidence"], kernel_ns=12345)
    profile = json.loads(torsh("export", output, "--format", "profile"))
    counted = [operator for operator in profile["operators"]
               if operator["kernels"] and all(kernel["metrics_source"] != "none" for kernel in operator["kernels"])]
    assert counted, "no operator has counters"
    for operator in counted:
        for field, name in (("sm_throughput_pct", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
                            ("memory_throughput_pct", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
                            ("mem_busy_pct", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
                            ("avg_threads_per_warp", "smsp__average_thread_inst_executed_per_inst_executed.ratio")):
            weights = [(kernel["duration_ns"], kernel["metrics"]["raw"][name]) for kernel in operator["kernels"]]
            mean = sum(ns * value for ns, value in weights) / sum(ns for ns, _ in weights)
            assert math.isclose(operator["aggregated"][field], mean, rel_tol=1e-9), (operator["operator_id"], field, mean)


@case
def what_all_counters_cost_is_said_before_the_program_starts():
    script = "import sys; print('started', file=sys.stderr)"
    for counters, is_said in (("operators:full", True), ("operators:2", False), ("off", False)):
        result = run([TORSH, "run", "--no-summary", "--counters", counters, "-o", scratch(), "--", sys.executable, "-c", script])
        expect_equal(result.returncode, 0, "status")
        before, _, _ = result.stderr.decode().partition("started")
        expect_equal("8 to 11 times" in before, is_said, f"what torsh run says with {counters}: {result.stderr}")


@case
def simulated_kernels_of_many_threads_are_measured_one_by_one():
    output, truth, _ = measure("operators", [PROGRAM, 16, 200], kernel_ns=300)
    kernels = measured(events(output))
    expect_equal(len(of_kind(truth, "kernel")), 16 * 200, "kernels")
    # Which three it is that nobody else was launching at is left to chance.
    expect_equal(len(kernels), SAMPLES, "measured kernels")
    by_correlation = {line["correlation"]: line for line in of_kind(truth, "kernel")}
    for correlation, values in kernels.items():
        line = by_correlation[correlation]
        expect_equal(values, {name: value(duration_ns(line), threads_of(line)) for name, value in KERNEL_VALUES.items()},
                     "values")


@case
def what_might_wait_for_a_simulated_collective_is_not_measured():
    output, truth, _ = measure_script("operators", """
launch(32, times=5)
all_reduce()
launch(64, times=5)
synchronize()
launch(96, times=5)
synchronize()
""")
    assert [line for line in of_kind(truth, "kernel") if "nccl" in line["name"]], "no collective ran"
    expect_equal(threads_measured(output, truth), {32: SAMPLES, 96: SAMPLES}, "measured by threads")
    expect_equal(sums_of(output)["collective"], 5, "left out for a collective")


@case
def after_a_collective_in_a_simulated_graph_only_a_wait_for_all_helps():
    output, truth, _ = measure_script("operators", """
graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
need(cuda.cuStreamBeginCapture_v2(stream, 2))
all_reduce()
launch(32, times=2)
need(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
need(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
synchronize()
launch(64)
need(cuda.cuGraphLaunch(executable, stream))
launch(96)
synchronize()
launch(128)
synchronize()
""")
    assert [line for line in of_kind(truth, "kernel") if "nccl" in line["name"] and line["node"]], "no collective ran"
    expect_equal(threads_measured(output, truth), {64: 1, 128: 1}, "measured by threads")
    sums = sums_of(output)
    expect_equal((sums["capturing"], sums["collective"], sums["graphs"]), (2, 1, 1), "left out")


@case
def kernels_of_simulated_graphs_have_the_counters_of_launches_alike_or_a_reason():
    output, truth, _ = measure_script("operators:2", """
launch(32)
graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
need(cuda.cuStreamBeginCapture_v2(stream, 2))
launch(32)
launch(64)
need(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
need(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
need(cuda.cuGraphLaunch(executable, stream))
synchronize()
""")
    expect_equal(sorted(threads_of(line) for line in of_kind(truth, "kernel") if line["node"]), [32, 64], "nodes that ran")
    expect_equal(threads_measured(output, truth), {32: 1}, "measured by threads")
    path = scratch("exported") / "a.profile.json"
    torsh("export", output, "--format", "profile", "-o", path)
    profile = json.loads(path.read_text())
    schema.expect_fits("profile", profile)
    kernels = [kernel for kernel in profile["unattributed_kernels"]]
    output_text = collections.Counter((math.prod(kernel["block_dim"]), kernel["metrics_source"],
                                "CUDA graphs are not measured" in kernel["metrics_status"]["*"]) for kernel in kernels)
    expect_equal(output_text, collections.Counter({(32, "measured", False): 1, (32, "propagated", True): 1, (64, "none", True): 1}),
                 "source of the counters, and whether a graph is the reason")
    expect_equal(sums_of(output)["graphs"], 1, "graphs")
    (rule,) = [rule for rule in read_report("report", output, "--no-lines")["rules"] if rule["rule"] == "latency_bound"]
    assert "CUDA graphs are not measured" in rule["reason"], rule
    assert "1 graphs were launched: their kernels are not measured" in torsh("kernels", output, "--counters")


@case
def a_simulated_stream_that_waits_for_the_program_ends_measuring():
    output, truth, _ = measure_script("operators", """
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
launch(32)
need(cuda.cuLaunchHostFunc(stream, call, None))
launch(64, times=4)
synchronize()
launch(96)
synchronize()
""")
    expect_equal(threads_measured(output, truth), {32: 1}, "measured by threads")
    expect_equal(sums_of(output)["waiting"], 5, "left out")


@case
def simulated_contexts_come_and_go_while_kernels_are_measured():
    output, truth, _ = measure_script("operators", """
launch(32)
need(cuda.cuCtxDestroy_v2(context))
need(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
need(cuda.cuModuleLoadData(ctypes.byref(module), b"code"))
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
need(cuda.cuStreamCreate(ctypes.byref(stream), 1))
launch(64)
synchronize()
""")
    expect_equal(threads_measured(output, truth), {32: 1, 64: 1}, "measured by threads")


REFUSALS = {
    "cuptiProfilerInitialize=35": "NVreg_RestrictProfilingToAdminUsers=0",
    "cuptiRangeProfilerEnable=35": "CAP_SYS_ADMIN",
    "cuptiRangeProfilerEnable=40": "the host of this virtual GPU forbids it",
    "cuptiProfilerGetCounterAvailability=41": "confidential computing",
    "cuptiRangeProfilerEnable=43": "MIG",
    "cuptiDeviceGetChipName=45": "WSL",
    "cuptiRangeProfilerSetConfig=26": "another tool holds the counters",
    "cuptiRangeProfilerGetCounterDataSize=999": "CUPTI_ERROR_UNKNOWN",
    "cuptiRangeProfilerStart=7": "CUPTI_ERROR_INVALID_OPERATION",
    "cuptiRangeProfilerStop=7": "CUPTI_ERROR_INVALID_OPERATION",
    "cuptiRangeProfilerDecodeData=26": "another tool holds the counters",
    "cuptiSubscribe_v2=39": "another tool has CUPTI",
    "cuptiProfilerHostInitialize=46": "a newer one does",
}


def check_refused(counters, faults, word, **settings):
    output, truth, _ = measure(counters, [PROGRAM, 1, 20], faults=faults, **settings)
    report = report_of(output)
    expect_equal(report["kernels"][0]["calls"], len(of_kind(truth, "kernel")), f"kernels that are traced with {faults}")
    expect_equal(report["kernels"][0]["counters"], None, "counters")
    (refusal,) = [device for device in report["counters"] if device["mode"] == "off"]
    assert word in refusal["reason"], (faults, refusal)
    (note,) = [note for note in report["notes"] if note.startswith("counters: ")]
    assert word in note, (faults, note)


@case
def simulated_refusals_of_counters_are_explained_and_tracing_goes_on():
    for faults, word in REFUSALS.items():
        check_refused("operators", faults, word)


@case
def simulated_refusals_of_samples_are_explained_too():
    # The kernels last for longer than the thread needs to begin.
    for faults, word in {"cuptiPmSamplingEnable=35": "NVreg_RestrictProfilingToAdminUsers=0",
                         "cuptiPmSamplingGetCounterAvailability=26": "DCGM",
                         "cuptiPmSamplingSetConfig=27": "CUPTI_ERROR_NOT_SUPPORTED",
                         "cuptiPmSamplingStart=43": "MIG",
                         "cuptiPmSamplingDecodeData=7": "CUPTI_ERROR_INVALID_OPERATION"}.items():
        check_refused("timeline", faults, word, kernel_ns=5000000)


@case
def a_simulated_chip_that_libcupti_lacks_is_named():
    output, _, _ = measure("operators", [PROGRAM, 1, 5], arch=80)
    (device,) = report_of(output)["counters"]
    assert "does not support the device's chip" in device["reason"], device


def called(truth):
    return {line["name"] for line in of_kind(truth, "calls") if line["calls"]}


@case
def without_counters_simulated_cupti_gets_no_request_for_any():
    for counters in ("off", ""):
        output, truth, _ = measure(counters, [PROGRAM, 1, 20])
        names = {name for name in called(truth) if "Profiler" in name or "Sampling" in name}
        expect_equal(names, set(), "what was called for counters")
        expect_equal(report_of(output)["counters"], [], "counters")


@case
def simulated_counters_are_left_alone_by_a_forked_child():
    for counters in ("operators", "timeline"):
        output, truth, _ = measure(counters, [PROGRAM, 1, 10, "fork"])
        assert called(truth) >= {"cuptiProfilerInitialize"}, called(truth)


@case
def simulated_counters_are_there_after_underscore_exit():
    output, _, _ = measure("operators", [PROGRAM, 1, 10, "_exit"], expect=3)
    expect_equal(len(measured(events(output))), SAMPLES, "measured kernels")
    expect_equal(sums_of(output)["kernels"], SAMPLES, "sums")


def samples_of(found):
    """[(begin, end, {field: value})], by their begins."""
    fields, samples = fields_of(found), {}
    for event in found:
        if event["event"] == "counter_sample":
            key = event["begin_ns"], event["begin_ns"] + event["duration_ns"]
            samples.setdefault(key, {}).update(values_of(event, fields))
    return [(begin, end, samples[begin, end]) for begin, end in sorted(samples)]


def busy_ns(kernels, begin, end):
    return sum(max(0, min(stop, end) - max(start, begin)) for start, stop, _ in kernels)


@case
def samples_of_a_simulated_device_are_what_its_kernels_did():
    output, truth, _ = measure("timeline:200us", [PROGRAM, 1, 200], kernel_ns=700000)
    found, report = events(output), report_of(output)
    samples, sums = samples_of(found), report["counters"][0]["sums"]
    expect_equal((report["counters"][0]["interval_ns"], report["counters"][0]["mode"]), (200000, "timeline"), "how")
    expect_equal((sums["samples"], sums["failed"]), (len(samples), 0), "samples")
    assert len(samples) > 100, len(samples)
    (begin,) = of_kind(truth, "begin")
    offset = begin["wall_offset_ns"] - report["recording"]["start_realtime_ns"]
    kernels = [(line["start"] + offset, line["end"] + offset, threads_of(line)) for line in of_kind(truth, "kernel")]
    # The device has another clock: the report contains its accuracy.
    error = sums["clock_error_ns"] + 1000
    assert error <= 250000, sums
    for start, end, values in samples:
        expect_equal(end - start, 200000, "interval")
        busy, slack = values["gpu_active_cycles"] / 2, 2 * error
        assert abs(busy - busy_ns(kernels, start, end)) <= slack, (start, busy, busy_ns(kernels, start, end), slack)
        expect_equal(values["sm_active_cycles"], values["gpu_active_cycles"] * 66, "two that belong together")
    if not sums["lost"]:
        # Each kernel began in one sample: the sum is that of a whole number of kernels, all but those before and after.
        instructions = sum(values["executed_instructions"] for _, _, values in samples)
        inside = [threads for start, _, threads in kernels if samples[0][0] + error < start < samples[-1][1] - error]
        outside = [threads for start, _, threads in kernels if samples[0][0] - error < start < samples[-1][1] + error]
        assert 5 * sum(inside) <= instructions <= 5 * sum(outside), (sum(inside), instructions / 5, sum(outside))


def points_of(found):
    """{(name in exports, begin): value}"""
    return {(f"GPU 0 {field}", begin): value for begin, _, values in samples_of(found) for field, value in values.items()}


@case
@needs("consumers")
def samples_of_a_simulated_device_are_drawn():
    output, _, _ = measure("timeline:500us", [PROGRAM, 1, 50], kernel_ns=1000000)
    expected, traces = points_of(events(output)), scratch("traces")
    assert len(expected) > 14, expected
    torsh("export", output, "--format", "chrome", "-o", traces / "trace.json")
    torsh("export", output, "--format", "perfetto", "-o", traces / "trace.pftrace")
    drawn = [event for event in json.loads((traces / "trace.json").read_text())["traceEvents"]
             if event.get("cat") == "gpu_counter"]
    expect_equal({event["ph"] for event in drawn}, {"C"}, "what Chrome's are")
    expect_equal(collections.Counter((event["name"], round(event["ts"] * 1000), event["args"]["value"]) for event in drawn),
                 collections.Counter((name, begin, value) for (name, begin), value in expected.items()), "Chrome's counters")
    (rows,) = ask_trace_processor(traces / "trace.pftrace", "select track.name, counter.ts, counter.value from counter "
                                  "join counter_track track on counter.track_id = track.id where track.name like 'GPU %'")
    first = min(begin for _, begin in expected) - min(row["ts"] for row in rows)
    expect_equal(collections.Counter((row["name"], row["ts"] + first, row["value"]) for row in rows),
                 collections.Counter((name, begin, value) for (name, begin), value in expected.items()), "Perfetto's counters")


@case
def kernels_that_are_missing_beside_samples_are_reported():
    output, _, _ = measure("timeline", [PROGRAM, 1, 50], kernel_ns=2000000, lost_buffers=1)
    report = report_of(output)
    expect_equal(report["kernels"], [], "kernels")
    assert any("some versions of CUPTI hand over no records" in note for note in report["notes"]), report["notes"]


@case
def two_simulated_devices_are_sampled():
    output, _, _ = measure_script("timeline", """
import time
second = ctypes.c_void_p()
launch(32)
need(cuda.cuCtxCreate_v2(ctypes.byref(second), 0, 1))
need(cuda.cuModuleLoadData(ctypes.byref(module), b"code"))
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
need(cuda.cuStreamCreate(ctypes.byref(stream), 1))
launch(64, times=100)
synchronize()
""", devices=2, kernel_ns=3000000)
    devices = {event["device"] for event in events(output) if event["event"] == "counter_sample"}
    expect_equal(devices, {0, 1}, "devices with samples")


@case
@needs("torch")
def pytorchs_kernels_on_simulated_cuda_are_measured_by_kind_of_launch():
    python = cuda_python()
    if used["version"] == "12":
        raise Skip("the first CUPTI with these counters is that of CUDA 12.6")
    output, truth, _ = measure("operators", [python, "-c", TRAIN])
    found = events(output)
    by_correlation = {line["correlation"]: line for line in of_kind(truth, "kernel")}
    seen = collections.Counter(shape_of(by_correlation[correlation]) for correlation in measured(found))
    launched = collections.Counter(shape_of(line) for line in by_correlation.values())
    assert seen, "nothing was measured"
    for correlation, values in measured(found).items():
        line = by_correlation[correlation]
        expect_equal(values, {name: value(duration_ns(line), threads_of(line)) for name, value in KERNEL_VALUES.items()},
                     "values")
    left_out = sum(sums_of(output)[name] for name in ("collective", "waiting", "capturing", "busy", "failed"))
    expect_equal(sum(min(SAMPLES, n) for n in launched.values()) - sum(seen.values()) <= left_out, True, "left out")
    assert all(n <= SAMPLES for n in seen.values()), seen


@case
def unknown_counters_are_named():
    for value in ("on", "operators:3", "timeline:1", "timeline:10us", "timeline:2s", "timeline:", "operators,timeline"):
        _, truth, stderr = measure(value, [PROGRAM, 1, 2])
        assert f"TORSH_PROFILER_COUNTERS={value} is not understood" in stderr, stderr
        assert "operators:2, operators:full" in stderr, stderr


if __name__ == "__main__":
    main()
