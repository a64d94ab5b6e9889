#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The owners of a device's memory, on the simulated CUDA: of each kind as many bytes as the model's own objects have in the
blocks of PyTorch's allocator, at marks and at the peak; of programs without a framework what the simulation's log has. They
always add up to what the driver says.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import TORCH  # noqa: E402
from html_report import data_of, opened, written  # noqa: E402
from schema import expect_fits  # noqa: E402
from simcuda import (LIBRARIES, cuda_python, need_simcuda, of_kind, preloaded, record_simulated,  # noqa: E402
                     recording_environment)

PROGRAM = ROOT / "test/simcuda/programs/owners.py"
KINDS = ("parameters", "gradients", "optimizer_state", "activations", "inputs")
OTHERS = ("outputs", "temporaries", "workspace", "unknown")
TRAININGS = ("scaled", "frozen", "adam", "accumulated", "checkpointed", "convolutional", "attention", "recurrent")
SHORT = ("adam", "attention")
MIB = 1 << 20
TOTAL, BESIDE, CONTEXT, WORKSPACE = 2 << 30, 300 * MIB, 321 * MIB, 8 * MIB
WITHOUT_STACKS = {"TORSH_PROFILER_ACTIVITIES": "torch,cuda"}


def ran(name, env=None, *arguments):
    """The recording of a run of the program, and what it knows of its memory."""
    def make(folder):
        result = run([cuda_python(), "-W", "ignore", PROGRAM, name, *arguments],
                     recording_environment(folder, folder / "truth", env), timeout=300)
        expect_equal(result.returncode, 0, result.stderr.decode()[-2000:])
        return str(folder), json.loads(result.stdout)
    words = [name, *(env or {}).values(), *arguments, TORCH]
    output, truth = once("owners-" + "-".join(words).replace("/", "_"), make)
    return pathlib.Path(output), truth


def owners_of(output, moment="peak", device="cuda:0", *arguments):
    report = read_report("peak", output, "--device", device, "--at", moment, "--limit", "1", *arguments)
    expect_fits("peak", report)
    expect_equal(report["attributed_bytes"], report["moment"]["bytes"], f"holders at {moment}")
    whole = report["moment"]["bytes"] if report["driver_bytes"] is None else report["driver_bytes"]
    expect_equal(sum(owner["bytes"] for owner in report["owners"]), whole, f"sum of the owners at {moment}")
    return report


def by_kind(report):
    found = collections.Counter()
    for owner in report["owners"]:
        found[owner["kind"]] += owner["bytes"]
    return found


def compare(what, report, expected):
    found = by_kind(report)
    wrong = {kind: (found[kind], expected.get(kind, 0)) for kind in KINDS if found[kind] != expected.get(kind, 0)}
    assert not wrong, (what, "found, expected", wrong, report["owners"])
    expect_equal(sum(found[kind] for kind in OTHERS), expected.get("others", 0) + expected.get("outputs", 0), f"others, {what}")
    expect_equal(found["unknown"], 0, f"unknown, {what}")


def compare_free(what, report, expected):
    """The allocator's free blocks, and those of private pools, as PyTorch lists them."""
    shared, private = expected
    cache, found = report["cache"], by_kind(report)
    expect_equal((cache["free_bytes"], cache["free_blocks"], cache["largest_free_bytes"]),
                 (sum(shared), len(shared), max(shared, default=0)), f"free blocks, {what}")
    expect_equal((found["cache"], found["graph_pool"]), (sum(shared), sum(private)), f"cache and private pools, {what}")


def compare_all(name, env=None):
    """At the peak, at the last mark, and at those within the third step."""
    output, truth = ran(name, env)
    for moment, expected in truth["owners"].items():
        if " " in moment and (" 2" not in moment or moment.startswith("step")):
            continue
        report = owners_of(output, moment)
        compare(f"{name} at {moment}", report, expected)
        if moment in truth["free"]:
            compare_free(f"{name} at {moment}", report, truth["free"][moment])
    return output, truth["owners"]


@needs("torch")
def tensors_have_the_kinds_that_the_models_objects_have(name):
    _, truth = compare_all(name)
    last = truth["last"]
    assert last["parameters"] and last["gradients"], last
    print(name, {moment: dict(found) for moment, found in truth.items() if moment in ("peak", "last")})


for training in TRAININGS:
    add = add_case if training in SHORT else add_long_case
    add(f"tensors_of_a_training_have_the_kinds_of_the_models_objects_{training}", tensors_have_the_kinds_that_the_models_objects_have, training)


@case
@needs("torch")
def without_stacks_shapes_tell_parameters():
    for name in ("adam", "placed"):
        compare_all(name, WITHOUT_STACKS)


@case
@needs("torch")
def the_optimizers_state_is_what_it_keeps():
    for name, times in (("sgd", 0), ("momentum", 1), ("adam", 2)):
        output, truth = ran(name)
        truth = truth["owners"]
        report = owners_of(output, "last")
        compare(f"{name} at last", report, truth["last"])
        found = by_kind(report)
        elements = truth["last"]["gradients"]  # all of them are of trained parameters
        assert (times == 0) == (found["optimizer_state"] == 0), found
        # A large block may have up to 1 MiB that is not split off.
        assert times * elements <= found["optimizer_state"] <= times * elements + (1 << 20) * times, (found, truth["last"])


@case
@needs("torch")
def inference_has_no_gradients_and_no_state():
    output, truth = compare_all("inference")
    for moment in truth:
        found = by_kind(owners_of(output, moment))
        expect_equal((found["gradients"], found["optimizer_state"], found["activations"]), (0, 0, 0), moment)
    expect_equal(by_kind(owners_of(output, "last"))["outputs"], truth["last"]["outputs"], "results that are kept")


@case
@needs("torch")
def a_fragmented_cache_shows_its_largest_block_and_what_was_requested():
    output, _ = compare_all("fragmented")
    cache = owners_of(output, "fragmented")["cache"]
    expect_equal((cache["free_bytes"], cache["largest_free_bytes"], cache["free_blocks"]), (60 * MIB, 20 * MIB, 5), "free")
    assert abs(cache["fragmentation"] - 2 / 3) < 1e-9, cache
    growth = owners_of(output, "last")["cache"]["last_growth"]
    expect_equal((growth["requested_bytes"], growth["free_bytes"], growth["largest_free_bytes"], growth["free_blocks"]),
                 (30 * MIB, 60 * MIB, 20 * MIB, 5), "the request that made it grow")
    text = torsh("peak", output, "--device", "cuda:0", "--at", "last")
    assert "the largest block 20.0 MiB, and 20.0 MiB of 60.0 MiB free when it grew last, for 30.0 MiB" in text, text


@case
@long
@needs("torch")
def expandable_segments_have_free_blocks_too():
    env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    for name in ("adam", "fragmented"):
        compare_all(name, env)


@case
@long
@needs("torch")
def tensors_of_an_allocator_that_reports_nothing_have_kinds_too():
    # Their sizes are those that were requested: that of no block of PyTorch's allocator.
    output, truth = ran("momentum", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, "requested")
    report = owners_of(output, "last")
    found = by_kind(report)
    expect_equal({kind: found[kind] for kind in KINDS}, {kind: truth["requested"].get(kind, 0) for kind in KINDS}, "kinds")
    expect_equal((found["direct"], found["cache"], report["cache"]), (0, 0, None), "it is no framework's allocator")


@case
@needs("torch")
def private_pools_of_graphs_are_told_from_the_cache():
    output, _ = compare_all("captured")
    assert by_kind(owners_of(output, "last"))["graph_pool"] > by_kind(owners_of(output, "before"))["graph_pool"] == 0


@case
@needs("torch")
def moments_are_found_by_step_and_time_too():
    output, _ = ran("adam")
    by_step = read_report("peak", output, "--device", "cuda:0", "--step", "1")
    expect_equal((by_step["moment"]["kind"], by_kind(by_step)), ("step", by_kind(owners_of(output, "step 1"))), "by step")
    mark = owners_of(output, "forward 2.0")["moment"]
    by_time = owners_of(output, f"{mark['at_ns']}ns")
    expect_equal((mark["kind"], by_time["moment"]), ("mark", {**mark, "kind": "time"}), "by time")
    start = owners_of(output, "start")
    expect_equal((start["moment"]["bytes"], start["owners"]), (0, []), "at the start")
    for options, sentence in ((("--at", "never"), 'has no mark "never"'), (("--step", "99"), "has no step 99"),
                              (("--since", "start"), "--device shows single moments"), (("--steps", "1-2"), "single moments")):
        result = run([TORSH, "peak", output, "--device", "cuda:0", *options])
        expect_equal(result.returncode, 2, f"status with {options}")
        assert sentence in result.stderr.decode(), (options, result.stderr.decode())


@case
@needs("torch")
def the_report_and_the_page_have_the_kinds():
    output, truth = ran("adam")
    found = by_kind(owners_of(output))
    report = read_report("report", output)
    expect_fits("report", report)
    owners = report["devices"]["owners"]
    kinds = {kind["kind"]: kind["bytes"] for kind in owners["kinds"]}
    expect_equal((owners["device"], kinds), ("cuda:0", dict(found)), "in the report")
    expect_equal(sum(kinds.values()), owners["driver_bytes"], "the driver's")
    expect_equal([kind["bytes"] for kind in owners["kinds"]], sorted(kinds.values(), reverse=True), "order")
    assert "at the peak of cuda:0: cache " in torsh("report", output), "on the screen"
    assert "state of the optimizer: aten::zeros_like 27.6 MiB" in torsh("report", output, "-v"), "in full"
    path = written(output)
    page = data_of(path)
    expect_equal({row[3] for row in page["device_owners"]}, set(found.values()), "on the page")
    expect_equal({row[4] for row in page["device_owners"]}, {owners["driver_bytes"]}, "the whole on the page")
    with opened(path) as shown:
        shown.open("devices")
        assert "Owners of the memory at the peak" in shown.texts("h2"), shown.texts("h2")
        cells = shown.texts("td")
        assert "state of the optimizer" in cells and "27.6 MiB" in cells, cells


def direct_program():
    need_simcuda()
    return BUILD / "simcuda/programs/direct"


def sum_by_name(report, kind):
    return {owner["name"]: (owner["bytes"], owner["blocks"]) for owner in report["owners"] if owner["kind"] == kind}


def rest_of(truth, live):
    """What the driver counts beyond what was requested: it rounds up."""
    return sum(-(-n // 512) * 512 - n for n in live)


@case
def memory_of_a_program_without_a_framework_is_its_lines():
    for faults in ("", "cuptiSubscribe_v2=999@1"):
        output, truth = record_simulated([direct_program()], memory=TOTAL, others=BESIDE, context=CONTEXT, faults=faults)
        (context,) = [line["bytes"] for line in of_kind(truth, "context")]
        expect_equal(context, CONTEXT, "of the context")
        lines = of_kind(truth, "alloc", "free")
        peak = owners_of(output)
        at_peak = [line["bytes"] for line in lines[:4]]
        expect_equal(peak["moment"]["bytes"], sum(at_peak), "at the peak")
        expect_equal(peak["driver_bytes"], TOTAL - lines[3]["left"], "of the driver")
        found = {name.split(",")[0]: sums for name, sums in sum_by_name(peak, "direct").items()}
        expect_equal(found, {"take": (sum(at_peak), 4)}, "by line")
        # The context, and programs beside it: beyond what the first allocation requested.
        expect_equal(by_kind(peak)["context"], CONTEXT + BESIDE + rest_of(truth, at_peak[:1]), "context")
        expect_equal(by_kind(peak)["remainder"], rest_of(truth, at_peak[1:]), "remainder")
        end = owners_of(output, "end")
        expect_equal(end["driver_bytes"], TOTAL - lines[-1]["left"], "of the driver at the end")
        expect_equal(by_kind(end)["direct"], sum(at_peak[:3]) + lines[-1]["bytes"], "at the end")
        expect_equal(end["cache"], None, "there is no framework")


@case
def a_moment_at_which_the_driver_was_not_queried_has_no_figure_of_its():
    output, truth = record_simulated([direct_program()], memory=TOTAL, faults="cuMemGetInfo_v2=999")
    peak = owners_of(output)
    expect_equal((peak["driver_bytes"], peak["driver_ns"]), (None, None), "not queried")
    assert "was not queried" in peak["driver_reason"], peak["driver_reason"]
    expect_equal(set(by_kind(peak)), {"direct"}, "only what was allocated")
    assert "owners of what was allocated: " in torsh("peak", output, "--device", "cuda:0")


LIBRARIES_USED = """
import ctypes, sys
cuda, blas = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcublas.so.13")
nccl = ctypes.CDLL("libnccl.so.2")
class Unique(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
def need(result):
    if result:
        sys.exit(f"error {result}")
need(cuda.cuInit(0))
context, handle, communicator, own = (ctypes.c_void_p() for _ in range(4))
need(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
for _ in range(2):
    need(blas.cublasCreate_v2(ctypes.byref(handle)))
need(nccl.ncclCommInitRank(ctypes.byref(communicator), 1, Unique(), 0))
need(cuda.cuMemAlloc_v2(ctypes.byref(own), ctypes.c_size_t(5 << 20)))
"""


@case
def workspaces_are_those_of_the_library_on_the_stack():
    for faults in ("", "cuptiSubscribe_v2=999@1"):
        output, truth = record_simulated([sys.executable, "-c", LIBRARIES_USED], memory=TOTAL, workspace=WORKSPACE, faults=faults)
        end = owners_of(output, "end")
        expect_equal(sum_by_name(end, "workspace"), {"cublas": (2 * WORKSPACE, 2), "nccl": (WORKSPACE, 1)}, "workspaces")
        ((name, own),) = sum_by_name(end, "direct").items()
        expect_equal(own, (5 * MIB, 1), f"own: {name}")
        expect_equal(end["driver_bytes"], TOTAL - of_kind(truth, "alloc")[-1]["left"], "of the driver")


@case
def other_processes_of_the_session_are_owners():
    need_simcuda()
    turns = [[0, 8 * MIB], [1, 3 * MIB], [0, 16 * MIB], [1, 2 * MIB], [0, -16 * MIB], [1, 4 * MIB]]
    output = scratch()
    variables = agent_environment(output, TURNS_ON="[0, 0]", SIMCUDA_FIRST_DEVICE="0", SIMCUDA_MEMORY=TOTAL,
                                  SIMCUDA_SHARED=scratch("shared") / "users", SIMCUDA_CONTEXT=CONTEXT)
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{preloaded()}"
    variables["LD_LIBRARY_PATH"] = str(LIBRARIES)
    result = run([sys.executable, ROOT / "test/python/turns.py", "spawn", json.dumps(turns)], variables)
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    first, second = json.loads(result.stdout)
    peak = owners_of(output, "peak", "cuda:0")
    expect_equal((peak["pid"], peak["moment"]["bytes"]), (first, 24 * MIB), "the first process")
    ((name, (others, _)),) = sum_by_name(peak, "other_processes").items()
    assert name.endswith(f"(pid {second})"), name
    # What it allocated then, and its context, which NVML counts.
    expect_equal((others, by_kind(peak)["context"], by_kind(peak)["remainder"]), (3 * MIB + CONTEXT, CONTEXT, 0), "contexts")
    expect_equal(peak["driver_bytes"], 24 * MIB + 3 * MIB + 2 * CONTEXT, "of the driver")


# Loads code as a module and as a library, before and after it gets memory, and unloads some.
CODE_LOADED = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def need(result):
    if result:
        sys.exit(f"error {result}")
need(cuda.cuInit(0))
context, own, inner, late, library = (ctypes.c_void_p() for _ in range(5))
need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
need(cuda.cuCtxSetCurrent(context))
def load(into):
    need(cuda.cuModuleLoadData(ctypes.byref(into), b"code"))
load(own)
load(inner)
need(cuda.cuModuleUnload(inner))
block = ctypes.c_void_p()
need(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(5 << 20)))
load(late)
need(cuda.cuLibraryLoadData(ctypes.byref(library), b"code", None, None, 0, None, None, 0))
need(cuda.cuCtxSetLimit(1, ctypes.c_size_t(3 << 20)))
"""
MODULE = 9 * MIB


@case
def code_of_modules_is_an_owner_by_who_loaded_it():
    for faults in ("", "cuptiSubscribe_v2=999@1"):
        output, truth = record_simulated([sys.executable, "-c", CODE_LOADED], memory=TOTAL, context=CONTEXT, module=MODULE, faults=faults)
        loaded = [line["bytes"] for line in of_kind(truth, "module")]
        expect_equal(loaded, [MODULE] * 4, "of the log")
        end = owners_of(output, "end")
        expect_equal(sum(bytes for bytes, _ in sum_by_name(end, "code").values()), 3 * MODULE, "code that is loaded")
        expect_equal(sum(n for _, n in sum_by_name(end, "code").values()), 3, "modules")
        expect_equal((by_kind(end)["context"], by_kind(end)["remainder"]), (CONTEXT, 0), f"context and remainder: {end['owners']}")
        expect_equal((end["modules_unmeasured"], end["context_limits"]["printf_bytes"]), (0, 3 << 20), "limits")
        peak = owners_of(output)  # the allocation: right after it, one module is there
        expect_equal((by_kind(peak)["code"], by_kind(peak)["context"], by_kind(peak)["remainder"]), (MODULE, CONTEXT, 0), "at the peak")
        assert "code of modules: " in torsh("peak", output, "--device", "cuda:0"), "on the screen"


@case
def code_that_cannot_be_measured_is_counted():
    output, _ = record_simulated([sys.executable, "-c", CODE_LOADED], memory=TOTAL, context=CONTEXT, module=MODULE,
                                 faults="cuMemGetInfo_v2=999@1,cuMemGetInfo_v2=999@2")
    end = owners_of(output, "end")
    expect_equal(end["modules_unmeasured"], 1, "modules")
    assert "1 modules were loaded while" in torsh("peak", output, "--device", "cuda:0", "--at", "end")


# Holds memory of the device, says so, and waits until its input ends.
HOLDER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
assert not cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(64 << 20))
print("holds", flush=True)
sys.stdin.read()
"""
HELD = 64 * MIB
BESIDE_HOLDER = CODE_LOADED.replace("load(late)", "load(late)\nneed(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(7 << 20)))")


def beside_a_holder(libraries=LIBRARIES, faults="", **settings):
    """The recording of a program beside a process that is not recorded, and that one's pid."""
    shared = scratch("shared") / "users"
    settings = {"memory": TOTAL, "context": CONTEXT, "module": MODULE, "shared": shared, **settings}
    variables = clean_environment()
    variables.update({f"SIMCUDA_{name.upper()}": str(value) for name, value in settings.items()})
    variables.update({"LD_LIBRARY_PATH": str(LIBRARIES), "LD_PRELOAD": preloaded()})
    with subprocess.Popen([sys.executable, "-c", HOLDER], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        expect_equal(holder.stdout.readline(), b"holds\n", "of the holder")
        output, _ = record_simulated([sys.executable, "-c", BESIDE_HOLDER], env={"LD_LIBRARY_PATH": str(libraries)}, faults=faults, **settings)
        holder.stdin.close()
        expect_equal(holder.wait(), 0, "status of the holder")
    return output, holder.pid


def expect_holder(report, pid):
    ((name, (others, _)),) = sum_by_name(report, "other_processes").items()
    assert name.endswith(f"(pid {pid})"), name
    expect_equal((others, by_kind(report)["context"], by_kind(report)["remainder"]), (HELD + CONTEXT, CONTEXT, 0), "others")
    expect_equal(report["users"]["used_bytes"], sum(process["bytes"] for process in report["users"]["processes"]), "used by all")
    assert pid in [process["pid"] for process in report["users"]["processes"]], report["users"]


@case
def processes_that_are_not_recorded_are_owners_by_nvml():
    output, pid = beside_a_holder()
    expect_holder(owners_of(output), pid)
    expect_holder(owners_of(output, "end"), pid)
    shown = torsh("peak", output, "--device", "cuda:0")
    assert f"(pid {pid}) 385 MiB" in shown, shown


@case
def an_old_nvml_lists_them_too():
    output, pid = beside_a_holder(BUILD / "simcuda/old_nvml")
    expect_holder(owners_of(output), pid)


@case
def why_others_are_not_known_is_said():
    nowhere = scratch("nowhere")
    for reason, arguments in (("libnvidia-ml.so.1 was not found", {"libraries": nowhere}),
                              ("the driver allows no list of the processes", {"faults": "nvmlDeviceGetComputeRunningProcesses_v3=4"}),
                              ("the driver allows no access to", {"faults": "nvmlInit_v2=4"}),
                              ("does not tell how much each process uses", {"hides_processes": 1})):
        output, _ = beside_a_holder(**arguments)
        report = owners_of(output, "end")
        assert reason in report["users_reason"], (reason, report["users_reason"])
        expect_equal((report["users"], by_kind(report)["other_processes"]), (None, 0), reason)
        # They are what the driver had beyond what is known: with the context, whose size is a driver's secret.
        expect_equal((by_kind(report)["context"], by_kind(report)["remainder"]), (HELD + 2 * CONTEXT, 0), reason)
        assert reason in torsh("peak", output, "--device", "cuda:0"), "on the screen"


if __name__ == "__main__":
    main()
