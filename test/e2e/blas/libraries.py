#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Calls of FFTW, oneDNN, cublasLt, cuDNN and cuFFT with their sizes: FFTW and oneDNN are the distribution's, and the program knows what it
calls; the oneDNN in PyTorch's wheel is compared with what it prints by itself; CUDA's libraries are simulated behind NVIDIA's headers.
"""

import collections
import functools
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402
from simcuda import cuda_python, record_simulated  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parent
ACTIVE = {"TORSH_PROFILER_ACTIVITIES": "cpu,blas"}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def compiled(output, source, *options):
    need_command("gcc")
    result = run(["gcc", "-O1", "-g", "-Wl,-rpath,$ORIGIN", SOURCES / source, "-o", output, *options])
    expect_equal(result.returncode, 0, result.stderr.decode())
    return output


def header(name):
    path = pathlib.Path("/usr/include") / name
    if not path.exists():
        missing(f"{name} is not on this machine")


def both(*command, **variables):
    """What the program says its calls were, and the report of blas; the program as it is without the agent."""
    environment = {**ONE_THREAD, **variables}
    bare = run(command, env={**clean_environment(), **environment})
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record(command, env={**ACTIVE, **environment})
    expect_equal((result.returncode, result.stdout, result.stderr), (bare.returncode, bare.stdout, bare.stderr), "the program")
    report = read_report("blas", output)
    expect_fits("blas", report)
    return bare.stderr.decode().splitlines(), report, output


# ---- FFTW ------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def fftw_program():
    header("fftw3.h")
    return compiled(scratch("fftw") / "calls_of_fftw", "calls_of_fftw.c", "-lfftw3", "-lfftw3f", "-lfftw3l", "-lm", "-pthread")


def transforms(lines):
    found = collections.Counter()
    for line in lines:
        routine, sizes, batch, kind, calls = line.split()
        found[(routine, None if sizes == "-" else sizes, int(batch) or None, None if kind == "-" else kind)] += int(calls)
    return found


def recorded_transforms(report):
    found = collections.Counter()
    for row in report["calls"]:
        if row["routine"] != "fft_plan":
            found[(row["routine"], row["shape"], row["batch"], row["type"])] += row["calls"]
    return found


def nominal(row):
    points = math.prod(map(int, row["shape"].split("x")))
    factor = 5 if row["routine"] == "fft_c2c" else 2.5
    return int(factor * points * math.log2(points) + 0.5) * row["batch"] * row["calls"]


@case
def transforms_have_the_sizes_of_their_plans():
    lines, report, _ = both(fftw_program())
    expect_equal(recorded_transforms(report), transforms(lines), "transforms")
    rows = [row for row in report["calls"] if row["routine"] not in ("fft_plan", "fft")]
    for row in rows:
        expect_equal(row["flops"], nominal(row), row)
        expect_equal(row["n"], math.prod(map(int, row["shape"].split("x"))), row)
    expect_equal({row["library"] for row in rows}, {"libfftw3.so.3", "libfftw3f.so.3", "libfftw3l.so.3"}, "libraries")
    plans = [row for row in report["calls"] if row["routine"] == "fft_plan"]
    expect_equal(sum(row["calls"] for row in plans), 15, "calls that make a plan, one in vain")
    assert all(row["flops"] is None and row["flops_reason"] for row in plans), plans
    expect_equal([row["shape"] for row in plans if not row["details"]], [None], "the plan that wasn't made")
    details = {row["shape"]: row["details"] for row in rows if row["name"] == "fftw_execute"}
    expect_equal((details["8x12"], details["4x5x6"]), ("backward, out of place, estimate", "forward, in place, estimate"), "details")


@case
def threads_share_a_plan():
    lines, report, output = both(fftw_program(), "threads")
    expect_equal(recorded_transforms(report), transforms(lines), "transforms")
    rows = [json.loads(line) for line in torsh("dump", output).splitlines()]
    events = [row for row in rows if row.get("event") == "library_call" and row["batch"] == 2]
    expect_equal(sorted(collections.Counter(row["thread"] for row in events).values()), [1, 50, 50, 50, 50], "calls of a thread")


@case
def plans_at_the_same_place_are_told_apart():
    """And plans beyond those that are kept have calls without sizes, and a reason."""
    lines, report, _ = both(fftw_program(), "many")
    expect_equal(recorded_transforms(report), transforms(lines), "transforms")
    row = next(row for row in report["calls"] if row["routine"] == "fft")
    assert row["flops"] is None and "plan" in row["flops_reason"], row


# ---- oneDNN ----------------------------------------------------------------------------------------


@case
def primitives_of_the_library_have_their_sizes():
    header("oneapi/dnnl/dnnl.h")
    program = compiled(scratch("dnnl") / "calls_of_dnnl", "calls_of_dnnl.c", "-ldnnl", "-lm")
    witness = run([program], env={**clean_environment(), **ONE_THREAD, "ONEDNN_VERBOSE": "1"}).stdout.decode()
    implementations = {line.split(",")[3]: line.split(",")[4] for line in witness.splitlines() if ",exec," in line}
    _, report, _ = both(program)
    rows = {row["routine"]: row for row in report["calls"]}
    found = {name: tuple(row[key] for key in ("calls", "shape", "m", "n", "k", "batch", "type", "flops")) for name, row in rows.items()}
    expect_equal(found, {
        "convolution": (3, "2x6x12x10:2x4x3x3x3:2x8x10x8", 160, 4, 27, 2, "float32", 3 * 2 * 160 * 4 * 27 * 2),
        "matmul": (2, "5x12x20:5x20x8:5x12x8", 12, 8, 20, 5, "float32", 2 * 2 * 5 * 12 * 8 * 20),
        "eltwise": (1, "30x40:30x40", None, None, None, None, "float32", None),
        "primitive": (1, None, None, None, None, None, None, None)}, "primitives")
    for kind, implementation in implementations.items():
        expect_equal(rows[kind]["details"].split(", ")[0], implementation, kind)
    assert rows["primitive"]["details"].startswith("failed with status "), rows["primitive"]


TORCH = """
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
image = torch.ones(2, 6, 32, 32)
convolution, transposed = torch.nn.Conv2d(6, 8, 3, groups=2), torch.nn.ConvTranspose2d(6, 4, 3)
with torch.no_grad():
    results = [convolution(image) for _ in range(3)] + [transposed(image)]
    results.append(torch.ones(64, 96, dtype=torch.bfloat16) @ torch.ones(96, 32, dtype=torch.bfloat16))
convolution(image).sum().backward()
print([float(result.double().sum()) for result in results], float(convolution.weight.grad.sum()))
"""

SHOWN = TORCH + """
with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON), torch.no_grad():
    convolution(image)
convolution(image)
"""


def lines_of(text):
    """The primitives that oneDNN printed, without their times: kind, implementation, propagation and sizes."""
    found = collections.Counter()
    for line in text.splitlines():
        if line.startswith("onednn_verbose,") and ",exec," in line and ",graph," not in line:
            fields = line.split(",exec,")[1].split(",")
            found[(fields[1], fields[2], fields[-2])] += 1
    return found


def primitives(report):
    found = collections.Counter()
    for row in report["calls"]:
        if row["library"] == "libtorch_cpu.so":
            found[(row["routine"], row["details"].split(", ")[0], row["shape"])] += row["calls"]
    return found


@case
@long
def primitives_within_pytorch_are_those_that_it_prints():
    python = torch_python()
    witness = run([python, "-c", TORCH], env={**clean_environment(), **ONE_THREAD, "ONEDNN_VERBOSE": "1"}).stdout.decode()
    printed = lines_of(witness)
    if not printed:
        raise Skip("this PyTorch has no oneDNN, or it prints nothing on this processor")
    _, report, output = both(python, "-c", TORCH)
    expect_equal(primitives(report), printed, "primitives")
    rows = [row for row in report["calls"] if row["routine"] == "convolution" and "oc8" in row["shape"] and "forward" in row["details"]]
    assert rows, report["calls"]
    for row in rows:
        expect_equal((row["flops"], row["type"]), (row["calls"] * 2 * 2 * 30 * 30 * 8 * 3 * 3 * 3, "float32"), row)
    trace = json.loads(exported(output, "trace.json", "--format", "chrome").read_text())["traceEvents"]
    calls = [event for event in trace if event.get("cat") == "library_call" and event["name"] == "convolution"]
    operators = [event for event in trace if event.get("cat") == "cpu_op" and event["name"] == "aten::mkldnn_convolution"]
    assert calls and operators, "no slices"
    # oneDNN's clock counts microseconds.
    for call in [call for call in calls if "forward" in call["args"]["Details"]]:
        assert any(operator["tid"] == call["tid"] and operator["ts"] - 5 <= call["ts"] and
                   call["ts"] + call["dur"] <= operator["ts"] + operator["dur"] + 5 for operator in operators), call


@case
@long
def lines_that_the_program_wants_are_printed():
    python = torch_python()
    environment = {**clean_environment(), **ONE_THREAD}
    bare = run([python, "-c", SHOWN], env=environment).stdout.decode()
    result, output = record([python, "-c", SHOWN], env={**ACTIVE, **ONE_THREAD})
    text = result.stdout.decode()
    if not lines_of(bare):
        raise Skip("this PyTorch has no oneDNN, or it prints nothing on this processor")
    expect_equal(lines_of(text), lines_of(bare), "the program's lines")
    expect_equal([line for line in text.splitlines() if not line.startswith("onednn_verbose")],
                 [line for line in bare.splitlines() if not line.startswith("onednn_verbose")], "its other lines")
    expect_equal(sum(primitives(read_report("blas", output)).values()) > sum(lines_of(text).values()), True, "recorded all the while")
    variable = run([python, "-c", TORCH], env={**environment, "ONEDNN_VERBOSE": "1"}).stdout.decode()
    result, output = record([python, "-c", TORCH], env={**ACTIVE, **ONE_THREAD, "ONEDNN_VERBOSE": "1"})
    expect_equal(lines_of(result.stdout.decode()), lines_of(variable), "lines of the user's variable")
    expect_equal(primitives(read_report("blas", output)), lines_of(variable), "and recorded")


# ---- CUDA ------------------------------------------------------------------------------------------


def nvidia_headers():
    """Of PyTorch's environment."""
    folder = pathlib.Path(torch_python()).parent.parent
    found = sorted(folder.glob("lib/python3*/site-packages/nvidia"))
    places = [path.parent for name in ("cublasLt.h", "cudnn.h", "cufftXt.h") for path in found and sorted(found[0].glob(f"*/include/{name}"))]
    if len(places) < 3:
        raise Skip("PyTorch's environment has no headers of cublasLt, cuDNN and cuFFT")
    return [f"-I{place}" for place in sorted(set(places))]


@case
def calls_of_cudas_libraries_have_what_their_headers_say():
    here = scratch("cuda")
    headers = nvidia_headers()
    compiled(here / "liboracle.so", "cuda_oracle_so.c", "-w", "-shared", "-fPIC", "-Wl,-Bsymbolic", *headers)
    for name, options in (("lazy", "-Wl,-z,lazy"), ("now", "-Wl,-z,now")):
        program = compiled(here / name, "calls_of_cuda.c", "-w", options, *headers, "-L", here, "-loracle")
        lines, report, _ = both(program)
        expected = collections.Counter()
        for line in lines:
            function, routine, *fields, details = line.split(" ", 9)
            fields = [None if field == "-" else field for field in fields]
            numbers = [None if field is None else int(field) for field in fields[:4]]
            expected[(function, routine, *numbers, *fields[4:], None if details == "-" else details)] += 1
        found = collections.Counter()
        for row in report["calls"]:
            found[tuple(row[key] or (None if key == "letters" else row[key])
                        for key in ("name", "routine", "m", "n", "k", "batch", "type", "letters", "shape", "details"))] += row["calls"]
        expect_equal(found, expected, name)
        flops = {(row["name"], row["details"]): (row["flops"], row["gflops_per_s"]) for row in report["calls"]}
        expect_equal(flops["cublasGemmEx", None], (2 * 30 * 40 * 50, None), "a product")
        expect_equal(flops["cudnnConvolutionForward", "algorithm 6"], (2 * 160 * 4 * 27 * 2, None), "a convolution")


ON_DEVICE = """
import torch
def ones(*sizes, **options):
    return torch.ones(*sizes, device="cuda", **options)
torch.nn.functional.linear(ones(64, 32, dtype=torch.half), ones(16, 32, dtype=torch.half), ones(16, dtype=torch.half))
ones(8, 24, dtype=torch.bfloat16) @ ones(24, 40, dtype=torch.bfloat16)
with torch.no_grad():
    torch.nn.Conv2d(3, 8, 3).to("cuda")(ones(2, 3, 12, 12))
torch.fft.fft(ones(5, 100, dtype=torch.complex64))
torch.fft.rfft2(ones(7, 10, 12))
torch.cuda.synchronize()
"""


@case
@needs("torch")
def pytorchs_calls_on_a_simulated_device_have_their_sizes():
    """PyTorch is NVIDIA's build as it is; its libraries are simulated."""
    output, _ = record_simulated([cuda_python(), "-c", ON_DEVICE], env={"TORSH_PROFILER_ACTIVITIES": "cpu,cuda,blas"})
    report = read_report("blas", output)
    expect_fits("blas", report)
    found = {(row["routine"], row["type"]): tuple(row[key] for key in ("m", "n", "k", "batch", "shape", "details", "flops", "gflops_per_s"))
             for row in report["calls"] if row["name"].startswith(("cublas", "cudnn", "cufft")) and row["routine"] != "fft_plan"}
    product = next(value for (routine, kind), value in found.items() if kind == "float16")
    expect_equal((product[:3], product[6]), ((16, 64, 32), 2 * 16 * 64 * 32), "a layer, in columns")
    product = next(value for (routine, kind), value in found.items() if kind == "bfloat16")
    expect_equal((product[:3], product[6]), ((40, 8, 24), 2 * 8 * 24 * 40), "a product, in columns")
    expect_equal(found["fft_c2c", "complex64"],
                 (None, 100, None, 5, "100", "forward, out of place", 5 * int(5 * 100 * math.log2(100) + 0.5), None), "complex")
    expect_equal(found["fft_r2c", "float32"][1:5], (120, None, 7, "10x12"), "real")
    expect_equal(found["graph", None][6], None, "a graph of cuDNN's")


@case
def nothing_is_redirected_unless_requested():
    program = fftw_program()
    bare = run([program], env={**clean_environment(), **ONE_THREAD})
    result, output = record([program], env=ONE_THREAD)
    expect_equal((result.returncode, result.stdout), (0, bare.stdout), "the program")
    expect_equal(read_report("blas", output)["calls"], [], "calls without the activity")


main()
