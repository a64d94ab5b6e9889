#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Copies and prefetches many at a time without CUPTI, in the forms of CUDA 12 and 13: each call is one piece of work, with the
direction that all its parts have and the sum of their bytes; against the program's list and the simulation's log.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import need_simcuda, of_kind, record_simulated  # noqa: E402
import schema  # noqa: E402

REFUSED = "cuptiSubscribe_v2=999@1"
UNKNOWN, HTOD, DTOH, DTOD, PREFETCH = 0, 1, 2, 8, 32
PAGE = 4096

# The requests of test/simcuda/programs/batches.c: the entry point, direction, bytes, and the number
# of copies.
WORK = [
    ("cuMemcpyBatchAsync_v2", HTOD, 100 + 200 + 300, 3),
    ("cuMemcpyBatchAsync", DTOH, 100 + 200, 2),
    ("cuMemcpyBatchAsync_v2", UNKNOWN, 10 + 20, 2),
    ("cuMemcpyBatchAsync_v2_ptsz", DTOD, 70, 1),
    ("cuMemcpy3DBatchAsync_v2", DTOD, 8 * 4 * 2, 1),
    ("cuMemcpy3DBatchAsync", DTOD, 2 * 3, 1),
    ("cuMemcpyWithAttributesAsync", HTOD, 80, 1),
    ("cuMemcpy3DWithAttributesAsync", DTOH, 3 * 5, 1),
    ("cuMemPrefetchAsync_v2", PREFETCH, PAGE, 0),
    ("cuMemPrefetchAsync", PREFETCH, 2 * PAGE, 0),
    ("cuMemPrefetchBatchAsync", PREFETCH, 3 * PAGE, 0),
    ("cuMemDiscardAndPrefetchBatchAsync", PREFETCH, PAGE, 0),
]
KINDS = {HTOD: "HtoD", DTOH: "DtoH", DTOD: "DtoD", PREFETCH: "prefetch", UNKNOWN: "?"}


def record(**more):
    need_simcuda()
    program = BUILD / "simcuda/programs/batches"
    if run([program], {"LD_LIBRARY_PATH": str(BUILD / "simcuda/lib")}).returncode == 77:
        raise Skip("the headers of CUDA are older than 13.2")
    return record_simulated([program], faults=REFUSED, **more)


@case
def each_form_of_a_batch_is_one_piece_of_work():
    output, truth = record()
    expect_equal(of_kind(truth, "unsupported"), [], "calls that are not simulated")
    found = events(output)
    launches = {event["correlation"]: event["api"] for event in found if event["event"] == "launch" and event["result"] == 0}
    copies = sorted((event for event in found if event["event"] == "copy"), key=lambda event: event["correlation"])
    expect_equal([(launches[event["correlation"]], event["kind"], event["bytes"]) for event in copies],
                 [row[:3] for row in WORK], "what was recorded")
    lines = of_kind(truth, "memcpy")
    expect_equal((len(lines), sum(line["bytes"] for line in lines)),
                 (sum(n for *_, n in WORK), sum(bytes_ for _, kind, bytes_, _ in WORK if kind != PREFETCH)), "against the log")
    refused = [event["api"] for event in found if event["event"] == "launch" and event["result"]]
    expect_equal(refused, ["cuMemcpyBatchAsync_v2"] * 2, "calls that were refused")
    report = read_report("kernels", output, "--limit", "0")
    schema.expect_fits("kernels", report)
    expected = {}
    for _, kind, bytes_, _ in WORK:
        calls, total = expected.get(KINDS[kind], (0, 0))
        expected[KINDS[kind]] = calls + 1, total + bytes_
    expect_equal({row["kind"]: (row["calls"], row["bytes"]) for row in report["copies"]}, expected, "report")


@case
def batches_without_times_have_their_bytes():
    output, _ = record(env={"NSYS_PROFILING_SESSION_ID": "1"})
    found = [event for event in events(output) if event["event"] == "submission"]
    expect_equal([(event["kind"], event["bytes"]) for event in found], [row[1:3] for row in WORK], "what was recorded")


OLD = """
#include <dlfcn.h>
int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
	int (*launch)(void *, int, int) = (int (*)(void *, int, int))dlsym(library, "cuLaunchGrid");

	return init(0) || retain(&context, 0) ? 1 : launch(context, 1, 1) == 801 ? 0 : 2;
}
"""


@case
def a_launch_that_is_not_recorded_is_named():
    need_simcuda()
    folder = scratch("old")
    (folder / "old.c").write_text(OLD)
    expect_equal(run(["cc", "-o", folder / "old", folder / "old.c", "-ldl"]).returncode, 0, "compiler")
    output, _ = record_simulated([folder / "old"], faults=REFUSED)
    notes = [note for note in read_report("kernels", output)["notes"] if "not recorded" in str(note)]
    assert len(notes) == 1 and "cuLaunchGrid" in str(notes), notes


if __name__ == "__main__":
    main()
