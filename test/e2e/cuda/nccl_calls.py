#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
An NCCL without an interface for profilers: calls of its functions are recorded instead, as what an interface reports, and
kernels by CUPTI. Compared with the log of the simulated NCCL, which is such a version here.
"""

import collections
import contextlib
import json
import pathlib
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build  # noqa: E402
from ranks.nccl_ranks import BYTES, PRELOAD, PROGRAM, UNKNOWN, nccl_events, play, said  # noqa: E402
from simcuda import cuda_python, need_simcuda, read_truth, recording_environment  # noqa: E402

OLD = {"SIMCUDA_NCCL_INTERFACE": "0"}
COLLECTIVE, MESSAGE, GROUP = 0, 1, 6
FIELDS = ("communicator", "kind", "function", "datatype", "count", "bytes", "root", "peer", "sequence", "stream", "algorithm", "protocol",
          "channels", "collective")


def expected_calls(truth):
    """What each call of the log has to be, in order, and whether it is part of a group."""
    numbers, sequences, calls = {}, collections.Counter(), []
    for line in said(truth, "call"):
        number = numbers.setdefault(line["communicator"], len(numbers) + 1)
        is_message = line["peer"] >= 0
        key = line["communicator"], line["function"]
        calls.append(((number, MESSAGE if is_message else COLLECTIVE, line["function"], line["datatype"], line["count"],
                       BYTES[line["datatype"]] * line["count"], line["root"], line["peer"] + 1 if is_message else 0,
                       UNKNOWN if is_message else sequences[key], line["stream"], "", "", 0, 0), line["depth"]))
        sequences[key] += not is_message
    return calls, numbers


def expect_calls(output, truth):
    events = nccl_events(output)
    calls, numbers = expected_calls(truth)
    found = [event for event in events if event["event"] == "nccl_call"]
    expect_equal([tuple(event[field] for field in FIELDS) for event in found], [fields for fields, _ in calls], "calls")
    groups = {event["number"]: event for event in events if event["event"] == "nccl_work"}
    expect_equal({(event["kind"], event["depth"]) for event in groups.values()}, {(GROUP, 1)}, "groups")
    expect_equal([event["parent"] in groups for event in found], [depth > 0 for _, depth in calls], "calls of groups")
    ended = collections.Counter(event["number"] for event in events if event["event"] == "nccl_end")
    expect_equal(ended, collections.Counter(event["number"] for event in [*found, *groups.values()]), "ends")
    last = {event["number"]: event for event in events if event["event"] == "nccl_communicator"}
    made = {line["communicator"]: line for line in said(truth, "made")}
    expect_equal({number: (event["n_ranks"], event["rank"] - 1, event["version"], event["is_ended"]) for number, event in last.items()},
                 {number: (made[known]["ranks"], made[known]["rank"], 0, 1) for known, number in numbers.items()}, "communicators")
    return found, {number: event["hash"] for number, event in last.items()}


@case
def each_call_is_recorded_with_what_it_moves():
    hashes = []
    for output, truth in play("cuda,nccl", 0):
        expect_equal(said(truth, "init"), [], "plugins that were found")
        _, of_rank = expect_calls(output, truth)
        hashes.append(of_rank)
        check_counts(read_report("report", output)["events"])
        path = scratch("exported") / "t.sqlite"
        torsh("export", output, "-o", path, "--format", "sqlite")
        with contextlib.closing(sqlite3.connect(path)) as database:
            expect_equal(database.execute("SELECT DISTINCT interface, source FROM nccl_communicators").fetchall(), [(0, "calls")],
                         "the source")
            rows = database.execute("SELECT function, bytes, elements FROM nccl_spans WHERE function NOT NULL").fetchall()
        expect_equal(collections.Counter(rows), collections.Counter(
            (line["function"], BYTES[line["datatype"]] * line["count"], line["count"]) for line in said(truth, "call")), "rows of nccl_spans")
    expect_equal(hashes[0], hashes[1], "the communicators' hashes, on both ranks")


@case
def a_library_that_is_to_have_no_plugin_is_recorded_by_its_calls():
    for output, truth in play("nccl", 6, env={"NCCL_PROFILER_PLUGIN": "none"}):
        expect_equal(said(truth, "init"), [], "plugins that were found")
        expect_calls(output, truth)


@case
def a_library_that_reports_itself_is_not_recorded_twice():
    for output, truth in play("nccl", 1):
        versions = {event["version"] for event in nccl_events(output) if event["event"] == "nccl_communicator"}
        expect_equal(versions, {1}, "interfaces of communicators")


WORDS = {"AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
         "Reduce": "reduce"}


@case
def ranks_compares_them_and_has_their_kernels():
    played = play("cuda,nccl", 0)
    report = json.loads(torsh("ranks", *(path for output, _ in played for path in recordings(output)), "--json"))
    expected, kernels = collections.Counter(), 0
    for _, truth in played:
        for line in said(truth, "call"):
            if line["peer"] < 0:
                size = BYTES[line["datatype"]] * line["count"] * (2 if line["function"] in ("AllGather", "ReduceScatter") else 1)
                expected[WORDS[line["function"]], "calls"] += 1
                expected[WORDS[line["function"]], "bytes"] += size
        kernels += sum(line["kind"] == "kernel" and "AllReduce" in line["name"] for line in truth)
    found = collections.Counter()
    for row in report["collectives"]:
        found[row["name"], "calls"] += row["calls"]
        found[row["name"], "bytes"] += row["bytes"]
        expect_equal(row["group_size"], 2, "ranks of the group")
        assert row["total_ns"] > 0, f"{row} has no time on the device"
    expect_equal(found, expected, "collectives, and their bytes")
    expect_equal(found["allreduce", "calls"], kernels, "all-reduces and their kernels")


LOOK = """
import ctypes, os
library = ctypes.CDLL("libnccl.so.2")
address = ctypes.cast(library.ncclAllReduce, ctypes.c_void_p).value
for line in open("/proc/self/maps"):
    first, last = (int(end, 16) for end in line.split()[0].split("-"))
    if first <= address < last:
        print(os.path.basename(line.split()[-1]))
try:
    ctypes.CDLL(None).ncclNothing
except AttributeError:
    print("none")
"""


@case
def without_the_activity_nothing_is_interposed():
    need_simcuda()
    seen = {}
    for activities in (None, "cpu,cuda", "nccl"):
        variables = recording_environment(scratch("out"), scratch("truth") / "truth", OLD)
        variables["TORSH_PROFILER_ACTIVITIES"] = activities or ""
        variables["LD_PRELOAD"] = f"{AGENT}:{PRELOAD}" if activities else PRELOAD
        result = run([sys.executable, "-c", LOOK], variables)
        expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
        seen[activities] = result.stdout.decode().split()
    expect_equal(seen[None], ["libnccl.so.2", "none"], "the library's own function, without the agent")
    expect_equal(seen["cpu,cuda"], seen[None], "what a look-up finds without the activity")
    expect_equal(seen["nccl"], [AGENT.name, "none"], "what it finds with it")
    exported = run(["nm", "-D", "--defined-only", AGENT]).stdout.decode().split()
    expect_equal([name for name in exported if name.startswith("nccl") and not name.startswith("ncclProfiler_v")], [], "exported names")


LINKED = """
#include <stddef.h>
#include <stdio.h>
int ncclGetUniqueId(void *id);
typedef struct { char bytes[128]; } unique;
int ncclCommInitRank(void **comm, int ranks, unique id, int rank);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
int ncclCommDestroy(void *comm);
int ncclCommCount(void *comm, int *n);
int main(void)
{
	unique id;
	void *comm;
	int n = 0, result = ncclGetUniqueId(&id) || ncclCommInitRank(&comm, 1, id, 0);

	for (int i = 0; i < 3 && !result; i++)
		result = ncclAllReduce(NULL, NULL, 10 + i, 7, 0, comm, NULL);
	if (!result)
		result = ncclCommCount(comm, &n) || ncclCommDestroy(comm);
	printf("%d %d %d\\n", result, n, ncclAllReduce(NULL, NULL, 1, 7, 0, NULL, NULL));
	return result;
}
"""


@case
def a_program_that_is_linked_with_it_behaves_as_without_the_agent():
    need_simcuda()
    source = scratch("source") / "linked.c"
    source.write_text(LINKED)
    for binding in ("lazy", "now"):
        program = build(f"linked-{binding}", source, f"-Wl,-z,{binding}", PRELOAD.rsplit(":", 1)[1], "-Wl,--unresolved-symbols=ignore-in-shared-libs")
        seen = []
        for activities in (None, "nccl"):
            output, truth = scratch("out"), scratch("truth") / "truth"
            variables = recording_environment(output, truth, OLD)
            variables["TORSH_PROFILER_ACTIVITIES"] = activities or ""
            variables["LD_PRELOAD"] = f"{AGENT}:{PRELOAD}" if activities else PRELOAD
            result = run([program], variables)
            seen.append((result.returncode, result.stdout, result.stderr, len(said(read_truth(truth), "call"))))
        expect_equal(seen[1], seen[0], f"status, output and calls with binding {binding}")
        expect_equal(seen[0][:2], (0, b"0 1 4\n"), "its output")
        found = [event["count"] for event in nccl_events(output) if event["event"] == "nccl_call"]
        expect_equal(found, [10, 11, 12], f"calls that were recorded, with binding {binding}")


TRAINING = """
import sys, torch
import torch.distributed as dist
rank = int(sys.argv[2])
dist.init_process_group("nccl", init_method=f"file://{sys.argv[1]}/meeting", rank=rank, world_size=2)
for n in (1024, 65536):
    dist.all_reduce(torch.ones(n, device="cuda"))
dist.all_gather_into_tensor(torch.zeros(14, device="cuda"), torch.ones(7, device="cuda"))
(dist.send if rank == 0 else dist.recv)(torch.ones(33, device="cuda"), 1 - rank)
torch.cuda.synchronize()
dist.destroy_process_group()
"""


@case
@needs("torch")
def collectives_of_pytorch_have_its_calls_and_are_counted_once():
    python, meeting, ranks = cuda_python(), scratch("meeting"), []
    for rank in range(2):
        output, truth = scratch(f"rank{rank}"), scratch(f"truth{rank}") / "truth"
        variables = recording_environment(output, truth, {"TORSH_PROFILER_ACTIVITIES": "cpu,cuda,nccl", "RANK": str(rank),
                                                          "WORLD_SIZE": "2", **OLD})
        ranks.append((subprocess.Popen([python, "-c", TRAINING, meeting, str(rank)], env=variables, stderr=subprocess.PIPE), output))
    for rank, (process, output) in enumerate(ranks):
        stderr = process.communicate(timeout=240)[1]
        expect_equal(process.returncode, 0, f"status\n{stderr.decode()[-2000:]}\n")
        wait_until(lambda: recordings(output), "a recording")
        calls = json.loads(torsh("export", output, "--format", "json"))["collectives"]
        found = [(call["kind"], call["sequence"], call["nccl_bytes"]) for call in calls]
        expect_equal(found, [("collective", 0, 4096), ("collective", 1, 262144), ("collective", 2, 28),
                             ("send" if rank == 0 else "receive", 0, 132)], "collectives with NCCL's part")
    report = json.loads(torsh("ranks", *(path for _, output in ranks for path in recordings(output)), "--json"))
    found = collections.Counter()
    for row in report["collectives"]:
        found[row["name"]] += row["calls"]
    expect_equal(found, {"allreduce": 4, "_allgather_base": 2, "send": 1, "recv": 1}, "collectives and messages of both ranks, each once")



BESIDE = """
import ctypes, sys, torch
import torch.distributed as dist
dist.init_process_group("nccl", init_method=f"file://{sys.argv[1]}/meeting", rank=0, world_size=1)
x = torch.ones(1024, device="cuda")
for _ in range(2):
    dist.all_reduce(x)
if sys.argv[2] == "together":
    with dist._coalescing_manager(device=torch.device("cuda", 0)):
        dist.all_reduce(x)
        dist.all_reduce(x)
else:
    nccl = ctypes.CDLL("libnccl.so.2")
    class Unique(ctypes.Structure):
        _fields_ = [("internal", ctypes.c_char * 128)]
    unique, own = Unique(), ctypes.c_void_p()
    assert not nccl.ncclGetUniqueId(ctypes.byref(unique))
    assert not nccl.ncclCommInitRank(ctypes.byref(own), 1, unique, 0)
    for _ in range(3):
        assert not nccl.ncclAllReduce(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(x.data_ptr()), ctypes.c_size_t(512), 7, 0, own, None)
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def rows_of(*outputs):
    """Calls and bytes by name and whether the group is a communicator of NCCL's."""
    report = json.loads(torsh("ranks", *(path for output in outputs for path in recordings(output)), "--json"))
    found = collections.Counter()
    for row in report["collectives"]:
        is_direct = len(row["group"]) == 16
        found[row["name"], is_direct, "calls"] += row["calls"]
        found[row["name"], is_direct, "bytes"] += row["bytes"]
    return {key: n for key, n in found.items() if n}


def beside(interface, how, expected):
    output, truth = scratch("out"), scratch("truth") / "truth"
    variables = recording_environment(output, truth, {"TORSH_PROFILER_ACTIVITIES": "torch,nccl", "SIMCUDA_NCCL_INTERFACE": str(interface)})
    result = run([cuda_python(), "-c", BESIDE, scratch("meeting"), how], variables, timeout=240)
    expect_equal(result.returncode, 0, f"status {result.stderr.decode()[-2000:]}")
    expect_equal(rows_of(output), expected, "collectives of PyTorch and of the program's own communicator")


DIRECT = {("allreduce", False, "calls"): 2, ("allreduce", False, "bytes"): 8192,
          ("allreduce", True, "calls"): 3, ("allreduce", True, "bytes"): 6144}
for number in (0, 3):
    add_case(f"pytorch_and_direct_calls_are_each_counted_once_with_interface_{number}", needs("torch")(beside), number, "direct", DIRECT)
TOGETHER = {("allreduce", False, "calls"): 2, ("allreduce", False, "bytes"): 8192,
            ("allreduce_coalesced", False, "calls"): 1, ("allreduce_coalesced", False, "bytes"): 8192}
add_case("collectives_of_pytorch_that_are_called_together_are_counted_once", needs("torch")(beside), 3, "together", TOGETHER)

OF_MPI = """
#include <mpi.h>
#include <stddef.h>
#include <string.h>
typedef struct { char bytes[128]; } unique;
int ncclGetUniqueId(unique *id);
int ncclCommInitRank(void **comm, int ranks, unique id, int rank);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
int ncclCommDestroy(void *comm);
int main(int argc, char **argv)
{
	unique id;
	void *comm;
	int rank, one = 1, sum, result;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	result = rank ? 0 : ncclGetUniqueId(&id);
	MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
	result |= ncclCommInitRank(&comm, 2, id, rank);
	for (int i = 0; i < 3; i++) {
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		result |= ncclAllReduce(NULL, NULL, 100, 7, 0, comm, NULL);
		result |= ncclAllReduce(NULL, NULL, 50, 7, 0, comm, NULL);
	}
	result |= ncclCommDestroy(comm);
	MPI_Finalize();
	return result;
}
"""


def of_mpi_too(interface):
    need_simcuda()
    folder = scratch("program")
    (folder / "both.c").write_text(OF_MPI)
    made = run([need_command("mpicc"), "-o", folder / "both", folder / "both.c", PRELOAD.rsplit(":", 1)[1],
                "-Wl,--unresolved-symbols=ignore-in-shared-libs"])
    expect_equal(made.returncode, 0, made.stderr.decode())
    output, truth = scratch("out"), scratch("truth") / "truth-%p"
    variables = recording_environment(output, truth, {
        "TORSH_PROFILER_ACTIVITIES": "mpi,nccl", "SIMCUDA_NCCL_INTERFACE": str(interface), "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    variables.pop("SIMCUDA_LOG", None)
    result = run([need_command("mpirun"), "--oversubscribe", "-n", "2", folder / "both"], variables)
    expect_equal(result.returncode, 0, f"status {result.stderr.decode()[-2000:]}")
    wait_until(lambda: recordings(output), "a recording")
    expect_equal(rows_of(output), {
        ("MPI_Bcast", False, "calls"): 2, ("MPI_Bcast", False, "bytes"): 256, ("MPI_Allreduce", False, "calls"): 6,
        ("MPI_Allreduce", False, "bytes"): 24, ("allreduce", True, "calls"): 12, ("allreduce", True, "bytes"): 12 * 300},
        "collectives of MPI and of NCCL")


for number in (0, 1):
    add_case(f"a_program_of_mpi_has_its_collectives_of_nccl_too_with_interface_{number}", of_mpi_too, number)


if __name__ == "__main__":
    main()
