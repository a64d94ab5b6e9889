#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Handlers that jump, throw or are cancelled out of wrappers: the thread goes on being recorded, and nothing is lost unsaid."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402

BUMP = PROGRAMS / "libbump.so"
# way: how many signals or threads, and whether a wrapper is left for good
WAYS = {
    "siglongjmp": (3000, True),
    "siglongjmp_out_of_others": (6000, True),
    "siglongjmp_off_an_alternate_stack": (3000, True),
    "siglongjmp_out_of_handlers_of_handlers": (1000, True),
    "setcontext": (3000, True),
    "exception": (1000, True),
    "cancel": (150, True),
    "fibers": (3000, False),
    "alternate_stack": (3000, False),
}
HANDLERS_MOST = 4  # that one jump leaves, and what they interrupted
N_CUDA = 200
# A driver without events; its calls can be left by a jump, or call others of its own by their
# public names.
DRIVER = """
#include <signal.h>
#define DONE(name) int name() { return 0; }
DONE(cuInit) DONE(cuCtxGetCurrent) DONE(cuCtxGetDevice) DONE(cuCtxPushCurrent_v2) DONE(cuCtxPopCurrent_v2) DONE(cuCtxSynchronize)
DONE(cuDeviceGetCount) DONE(cuDevicePrimaryCtxGetState) DONE(cuDevicePrimaryCtxRetain) DONE(cuDevicePrimaryCtxRelease_v2)
DONE(cuMemGetInfo_v2) DONE(cuEventCreate) DONE(cuEventRecord) DONE(cuEventQuery) DONE(cuEventElapsedTime) DONE(cuStreamCreate)
DONE(cuStreamIsCapturing) DONE(cuThreadExchangeStreamCaptureMode) DONE(cuFuncGetAttribute) DONE(cuPointerGetAttribute)
DONE(cuGetErrorName) DONE(cuMemcpyDtoD_v2) DONE(cuMemsetD8_v2)
int cuMemcpyDtoH_v2(void) { return raise(SIGUSR1); }
int cuMemFree_v2(void) { return raise(SIGUSR1); }
int cuMemcpyPeer(long to, void *tc, long from, void *fc, long n) { return cuMemcpyDtoD_v2(to, from, n) + raise(SIGUSR2); }
"""
# Calls of it that a handler jumps out of, or in which one calls it, and in between such that return.
CALLER = """
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
extern int cuMemcpyDtoD_v2(), cuMemcpyDtoH_v2(), cuMemcpyPeer(), cuMemsetD8_v2(), cuMemFree_v2();
static sigjmp_buf out;
static void jump(int signal) { (void)signal; siglongjmp(out, 1); }
static void call(int signal) { (void)signal; cuMemsetD8_v2(8L, 1, 3L); }
static __attribute__((noinline)) void leave(int i)
{
	if (!sigsetjmp(out, 1)) {
		if (i & 1)
			cuMemcpyDtoH_v2(8L, 8L, 5L);
		else
			cuMemFree_v2(8L);
	}
}
static __attribute__((noinline)) void leave_from_deeper(int i)
{
	volatile char deeper[4096];

	deeper[i] = 0;
	leave(i);
}
int main(int argc, char **argv)
{
	signal(SIGUSR1, jump);
	signal(SIGUSR2, call);
	for (int i = 0; i < atoi(argv[1]); i++) {
		(i & 2 ? leave : leave_from_deeper)(i);
		cuMemcpyPeer(8L, 0L, 8L, 0L, 7L);
		cuMemcpyDtoD_v2(8L, 8L, 11L);
	}
	return 0;
}
"""


def leave_wrappers(way, n_times, is_left):
    output = scratch()
    environment = agent_environment(output)
    environment["LD_PRELOAD"] += f":{BUMP}"
    result = run([PROGRAMS / "jumps", way, n_times], environment)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    begun, got, after = map(int, result.stdout.split())
    report = leaks(output)
    expect_equal([process["end"] for process in report["processes"] if process["followed"]], ["exit 0"], "the program's end")
    found = total(entries_through(report["leaks"], "keep_block"), "blocks")
    expect_equal(total(entries_through(report["leaks"], "keep_after"), "blocks"), after, "blocks got when all was over")
    # After a jump out of a call it is unknown whether there is a block.
    most = begun if is_left else got
    events = report["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "events produced")
    least = got - events["dropped"]
    assert least <= found <= most, f"{found} blocks are reported; {got} were allocated, {begun} were requested: {events}"
    if not is_left:
        expect_equal(events["dropped"], 0, "events dropped")
    else:
        most = n_times * HANDLERS_MOST
        assert events["dropped"] <= most, f"{events['dropped']} events were dropped, at most {most} wrappers were left"


@case
def calls_of_cuda_that_are_left_or_nested_leave_the_others_as_they_are():
    folder, output = scratch("driver"), scratch()
    for name, text, options in (("libcuda.so.1", DRIVER, ["-shared", "-fPIC"]), ("caller", CALLER, [folder / "libcuda.so.1"])):
        (folder / "source.c").write_text(text)
        # C23 takes () for no parameters.
        compiler = ["gcc", "-std=gnu17", "-w", "-o", folder / name, folder / "source.c", *options]
        expect_equal(run(compiler).returncode, 0, f"compiler of {name}")
    environment = agent_environment(output, LD_LIBRARY_PATH=folder)
    result = run([folder / "caller", N_CUDA], environment)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    names = [event["api"] for event in events(recordings(output)[0]) if event["event"] == "launch"]
    expect_equal({name: names.count(name) for name in set(names)}, {"cuMemcpyPeer": N_CUDA, "cuMemcpyDtoD_v2": N_CUDA}, "calls told")
    counts = read_report("report", output)["events"]
    expect_equal(counts["produced"], counts["delivered"] + counts["dropped"], "events produced")
    expect_equal(counts["dropped"], N_CUDA, "calls that were left, and counted")


for name, (n, left) in WAYS.items():
    add_case(f"wrappers_are_left_by_{name}" if left else f"wrappers_are_interrupted_with_{name}",
             leave_wrappers, name, n, left)


if __name__ == "__main__":
    main()
