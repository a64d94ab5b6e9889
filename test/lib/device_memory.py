# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The memory of devices as the simulated CUDA's own log has it, and programs that get it."""

import collections

from harness import *  # noqa: F403
from environments import TORCH
from simcuda import need_simcuda, of_kind, recorded_once
import schema

# CUpti_ActivityMemoryKind, as the log has it.
PINNED, DEVICE, ARRAY, MANAGED = 2, 3, 4, 5
GRANULE = 2 << 20
KIB = 1024

# A training that leaves a tensor behind in each step.
LEAKING = """
import ctypes, sys, torch
device = torch.device("cuda:0")
def leak(n):
    tensor = torch.empty(n, dtype=torch.uint8, device=device)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
    return tensor.untyped_storage().nbytes()
model = torch.nn.Linear(512, 512).to(device)
for step in range(3):
    y = model(torch.randn(32, 512, device=device)).sum()
    y.backward()
    leak(3 << 20)
big = torch.empty(50 << 20, dtype=torch.uint8, device=device)
del big
torch.cuda.synchronize()
print(torch.cuda.memory_reserved(0), torch.cuda.max_memory_reserved(0), file=open(sys.argv[1], "w"))
"""


def program():
    need_simcuda()
    return BUILD / "simcuda/programs/memory"


ALLOCATORS = {"plain": "", "expandable": "expandable_segments:True", "asynchronous": "backend:cudaMallocAsync"}


def allocator_variables(name):
    return {"PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[name]} if ALLOCATORS[name] else {}


def leaked(name):
    """
    LEAKING with an allocator, seen by CUPTI: its recording, the log and the file with PyTorch's values. One training, which
    all cases look at.
    """
    printed = shared(f"leaking-{name}-{TORCH}") / "numbers"
    output, truth = recorded_once(f"leaking-{name}", "-c", LEAKING, printed, env=allocator_variables(name))
    return output, truth, printed


def place_of(line):
    if line["kind"] in ("create", "release"):
        return f"cuda:{line['device']}"
    if line["kind"] in ("import", "import_end"):
        return "imported"
    if line["memory"] in (DEVICE, ARRAY):
        return f"cuda:{line['device']}"
    if line["memory"] == PINNED:
        return "registered" if line["registered"] else "pinned"
    return {MANAGED: "managed"}[line["memory"]]


class Place:
    """One place by the log: live blocks, and the first moment of the highest sum."""

    def __init__(self):
        self.live, self.bytes = {}, 0
        self.peak_bytes, self.peak_blocks, self.peak_live = 0, 0, {}
        self.allocs = 0

    def add(self, key, n_bytes):
        self.allocs += 1
        self.live[key] = n_bytes
        self.bytes += n_bytes
        if self.bytes > self.peak_bytes:
            self.peak_bytes, self.peak_blocks, self.peak_live = self.bytes, len(self.live), dict(self.live)

    def remove(self, key):
        self.bytes -= self.live.pop(key)


def replay(truth):
    """Places by their names. What is imported has no bytes of this process's."""
    places = collections.defaultdict(Place)
    for line in of_kind(truth, "alloc", "free", "create", "release", "import", "import_end"):
        if line.get("mapped"):
            continue
        key = (line["kind"] in ("create", "release"), line.get("address") or line.get("handle"))
        if line["kind"] in ("alloc", "create", "import"):
            places[place_of(line)].add(key, 0 if line["kind"] == "import" else line["bytes"])
        else:
            places[place_of(line)].remove(key)
    return places


def leaks_of(output, device, *arguments):
    report = read_report("leaks", output, "--device", device, "--limit", "0", *arguments)
    schema.expect_fits("leaks", report)
    expect_equal(report["device"], device, "device")
    expect_equal(sum(leak["bytes"] for leak in report["leaks"]), report["leaked_bytes"], "sum of the leaks")
    return report


def peak_of(output, device, *arguments):
    report = read_report("peak", output, "--device", device, "--limit", "0", *arguments)
    schema.expect_fits("peak", report)
    expect_equal(report["device"], device, "device")
    return report


def compare(output, truth):
    """Each place's leaks and peak, in bytes and blocks."""
    places = replay(truth)
    assert places
    for name, place in places.items():
        leaks, peak = leaks_of(output, name), peak_of(output, name)
        expect_equal((leaks["leaked_bytes"], leaks["leaked_blocks"]), (place.bytes, len(place.live)), f"live in {name}")
        expect_equal(peak["peak_bytes"], place.peak_bytes, f"peak of {name}")
        if place.peak_bytes:
            expect_equal(peak["peak_blocks"], place.peak_blocks, f"blocks at the peak of {name}")
        expect_equal(peak["attributed_bytes"], place.peak_bytes, f"attributed at the peak of {name}")
        (device,) = leaks["devices"]
        expect_equal((device["unknown_frees"], device["failed_frees"]), (0, 0), "frees")
        expect_equal(device["current_bytes"], place.bytes, "current_bytes")
        expect_equal(device["allocs"], place.allocs, f"allocations in {name}")
    return places


def by_function(leaks, prefix="leak_"):
    """
    Bytes by the function leak_NAME that got them: it called get_NAME, and that the API's function, which is innermost. Only
    the driver's is not there where the agent stands before it.
    """
    found = collections.Counter()
    for leak in leaks:
        names = [frame["function"] for frame in leak["stack"]]
        (at,) = [i for i, name in enumerate(names) if name.startswith(prefix)]
        way = names[at][len(prefix):]
        api = [] if at == 1 and not way.startswith("cuda") else [names[0]]
        expect_equal(names[:at], [*api, f"get_{way}"], "callers of the API")
        expect_equal([name.split("_")[0] for name in api], [way][:len(api)], "the API's function")
        found[way] += leak["bytes"]
    return found


def expected_ways():
    """What the program leaves by each way, in the order of its table."""
    source = (ROOT / "test/simcuda/programs/memory.c").read_text()
    names = [line.split("WAY(")[1].split(",")[0] for line in source.splitlines() if line.startswith("\tWAY(")]
    assert len(names) > 20, names
    pitch = lambda width: (width + 511) // 512 * 512
    sizes = {}
    for i, name in enumerate(names):
        n = 10 + i
        sizes[name] = {
            "cuMemAllocPitch": pitch(100) * n, "cudaMallocPitch": pitch(700) * n, "cudaMalloc3D": pitch(300) * n * 3,
            "cuArrayCreate": n * 16 * 16, "cuArray3DCreate": n * 16 * 4 * 4,
            "cuMipmappedArrayCreate": sum((n >> i) * (16 >> i) * (4 >> i) * 4 for i in range(3)),
            "cudaMallocArray": n * 16 * 4, "cudaMalloc3DArray": n * 8 * 6 * 4,
            "cudaMallocMipmappedArray": sum((n >> i) * (8 >> i) * 6 * 4 for i in range(4)),
            "cuMemCreate": GRANULE * (1 + n % 3), "cuIpcOpenMemHandle": 0, "cudaIpcOpenMemHandle": 0,
        }.get(name, n * KIB)
    return sizes


def lines_of(report, key, name):
    """Bytes by line of the script."""
    found = collections.Counter()
    for holder in report[key]:
        for frame in holder["stack"]:
            if frame["file"] == "<string>":
                found[frame["function"], frame["line"]] += holder["bytes"]
                break
    return found
