#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The entry points of the driver that the agent stands before, against CUDA's own headers: each function that takes a stream, copies,
fills, launches or is about memory is among them or named here with the reason; and parameters are as wide as the header's.
"""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

# Names without _v2 and _ptsz.
DECIDED = [
    (r"cuStream(Create|CreateWithPriority|Destroy|Query|Synchronize|CopyAttributes|IsCapturing|Get\w+|SetAttribute)",
     "it manages a stream, or waits for it"),
    (r"cuGreenCtxStreamCreate", "it makes a stream"),
    (r"cuStream(Begin|End|Update)Capture\w*", "it records a graph"),
    (r"cuStreamWaitEvent|cuEventRecord(WithFlags)?|cu(Signal|Wait)ExternalSemaphoresAsync", "it orders streams"),
    (r"cuStream(Wait|Write)Value(32|64)|cuStreamBatchMemOp", "words that order streams: nothing is copied or filled"),
    (r"cuStreamAddCallback|cuLaunchHostFunc", "the host does it"),
    (r"cuStreamAttachMemAsync|cuMemMapArrayAsync|cuGraphics(Un)?[mM]apResources", "access to memory, not its contents"),
    (r"cuGraphUpload", "a graph is made ready: its launch is what runs"),
    (r"cuMemDiscardBatchAsync", "pages are given up: no bytes move"),
    (r"cuMem(Address\w+|Advise|SetAccess|Export\w+|Get(Access|Address\w+|Allocation\w+|HandleFor\w+)|Range\w+)", "no memory is got"),
    (r"cuMemHostGet(DevicePointer|Flags)|cuMemPool(Get|Set|Export|TrimTo|Destroy)\w*|cuIpcGet\w+|cuIpcOpenEventHandle",
     "no memory is got"),
    (r"cuMem(SetMemPool|PoolImportFromShareableHandle)", "it names a pool"),
    (r"cu(Mipmapped)?Array\w*Get\w+", "a question"),
    (r"cuExternalMemoryGetMappedMipmappedArray", "memory of others, of unknown size, as with CUPTI"),
]
ABOUT = r"cu(Memcpy|Memset|Launch|GraphLaunch|Mem[A-Z]|Array|Mipmapped|Ipc|ExternalMemoryGet)"
WIDTHS = {"int": 4, "unsigned": 4, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "size_t": 8, "uint64_t": 8, "struct cuda_location": 8,
          "struct driver_ipc": 64}
THEIR_WIDTHS = {"int": 4, "unsigned int": 4, "unsigned char": 1, "unsigned short": 2, "size_t": 8, "unsigned long long": 8,
                "CUdeviceptr": 8, "CUdevice": 4, "CUmemLocation": 8, "CUmemAllocationType": 4,
                "CUipcMemHandle": 64, "CUmodule": 8, "CUlibrary": 8, "CUstream": 8, "CUcontext": 8,
                "CUfunction": 8, "CUarray": 8, "CUmipmappedArray": 8, "CUgraphExec": 8, "CUmemoryPool": 8, "cuuint64_t": 8,
                "CUmemGenericAllocationHandle": 8, "CUexternalMemory": 8, "CUmemAllocationHandleType": 4}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def header(name):
    places = sorted((ROOT / "build/venv").glob("lib/python3*/site-packages/nvidia/*/include"), reverse=True)
    places += [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), *below) for below in (("include",), ("extras/CUPTI/include",))]
    for folder in places:
        if (folder / name).exists():
            return without_comments((folder / name).read_text())
    return missing("there are no headers of CUDA (PyPI's wheels below build/venv, or CUDA_HOME)")


def functions_of_the_driver():
    """{symbol: [type of each parameter]}"""
    text, found = header("generated_cuda_meta.h"), {}
    for fields, name in re.findall(r"typedef struct \w+_params_st \{(.*?)\} (\w+)_params;", text, flags=re.S):
        found[name] = [re.sub(r"\w+$", "", field.strip()).strip() for field in fields.split(";") if field.strip()]
    return found


def wrapped():
    """{symbol: [type of each parameter]} of the agent's tables, as the preprocessor has them."""
    source = ("#define WORK(name, suffix, parameters, ...) @name parameters@ @name##suffix parameters@\n"
              "#define UNSEEN(name, parameters, ...) @name parameters@\n"
              "#define MEMORY(name, parameters, ...) @name parameters@\n"
              '#include "shim/cuda/driver.def"\n#include "shim/cuda/driver_memory.def"\n')
    path = scratch("tables") / "tables.c"
    path.write_text(source)
    result = run(["cc", "-E", "-P", f"-I{ROOT}", path])
    expect_equal(result.returncode, 0, "preprocessor")
    found = {}
    for name, parameters in re.findall(r"@\s*(\w+)\s*\((.*?)\)\s*@", result.stdout.decode(), flags=re.S):
        found[name] = [re.sub(r"\w+$", "", " ".join(one.split())).strip() for one in parameters.split(",")]
    return found


def plain(name):
    return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", name)


@case
def every_function_that_gives_work_or_memory_is_interposed_or_decided():
    theirs, ours = functions_of_the_driver(), wrapped()
    if int(re.search(r"#define CUDA_VERSION (\d+)", header("cuda.h"))[1]) >= 13020:
        expect_equal([name for name in ours if name not in theirs], [], "names that the headers don't have")
    wanted = [name for name, types in theirs.items() if "CUstream" in types or re.match(ABOUT, name)]
    assert len(wanted) > 200, wanted
    undecided = [name for name in wanted if name not in ours
                 # Of CUDA before 4.0, with addresses of 32 bits.
                 and not f"{name}_v2" in ours
                 and not any(re.fullmatch(pattern, plain(name)) for pattern, _ in DECIDED)]
    expect_equal(undecided, [], "functions that nobody decided about")
    both = [name for name in ours if any(re.fullmatch(pattern, plain(name)) for pattern, _ in DECIDED)]
    expect_equal(both, [], "functions that are interposed after all")


@case
def what_is_about_memory_is_in_both_tables():
    """But for graphs, which have numbers with CUPTI only."""
    text = without_comments((ROOT / "shim/cuda/cuda_memory.def").read_text())
    calls = re.findall(r"^MEMORY\((cu[A-Z]\w+), (\w+)", text, flags=re.M)
    meant = {name for name, action in calls if not action.startswith("GRAPH_")}
    text = without_comments((ROOT / "shim/cuda/driver_memory.def").read_text())
    entries = {name.removesuffix("_ptsz") for name in re.findall(r"^MEMORY\((\w+)", text, flags=re.M)}
    expect_equal(entries, meant, "entry points about memory")


def width(declared, widths):
    if "*" in declared:
        return 8
    return widths[re.sub(r"\bconst\b", "", declared).strip()]


@case
def parameters_are_as_wide_as_the_headers():
    theirs, ours = functions_of_the_driver(), wrapped()
    for name, types in ours.items():
        if name in theirs:
            expect_equal([width(one, WIDTHS) for one in types], [width(one, THEIR_WIDTHS) for one in theirs[name]], name)


# A driver that returns other addresses than those of its symbols, of functions for the requested
# version.
DRIVER = """
#include <string.h>
#define EXPORT __attribute__((visibility("default")))
typedef unsigned long long u64;
struct location { int type, id; };
static int prefetch(u64 at, unsigned long n, int device, void *stream)
{
	return at == 1 && n == 2 && device == 3 && stream == (void *)4 ? 100 : 0;
}
static int prefetch_v2(u64 at, unsigned long n, struct location to, unsigned flags, void *stream)
{
	return at == 1 && n == 2 && to.type == 3 && to.id == 4 && flags == 5 && stream == (void *)6 ? 200 : 0;
}
EXPORT int cuInit(unsigned flags) { return (int)flags; }
EXPORT int cuMemPrefetchAsync(u64 at, unsigned long n, int device, void *stream) { return prefetch(at, n, device, stream); }
EXPORT int cuMemPrefetchAsync_v2(u64 at, unsigned long n, struct location to, unsigned flags, void *stream)
{
	return prefetch_v2(at, n, to, flags, stream);
}
EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, u64 flags, int *status)
{
	*found = strcmp(name, "cuMemPrefetchAsync") ? 0 : version < 12020 ? (void *)prefetch : (void *)prefetch_v2;
	return *found ? 0 : 500;
}
"""

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
struct location { int type, id; };
int main(void)
{
	int (*get)(const char *, void **, int, unsigned long long, int *);
	int (*old)(unsigned long long, unsigned long, int, void *);
	int (*new)(unsigned long long, unsigned long, struct location, unsigned, void *);
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *later;

	*(void **)&get = dlsym(library, "cuGetProcAddress_v2");
	if (!get || get("cuMemPrefetchAsync", (void **)&old, 12010, 0, 0) || get("cuMemPrefetchAsync", (void **)&new, 13000, 0, 0) ||
	    get("cuMemPrefetchAsync", &later, 99000, 0, 0))
		return 1;
	Dl_info of_old, of_new, of_later;
	dladdr((void *)old, &of_old), dladdr((void *)new, &of_new), dladdr(later, &of_later);
	printf("%d %s\\n%d %s\\n%s\\n", old(1, 2, 3, (void *)4), of_old.dli_sname, new(1, 2, (struct location){3, 4}, 5, (void *)6),
	       of_new.dli_sname, of_later.dli_fname);
	return 0;
}
"""


@case
def an_entry_point_is_interposed_in_the_form_that_was_requested():
    folder, output = scratch("driver"), scratch()
    (folder / "driver.c").write_text(DRIVER)
    (folder / "program.c").write_text("#define _GNU_SOURCE\n" + PROGRAM)
    for command in (["-shared", "-fPIC", "-fvisibility=hidden", "-o", folder / "libcuda.so.1", folder / "driver.c"],
                    ["-o", folder / "program", folder / "program.c", "-ldl"]):
        result = run(["cc", *command])
        expect_equal((result.returncode, result.stderr), (0, b""), "compiler")
    result = run([folder / "program"], {**agent_environment(output), "LD_LIBRARY_PATH": str(folder)})
    expect_equal(result.returncode, 0, result.stderr.decode())
    old, new, later = result.stdout.decode().split("\n")[:3]
    expect_equal((old, new), ("100 cuMemPrefetchAsync", "200 cuMemPrefetchAsync_v2"), "what was called, by which name")
    # A function of an unknown version stays the driver's own.
    assert later.endswith("libcuda.so.1"), later


if __name__ == "__main__":
    main()
