#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How much stack the agent takes in all that it interposes, on top of the function's own; and calls on small stacks."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "stack_use"
# Which functions: most bytes beyond their own in later calls, and in a first one, which fills
# caches.
MOST = tuple((re.compile(pattern), most) for pattern, *most in (
    # The driver calls it, once, at its start, having opened the agent: CUPTI is opened in turn and started, which takes what the
    # loader and CUPTI take.
    ("InitializeInjection", 512, 8192),
    # Until the writer has reported whether there are filters, the wait uses a clock that takes
    # stack, too.
    ("exec.*|fexecve", 576, 1536),
    # What the C library allocates for its message is a first call of its own.
    ("__assert.*", 1536, 1536),
    # The name of each bar is made first.
    ("itt-histogram_submit", 640, 1536),
    # Python calls it, once: it looks for the interpreter in all objects.
    ("torsh_v1_request_follow", 1024, 1536),
    (".*", 512, 1536),
))
SMALL_BYTES = 4096  # as in stack_use.c
BOUND = {"LD_BIND_NOW": "1"}  # binding takes stack of the loader's own
WITHOUT_MARKS = {"NSYS_PROFILING_SESSION_ID": "1"}  # another tool measures: of what devices do only the calls are recorded
LISTED = re.search(r"global:(.*)local:", re.sub(r"/\*.*?\*/", "", (ROOT / "shim/exports.map").read_text(), flags=re.S), re.S)
# NCCL's are tables, not functions.
EXPORTS = [name for name in LISTED[1].replace(";", " ").split() if not name.startswith("ncclProfiler_")]
# What NVTX is given for its slots, by module and slot.
SLOTS = [f"nvtx-{module}-{slot}" for module, slot in
         re.findall(r"^NVTX(?:_VOID)?\((\d+), (\d+),", (ROOT / "shim/ranges/nvtx.def").read_text(), flags=re.M)]
# What ITT's clients are given, by name.
ITT = ["itt-" + name for name in re.findall(r"^ITT(?:\([^,]*, |_VOID\(|_ALSO\()(\w+),", (ROOT / "shim/ranges/itt.def").read_text(), flags=re.M)]
# Ways of calling that take other paths: a program that is there, an environment that the caller scrubbed.
WAYS = ["execve_found", "execlp_found", "execve_scrubbed", "posix_spawn_found"]
FUNCTIONS = EXPORTS + SLOTS + ITT + WAYS
# What else the agent calls in a driver.
DRIVER = ("cuInit cuCtxGetCurrent cuCtxGetDevice cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSynchronize cuDeviceGetCount "
          "cuDevicePrimaryCtxGetState cuDevicePrimaryCtxRetain cuEventCreate cuEventRecord cuEventQuery cuEventElapsedTime "
          "cuStreamCreate cuStreamIsCapturing cuThreadExchangeStreamCaptureMode cuFuncGetAttribute cuPointerGetAttribute "
          "cuGetErrorName").split()
# What is made needs an address: there is a context, and marks are taken.
BODIES = dict.fromkeys(["cuCtxGetCurrent", "cuEventCreate", "cuStreamCreate"], "*out = (void *)8;")


def library():
    """A driver and other libraries in one, in which everything succeeds and takes no stack; with libstdc++ behind it."""
    folder = scratch("library")
    names = [name for name in EXPORTS if re.match("cu|_ZN", name)] + DRIVER
    source, path = folder / "driver.c", folder / "libcuda.so.1"
    source.write_text("".join(f"int {name}(void **out) {{ {BODIES.get(name, '')} return 0; }}\n" for name in dict.fromkeys(names)))
    expect_equal(run(["gcc", "-w", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", path, source, "-lstdc++"]).returncode, 0,
                 "status of the compiler")
    return path


def parse(result):
    expect_equal(result.returncode, 0, f"status\n{result.stdout.decode()}{result.stderr.decode()}\n")
    found = {}
    for name, first, again, fits in map(str.split, result.stdout.decode().splitlines()):
        found.setdefault(name, (int(first), int(again), fits))
    return found


def measured(env):
    """What each function takes by itself, and with the agent; those that only the agent has are called as cuInit is."""
    of_libc = parse(run([PROGRAM], {**clean_environment(), **BOUND}))
    command = [PROGRAM, library(), "cuInit", "InitializeInjection", *[name for name in EXPORTS + ITT if name not in of_libc]]
    bare = parse(run(command, {**clean_environment(), **BOUND}))
    return {name: bare.get(name, bare["cuInit"]) for name in FUNCTIONS}, parse(record(command, env={**BOUND, **env})[0])


def most(name, is_first):
    return next(bytes_[is_first] for pattern, bytes_ in MOST if pattern.fullmatch(name))


def no_function_takes_more(env):
    bare, used = measured(env)
    expect_equal(sorted(set(FUNCTIONS) - used.keys()), [], "interposed or given to NVTX, and not measured")
    for which, what in ((0, "a first call"), (1, "later calls")):
        over = {name: used[name][which] - bare[name][which] for name in FUNCTIONS}
        expect_equal({name: n for name, n in over.items() if n > most(name, which == 0)}, {},
                     f"bytes of stack beyond the function's own in {what}")
    # Those that take more by themselves (glibc's __assert_fail: 10 KiB) end beyond its guard page, by chance in one way or another.
    small = [name for name in FUNCTIONS if bare[name][0] < SMALL_BYTES]
    expect_equal([name for name in small if used[name][2] != bare[name][2]], [], "other on a stack of 4 KiB than without the agent")


add_case("no_function_takes_more_of_the_stack_than_said", no_function_takes_more, {})
add_case("no_function_takes_more_of_the_stack_than_said_without_marks", no_function_takes_more, WITHOUT_MARKS)


@case
def a_crash_is_handled_on_an_alternate_stack_of_8_kib():
    bare = run([PROGRAM, "handler"]).returncode
    if bare == 77:
        raise Skip("this machine's registers alone take half of that")
    expect_equal(bare, 42, "status without the agent")
    expect_equal(record([PROGRAM, "handler"])[0].returncode, 42, "status")


if __name__ == "__main__":
    main()
