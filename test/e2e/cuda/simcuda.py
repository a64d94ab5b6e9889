#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that nvcc compiled, and PyTorch's CUDA build from PyPI, run unmodified on the simulated
CUDA; what they and Kineto report about the device is what the simulation did."""

import collections
import itertools
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from simcuda import LIBRARIES, cuda_python, duration_ns, need_simcuda, of_kind, preload_names, read_truth, simulate  # noqa: E402

PROGRAMS_SOURCE = ROOT / "test/simcuda/programs"
KERNEL_NS = 100_000
LAUNCHES, REPLAYS = 10, 5

# A thread as autograd has them, which works on when the program is at its end, and then waits for work for ever.
BUSY_AT_THE_END = """
import ctypes, threading, time
def work():
    ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)  # PR_SET_NAME
    named.set()
    time.sleep(0.5)
    print("released", flush=True)
    for_ever = threading.Lock()
    for_ever.acquire()
    for_ever.acquire()
named = threading.Event()
threading.Thread(target=work, daemon=True).start()
named.wait()
"""


def compiled(name):
    """A CUDA program of test/simcuda/programs, which make has nvcc compile with the shared runtime."""
    need_simcuda()
    program = BUILD / "simcuda/programs" / name
    if not program.exists():
        raise Skip("nvcc is not on this machine")
    return program


def ran(program, truth=None, **settings):
    result = simulate([program], truth, **settings)
    expect_equal(result.returncode, 0, result.stderr.decode())
    return result.stdout.decode().splitlines()


@case
def a_compiled_program_runs_as_on_a_device():
    printed = ran(compiled("streams"), clock="virtual", kernel_ns=KERNEL_NS)
    expect_equal(printed[:2], ["devices 1", "copies agree"], "first lines")
    expect_equal(printed[3:], ["nodes 3", "host calls 1, symbol 5"], "last lines")
    # Two streams with ten kernels each, one beside the other.
    took_ms = float(printed[2].split()[1])
    assert LAUNCHES * KERNEL_NS / 1e6 <= took_ms < 1.2 * LAUNCHES * KERNEL_NS / 1e6, took_ms


@case
def the_ground_truth_has_all_that_a_program_did():
    path = scratch() / "truth"
    ran(compiled("streams"), path, clock="virtual", kernel_ns=KERNEL_NS)
    truth = read_truth(path)
    kernels = of_kind(truth, "kernel")
    expect_equal(collections.Counter(kernel["name"] for kernel in kernels),
                 {"_Z5scalePffi": 2 * LAUNCHES + REPLAYS, "_Z6reducePKfPf": REPLAYS}, "kernels")
    expect_equal({duration_ns(kernel) for kernel in kernels}, {KERNEL_NS}, "durations")
    expect_equal([copy["bytes"] for copy in of_kind(truth, "memcpy")], [1 << 16, 1 << 16, 4, 4], "copies")
    expect_equal([copy["copy"] for copy in of_kind(truth, "memcpy")], ["HtoD", "DtoH", "HtoD", "DtoH"], "directions")
    expect_equal(len(of_kind(truth, "graph")), REPLAYS, "launches of the graph")
    live = {line["address"] for line in of_kind(truth, "alloc")} - {line["address"] for line in of_kind(truth, "free")}
    # The __device__ variable.
    expect_equal(len(live), 1, "allocations that are left")
    expect_equal(of_kind(truth, "violation") + of_kind(truth, "unsupported"), [], "complaints")


@case
def the_agent_can_be_preloaded_beside_it_in_both_ways():
    program = compiled("streams")
    printed = ran(program, clock="virtual", kernel_ns=KERNEL_NS)
    agent = {name: value for name, value in agent_environment(scratch()).items()
             if name.startswith(("TORSH_PROFILER", "LD_PRELOAD"))}
    by_command = ["env", *(f"{name}={value}" for name, value in agent.items()), program]
    for command, env in ((by_command, {}), ([program], agent)):
        result = simulate(command, env=env, clock="virtual", kernel_ns=KERNEL_NS)
        expect_equal((result.returncode, result.stdout.decode().splitlines()), (0, printed), result.stderr.decode())


@case
def the_virtual_clock_gives_the_same_run_twice():
    program, folder = compiled("streams"), scratch()
    for name in ("first", "second"):
        ran(program, folder / name, clock="virtual")
    times = [[(line["kind"], line["start"], line["end"]) for line in of_kind(read_truth(folder / name), "kernel", "memset")]
             for name in ("first", "second")]
    expect_equal(times[0], times[1], "times of both runs")


@case
def two_devices_have_memory_and_clocks_of_their_own():
    script = ("import ctypes; c = ctypes.CDLL('libcudart.so.13'); n = ctypes.CDLL('libnvidia-ml.so.1')\n"
              "free, total, used = ctypes.c_size_t(), ctypes.c_size_t(), (ctypes.c_ulonglong * 3)()\n"
              "p, q, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()\n"
              "host = ctypes.create_string_buffer(b'by way of the other device', 64)\n"
              "c.cudaSetDevice(1); c.cudaMalloc(ctypes.byref(q), 1 << 20)\n"
              "c.cudaSetDevice(0); c.cudaMalloc(ctypes.byref(p), 1 << 21)\n"
              "c.cudaMemcpy(p, host, ctypes.c_size_t(64), 1)\n"
              "c.cudaMemcpyPeer(q, 1, p, 0, ctypes.c_size_t(64))\n"
              "back = ctypes.create_string_buffer(64); c.cudaMemcpy(back, q, ctypes.c_size_t(64), 2)\n"
              "c.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)); n.nvmlInit_v2()\n"
              "n.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)); n.nvmlDeviceGetMemoryInfo(device, used)\n"
              "print(back.value.decode(), total.value - free.value, used[2], sep=';')\n")
    path = scratch() / "truth"
    result = simulate([sys.executable, "-c", script], path, devices=2, memory="64M")
    expect_equal(result.stdout.decode().strip(), f"by way of the other device;{1 << 21};{1 << 20}", result.stderr.decode())
    copies = of_kind(read_truth(path), "memcpy")
    expect_equal([copy["copy"] for copy in copies], ["HtoD", "PtoP", "DtoH"], "copies")


@case
def device_memory_can_not_be_touched_by_the_host():
    script = ("import ctypes; c = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p(); "
              "assert c.cudaMalloc(ctypes.byref(p), 4096) == 0; print(ctypes.string_at(p.value, 1))")
    result = simulate([sys.executable, "-c", script])
    expect_equal(result.returncode, -signal.SIGSEGV, "status")
    expect_equal(simulate([sys.executable, "-c", script], protect=0).returncode, 0, "status without protection")


@case
def a_forked_child_has_no_device_unless_it_is_the_first_to_query():
    # cudaFree uses the device, cudaRuntimeGetVersion does not.
    for first, expected in (("cudaFree(None)", "3"), ("cudaRuntimeGetVersion(ctypes.byref(n))", "0")):
        script = (f"import ctypes, os; c = ctypes.CDLL('libcudart.so.13'); n = ctypes.c_int(); assert c.{first} == 0\n"
                  "pid = os.fork()\n"
                  "os._exit(c.cudaGetDeviceCount(ctypes.byref(n))) if pid == 0 else "
                  "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
        result = simulate([sys.executable, "-c", script])
        expect_equal(result.stdout.decode().strip(), expected, f"cudaGetDeviceCount in the child after {first}")


@case
def a_python_ends_when_autograds_threads_are_idle():
    folder = scratch()
    (folder / "sitecustomize.py").write_text('print("its own sitecustomize", flush=True)\n')
    result = simulate([sys.executable, "-c", BUSY_AT_THE_END], env={"PYTHONPATH": str(folder)})
    expect_equal((result.returncode, result.stdout.decode().splitlines()), (0, ["its own sitecustomize", "released"]),
                 result.stderr.decode())


@case
def a_machine_without_driver_or_device_reports_it():
    script = "import ctypes; c = ctypes.CDLL('libcudart.so.13'); n = ctypes.c_int(); print(c.cudaGetDeviceCount(ctypes.byref(n)))"
    for driver, code in (("absent", "35"), ("stub", "34"), ("nodevice", "100"), ("present", "0")):
        result = simulate([sys.executable, "-c", script], driver=driver)
        expect_equal(result.stdout.decode().strip(), code, f"driver {driver}")


@case
def a_tool_is_injected_before_the_first_context():
    folder = scratch()
    (folder / "tool.c").write_text("#include <stdio.h>\n"
                                   "int InitializeInjection(void) { puts(\"injected\"); fflush(stdout); return 1; }\n")
    built = run(["cc", "-shared", "-fPIC", "-o", folder / "tool.so", folder / "tool.c"])
    expect_equal(built.returncode, 0, built.stderr.decode())
    script = "import ctypes; ctypes.CDLL('libcudart.so.13').cudaFree(None)"
    result = simulate([sys.executable, "-c", script], folder / "truth", env={"CUDA_INJECTION64_PATH": str(folder / "tool.so")})
    expect_equal(result.stdout.decode(), "injected\n", "what the tool printed")
    kinds = [line["kind"] for line in read_truth(folder / "truth")]
    assert kinds.index("injection") < kinds.index("context"), kinds


@case
def every_call_can_fail_and_the_program_gets_the_error():
    program, folder = compiled("streams"), scratch()
    ran(program, folder / "truth", clock="virtual", kernel_ns=1)
    called = [line["name"] for line in of_kind(read_truth(folder / "truth"), "calls")]
    assert len(called) > 60, called
    for name in called:
        for code in (999,) if IS_QUICK else (2, 719, 999):
            result = simulate([program], clock="virtual", kernel_ns=1, faults=f"{name}={code}@1")
            # Some failures have no effect: of a pointer's name, of what is done at the end.
            assert result.returncode in (0, 1), f"{name}={code}: {result.returncode} {result.stderr.decode()}"
            if result.returncode == 1:
                assert b"cuda" in result.stderr, f"{name}={code}: {result.stderr.decode()}"


@case
def what_is_not_simulated_is_refused_and_counted():
    script = "import ctypes; print(ctypes.CDLL('libcudart.so.13').cudaCreateTextureObject(0, 0, 0, 0))"
    path = scratch() / "truth"
    result = simulate([sys.executable, "-c", script], path)
    expect_equal(result.stdout.decode().strip(), "801", "cudaCreateTextureObject")
    expect_equal([line["name"] for line in of_kind(read_truth(path), "unsupported")], ["cudaCreateTextureObject"], "counted")


@case
def a_setting_that_is_not_understood_ends_the_program():
    for settings in ({"kernel_ns": "fast"}, {"kernels_ns": "1"}, {"devices": "99"}):
        result = simulate([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcudart.so.13').cudaFree(None)"], **settings)
        expect_equal(result.returncode, 2, f"status with {settings}")


@case
def records_have_the_layouts_of_other_versions_of_cupti():
    need_simcuda()
    for version in ("120400", "120800", "130000"):
        env = {**clean_environment(), "SIMCUDA_CUPTI_VERSION": version}
        for rules in ("cupti_contract", "cupti_callbacks"):
            result = run([BUILD / "test/gpu" / rules], env)
            expect_equal(result.returncode, 0, f"the rules of CUPTI with {version}: {result.stdout.decode()[-2000:]}")


# ---- PyTorch ------------------------------------------------------------------------------------------------------------


@case
@needs("torch")
def all_that_pytorch_imports_is_there():
    python = cuda_python()
    listed = run([ROOT / "test/simcuda/gen/imports.py", python])
    expect_equal(listed.returncode, 0, listed.stderr.decode())
    for line in listed.stdout.decode().splitlines()[1:]:
        library, _, names = line.partition(": ")
        path = LIBRARIES / next(name for name in preload_names() if name.startswith(library))
        exported = {entry.split()[-1].partition("@")[0] for entry in
                    run(["nm", "-D", "--defined-only", path]).stdout.decode().splitlines()}
        expect_equal(sorted(set(names.split()) - exported), [], f"what {path.name} lacks")


def trained(folder, **settings):
    result = simulate([cuda_python(), PROGRAMS_SOURCE / "train.py", folder], folder / "truth", timeout=250, **settings)
    expect_equal(result.returncode, 0, result.stderr.decode()[-2000:])
    return json.loads(result.stdout.decode().splitlines()[-1]), read_truth(folder / "truth")


def peak_bytes(changes):
    """Of allocations and frees in their order."""
    signed = [line["bytes"] if line["kind"] == "alloc" else -line["bytes"] for line in changes]
    return max(itertools.accumulate(signed))


def device_events(folder, name):
    """Kineto's events of the device by category, and all events."""
    events = json.loads((folder / f"{name}.json").read_text())["traceEvents"]
    wanted = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
    return [(wanted[event["cat"]], event) for event in events if event.get("cat") in wanted], events


def demangled(names):
    result = run(["c++filt"], input="\n".join(names).encode(), stdin=None)
    return dict(zip(names, result.stdout.decode().splitlines()))


def by_launch(rows):
    """{(kind, correlation, which of that launch): row}, of (kind, correlation, start, row)."""
    found, seen = {}, collections.Counter()
    for kind, correlation, _, row in sorted(rows, key=lambda row: row[:3]):
        found[kind, correlation, seen[kind, correlation]] = row
        seen[kind, correlation] += 1
    return found


def compare_with_truth(found, truth):
    """Every operation of the device between the first and the last of Kineto's is there once, with its name and times."""
    correlations = [event["args"]["correlation"] for _, event in found]
    expected = [line for line in of_kind(truth, "kernel", "memcpy", "memset")
                if min(correlations) <= line["correlation"] <= max(correlations)]
    expect_equal(len(found), len(expected), "events of the device")
    names = demangled(sorted({line["name"] for line in expected if line["kind"] == "kernel"}))
    lines = by_launch((line["kind"], line["correlation"], line["start"], line) for line in expected)
    # Kineto reads its own clock and rounds to ns; before PyTorch 2.4 it wrote whole us, and no nodes of graphs.
    within_ns = 1000 if all(isinstance(event["dur"], int) for _, event in found) else 3
    for key, event in by_launch((kind, event["args"]["correlation"], event["ts"], event) for kind, event in found).items():
        line = lines.pop(key)
        expect_equal(event["args"].get("graph node id", line["node"]), line["node"], "node")
        if line["kind"] == "kernel":
            expect_equal(event["name"], names[line["name"]], "name")
            expect_equal(event["args"]["grid"], line["grid"], "grid")
        else:
            expect_equal(event["args"]["bytes"], line["bytes"], "bytes")
        expect_equal(event["args"]["stream"], line["stream"], "stream")
        assert abs(event["dur"] * 1000 - duration_ns(line)) <= within_ns + duration_ns(line) / 1000, (event, line)
    expect_equal(lines, {}, "what Kineto does not have")
    return expected


def encloses(operator, call):
    return operator["tid"] == call["tid"] and operator["ts"] <= call["ts"] and \
        call["ts"] + call["dur"] <= operator["ts"] + operator["dur"] + 1


def check_operators(found, events):
    """Each is on an operator, within which it was launched, on the operator's thread."""
    all_of_them = [event for event in events if event.get("cat") == "cpu_op"]
    operators = {event["args"]["External id"]: event for event in all_of_them}
    calls = {event["args"]["correlation"]: event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    # Before PyTorch 2.4 no operator was named on what a device did, and calls of the driver were left out.
    names_none = all(event["args"]["External id"] == event["args"]["correlation"] for _, event in found)
    for _, event in found:
        call = calls.get(event["args"]["correlation"])
        if not names_none:
            assert encloses(operators[event["args"]["External id"]], call), (event, call)
        elif call:
            assert any(encloses(operator, call) for operator in all_of_them), (event, call)


@case
@needs("torch")
def pytorch_trains_and_its_own_profiler_sees_what_happened():
    folder = scratch()
    printed, truth = trained(folder, kernels="*gemm*=20000,*elementwise*=3000")
    expect_equal((printed["moved"], printed["error"]), (True, "OutOfMemoryError"), "what it printed")
    assert printed["elapsed_ms"] >= 0, printed
    expect_equal(of_kind(truth, "violation"), [], "violations")
    # The caching allocator's segments are the device's allocations.
    changes = [line for line in of_kind(truth, "alloc", "free") if line["memory"] == 3]
    expect_equal(sum(line["kind"] == "alloc" for line in changes), printed["segments"], "segments")
    expect_equal(peak_bytes(changes), printed["reserved_peak"], "bytes of the segments at their peak")
    found, events = device_events(folder, "eager")
    assert len(found) > 50, len(found)
    compare_with_truth(found, truth)
    check_operators(found, events)
    found, _ = device_events(folder, "graph")
    nodes = [line for line in compare_with_truth(found, truth) if line["node"]]
    expect_equal(len(nodes), 2 * 3, "kernels of three launches of the graph")


@case
@needs("torch")
def pytorch_gets_the_faults():
    python = cuda_python()
    script = "import torch\ntry:\n    torch.ones(4, device='cuda').add_(1)\n    torch.cuda.synchronize()\n" \
             "except Exception as error:\n    print(type(error).__name__, str(error).splitlines()[0])"
    for faults, expected in (("cuMemAlloc_v2=2", "OutOfMemoryError"), ("cuLaunchKernel=719", "unspecified launch failure"),
                             ("cuCtxSynchronize=700", "illegal memory access")):
        printed = simulate([python, "-c", script], faults=faults).stdout.decode()
        assert expected in printed, (faults, printed)
    printed = simulate([python, "-c", "import torch; print(torch.cuda.is_available())"], driver="absent").stdout.decode()
    expect_equal(printed.strip(), "False", "is_available without a driver")


@case
@needs("torch")
def pytorch_allocates_in_each_of_its_ways():
    script = ("import torch; parts = [torch.empty(20 << 20, dtype=torch.uint8, device='cuda') for _ in range(3)]; "
              "sent = torch.randint(0, 255, (20 << 20,), dtype=torch.uint8); parts[1].copy_(sent); "
              "print(torch.equal(parts[1].cpu(), sent), torch.cuda.memory_allocated()); "
              "del parts; torch.cuda.empty_cache(); print(torch.cuda.memory_reserved())")
    for way in ("", "expandable_segments:True", "backend:cudaMallocAsync"):
        path = scratch() / "truth"
        result = simulate([cuda_python(), "-W", "ignore", "-c", script], path, env={"PYTORCH_CUDA_ALLOC_CONF": way})
        expect_equal(result.stdout.decode().split(), ["True", str(3 * 20 << 20), "0"], f"with {way!r}")
        changes = [line for line in of_kind(read_truth(path), "alloc", "free") if line["memory"] == 3]
        assert peak_bytes(changes) >= 3 * 20 << 20, way
        expect_equal(sum(line["bytes"] if line["kind"] == "alloc" else -line["bytes"] for line in changes), 0, f"left by {way!r}")


@case
@needs("torch")
def pytorch_profiles_a_hundred_times_and_loses_nothing():
    script = ("import torch\nfrom torch.profiler import ProfilerActivity, profile\n"
              "x, counts = torch.ones(64, device='cuda'), set()\n"
              "for _ in range(100):\n"
              "    with profile(activities=[ProfilerActivity.CUDA]) as profiler:\n"
              "        for _ in range(10):\n            x.add_(1)\n"
              "        torch.cuda.synchronize()\n"
              "    counts.add(sum(event.device_type.name == 'CUDA' for event in profiler.events()))\n"
              "print(counts)\n")
    result = simulate([cuda_python(), "-c", script])
    expect_equal(result.stdout.decode().splitlines()[-1:], ["{10}"], result.stderr.decode()[-1000:])


@case
@needs("torch")
def pytorch_runs_a_collective():
    folder = scratch()
    script = ("import torch, torch.distributed as dist; x = torch.ones(1024, device='cuda'); "
              f"dist.init_process_group('nccl', init_method='file://{folder}/meeting', rank=0, world_size=1); "
              "dist.all_reduce(x); torch.cuda.synchronize(); print('done'); dist.destroy_process_group()")
    result = simulate([cuda_python(), "-c", script], folder / "truth")
    expect_equal(result.stdout.decode().split(), ["done"], result.stderr.decode()[-1000:])
    names = [line["name"] for line in of_kind(read_truth(folder / "truth"), "kernel")]
    expect_equal(sum(name.startswith("ncclDevKernel_AllReduce") for name in names), 1, "collectives")


if __name__ == "__main__":
    main()
