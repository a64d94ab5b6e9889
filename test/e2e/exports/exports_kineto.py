#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Chrome's JSON next to the trace that PyTorch's Kineto made of the same steps: devices, kernels
and CUDA calls, key by key; and the results of programs for Kineto's traces from each of the two."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from consumers import run_python  # noqa: E402
from exported import exported  # noqa: E402
from environments import TORCH  # noqa: E402
from simcuda import recorded_once  # noqa: E402

STEPS = 4
DEVICES = 2
OF_DEVICES = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")

# Kernels of many shapes on two devices and two streams, with NCCL's among them; the schedule marks the steps for both.
SCRIPT = f"""
import sys, torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
side, far = torch.cuda.Stream(), torch.ones(256, device="cuda:1")
dist.init_process_group("nccl", init_method=f"file://{{sys.argv[1]}}/meeting", rank=0, world_size=1)
def step():
    x = torch.randn(128, 64).pin_memory().cuda(non_blocking=True)
    optimizer.zero_grad()
    model(x).softmax(1).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    with torch.cuda.stream(side):
        torch.zeros(1 << 20, device="cuda").add_(1).sort()
    far.mul_(2)
    optimizer.step()
    for device in range({DEVICES}):
        torch.cuda.synchronize(device)
step()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=0, warmup=1, active={STEPS}),
             on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"{{sys.argv[1]}}/kineto.json")) as profiler:
    for _ in range({STEPS} + 1):
        step()
        profiler.step()
step()
dist.destroy_process_group()
"""

# Parts of Kineto's trace that are not recorded, or only have other numbers; attributes of
# collectives are on the operator here, and again on the kernel there.
UNRECORDED = {"priority", "channel", "channel_type", "cbid", "External id", "blockLimitBarriers"}
OF_COLLECTIVES = {"Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "In split size", "Out split size",
                  "Process Group Name", "Process Group Description", "Process Group Ranks", "Seq", "Comms Id"}


def trained():
    """Our trace of the steps that Kineto traced, too, and Kineto's, of one training; each alone in a folder."""
    folder, own = scratch("kineto"), scratch("ours")
    written = shared(f"kineto-with-nccl-{TORCH}")
    output, _ = recorded_once("with-nccl", "-c", SCRIPT, written, devices=DEVICES, processors=7)
    theirs = shutil.copy(written / "kineto.json", folder / "kineto.json")
    marked = [event["name"] for event in json.loads(theirs.read_text())["traceEvents"]
              if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"]
    numbers = sorted(int(name.partition("#")[2]) for name in marked)
    steps = [step["index"] for step in read_report("steps", output, "--limit", "0")["steps"]]
    expect_equal(len(numbers), STEPS, "steps that Kineto traced")
    shutil.move(exported(output, "ours.json", "--format", "chrome", "--steps", f"{steps[numbers[0]]}-{steps[numbers[-1]]}"),
                own / "ours.json")
    return own / "ours.json", theirs


def key_of(event):
    return event["args"]["correlation"], event["args"].get("graph node id", 0)


def of_categories(trace, categories):
    return {key_of(event): event for event in trace["traceEvents"] if event.get("cat") in categories}


def differences(mine, theirs, path=""):
    """What theirs has and mine has not, or otherwise: of numbers as floats have them."""
    for name, value in theirs.items():
        if name in UNRECORDED | OF_COLLECTIVES:
            continue
        own = mine.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            yield from differences(own, value, f"{path}{name}.")
        elif isinstance(value, float) and isinstance(own, (int, float)):
            if abs(own - value) > 1e-6 * abs(value):
                yield f"{path}{name}: {own} instead of {value}"
        elif own != value:
            yield f"{path}{name}: {own} instead of {value}"


def devices_have_the_same_properties(ours, theirs):
    mine, expected = (json.loads(path.read_text())["deviceProperties"] for path in (ours, theirs))
    expect_equal(len(expected), DEVICES, "Kineto's devices")
    expect_equal(mine, expected, "deviceProperties")


def rows_of_devices_have_the_same_arguments(ours, theirs):
    mine, expected = (of_categories(json.loads(path.read_text()), OF_DEVICES) for path in (ours, theirs))
    expect_equal(set(mine), set(expected), "rows of devices")
    occupancies = set()
    for key, event in expected.items():
        own = mine[key]
        printed = dict(event["args"])
        # A time has been converted from one clock to the other: what follows from it differs a little.
        printed.pop("memory bandwidth (GB/s)", None)
        assert ("memory bandwidth (GB/s)" in own["args"]) == (event["cat"] != "kernel"), own
        expect_equal([own[name] for name in ("name", "cat", "pid", "tid")],
                     [event[name] for name in ("name", "cat", "pid", "tid")], "row")
        expect_equal(list(differences(own["args"], printed)), [], f"arguments of {event['name']}")
        occupancies.add(event["args"].get("est. achieved occupancy %"))
    assert len(occupancies) > 3, f"all kernels are alike: {occupancies}"


def in_steps(trace):
    """Not what Kineto itself calls before and after."""
    steps = [event for event in trace["traceEvents"]
             if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"]
    begin, end = min(step["ts"] for step in steps), max(step["ts"] + step["dur"] for step in steps)
    return {key: event for key, event in of_categories(trace, CALLS).items() if begin <= event["ts"] < end}


def calls_of_cuda_are_the_same(ours, theirs):
    mine, expected = (in_steps(json.loads(path.read_text())) for path in (ours, theirs))
    seen = {key: event for key, event in expected.items() if key in mine}
    for key, event in seen.items():
        # CUDA 13 has underscores before names that readers expect without them.
        expect_equal([mine[key][name] for name in ("name", "cat", "pid", "tid")],
                     [event["name"].lstrip("_"), *(event[name] for name in ("cat", "pid", "tid"))], "call")
        # CUPTI measures inside of what it calls back around.
        assert mine[key]["dur"] + 2 >= event["dur"], (mine[key], event)
    # What neither gives a device work nor can wait is not recorded.
    left_out = {event["name"] for key, event in expected.items() if key not in mine}
    waits = {name for name in left_out if any(word in name for word in ("Launch", "Memcpy", "Memset", "Synchronize", "Wait",
                                                                         "Malloc", "Free", "EventRecord"))}
    expect_equal(waits, set(), "calls that only Kineto has")
    assert {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize"} <= {event["name"].lstrip("_") for event in seen.values()}


PLUGIN = """
import json, multiprocessing, os, sys
os.environ["TORCH_PROFILER_START_METHOD"] = "fork"
from torch_tb_profiler.io import cache
from torch_tb_profiler.profiler.gpu_metrics_parser import GPUMetricsParser
from torch_tb_profiler.profiler.loader import RunLoader
span = multiprocessing.Value("d")
parse_events = GPUMetricsParser.parse_events
def parsed(events, whole_start, whole_end, start, end):
    span.value = end - start
    return parse_events(events, whole_start, whole_end, start, end)
GPUMetricsParser.parse_events = parsed
with cache.Cache() as files:
    (profile,) = RunLoader("run", sys.argv[1], files).load().profiles.values()
table = profile.kernel_table["data"]
names = [column["name"] for column in table["columns"]]
rows = [dict(zip(names, row)) for row in table["rows"]]
print(json.dumps({"span": span.value, "summary": [[item["title"], item["value"]] for item in profile.gpu_summary], "views": sorted(view.display_name for view in profile.views),
                  "kernels": {row["Name"]: [row["Calls"], row["Mean Blocks Per SM"], row["Mean Est. Achieved Occupancy (%)"]] for row in rows}}))
"""


def as_a_run(path):
    """Where the plugin finds it."""
    folder = scratch("run")
    shutil.copy(path, folder / "worker_1.pt.trace.json")
    return folder


def expect_near(mine, theirs, within, what):
    assert abs(mine - theirs) <= within, f"{what}: {mine} instead of {theirs}"


def the_plugin_computes_the_same(ours, theirs):
    mine, expected = (run_python(PLUGIN, as_a_run(path)) for path in (ours, theirs))
    # What it takes for the steps' time: it moves their begins and ends to those of the device's work. An observer that is
    # called a little later sees them end a little later.
    of_steps = expected["span"] / mine["span"]
    expect_equal([title for title, _ in mine["summary"]], [title for title, _ in expected["summary"]], "what it summarizes")
    titles = [title for title, _ in mine["summary"]]
    for title in ("Name", "Memory", "Compute Capability", "GPU Utilization", "Est. SM Efficiency", "Est. Achieved Occupancy"):
        expect_equal(titles.count(title), DEVICES, title)
    for (title, value), (_, printed) in zip(mine["summary"], expected["summary"]):
        if value.endswith(" %"):
            # Shares of the steps' time, but for occupancy; kernels have their times from two clocks and roundings.
            share = float(printed[:-2]) * (1 if title == "Est. Achieved Occupancy" else of_steps)
            expect_near(float(value[:-2]), share, 0.02 * share + 0.05, title)
        else:
            expect_equal(value, printed, title)
    expect_equal(set(mine["kernels"]), set(expected["kernels"]), "kernels")
    for name, (calls, blocks, occupancy) in expected["kernels"].items():
        expect_equal(mine["kernels"][name][0], calls, f"calls of {name}")
        expect_near(mine["kernels"][name][1], blocks, 0.02, f"blocks per SM of {name}")
        expect_near(mine["kernels"][name][2], occupancy, 0.02, f"occupancy of {name}")


HTA = """
import json, os, sys
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from hta.trace_analysis import TraceAnalysis
# With the last step: which one that is HTA takes from Kineto's rows of devices, too, and cuts it somewhere.
analysis = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
queues = analysis.get_queue_length_time_series()[0]
idle, _ = analysis.get_idle_time_breakdown(visualize=False)
bandwidth = analysis.get_memory_bw_summary()
print(json.dumps({
    "kinds": {row.kernel_type: row["sum"] for _, row in kinds.iterrows() if "overlapping" not in row.kernel_type},
    "kernels": {row["name"]: row["sum (us)"] for _, row in kernels.iterrows()},
    "temporal": analysis.get_temporal_breakdown(visualize=False).iloc[0].astype(float).to_dict(),
    "overlap": analysis.get_comm_comp_overlap(visualize=False).iloc[0].astype(float).to_dict(),
    "idle": {int(stream): rows["idle_time"].sum() for stream, rows in idle.groupby("stream")},
    "idle_kinds": sorted(set(idle["idle_category"])),
    "launches": {int(row["correlation"]): row["gpu_duration"] for _, row in launches.iterrows()},
    "queues": {f"{pid} {stream}": [len(rows), int(rows["queue_length"].min()), int(rows["queue_length"].iloc[-1])]
               for (pid, stream), rows in queues.groupby(["pid", "stream"])},
    "copies": sorted(set(map(str, bandwidth.index.get_level_values(-1)))),
}, default=float))
"""


def with_plain_names(path):
    """A copy in a folder of its own: for CUDA 13, HTA recognises launches only without the
    underscores before their names."""
    folder = scratch("plain")
    (folder / "trace.json").write_text(path.read_text().replace('"__cuda', '"cuda'))
    return folder


def holistic_trace_analysis_computes_the_same(ours, theirs):
    mine, expected = run_python(HTA, ours.parent), run_python(HTA, with_plain_names(theirs))
    for part in ("kinds", "kernels", "temporal", "overlap", "idle", "launches"):
        expect_equal(set(mine[part]), set(expected[part]), part)
        for name, value in expected[part].items():
            # Times in microseconds, each converted from one clock to the other and back; begins and ends of some 200 rows
            # are cut to whole ones where HTA adds up what overlaps.
            expect_near(mine[part][name], value, 0.005 * abs(value) + (1 if part in ("kernels", "launches") else 40),
                        f"{part}: {name}")
    for part in ("idle_kinds", "queues", "copies"):
        expect_equal(mine[part], expected[part], part)
    assert mine["kinds"]["COMMUNICATION"] and len(mine["launches"]) > 100, mine["kinds"]


def check(*checks):
    found = trained()
    for one in checks:
        one(*found)


check.needs = ["torch"]
add_case("chrome_traces_say_what_kinetos_say", check,
         devices_have_the_same_properties,
         rows_of_devices_have_the_same_arguments,
         calls_of_cuda_are_the_same)
add_case("programs_for_kinetos_traces_compute_the_same_from_ours", check,
         the_plugin_computes_the_same,
         holistic_trace_analysis_computes_the_same)


main()
