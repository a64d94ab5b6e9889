#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
MPI's collectives, messages and waits of four ranks, from C, Fortran and Python, with Open MPI of the distribution and with MPICH from
PyPI, in its own binary interface and in that of the MPI 5 standard: joined by their keys, without a clock, and compared with what the
ranks wrote themselves.
"""

import collections
import csv
import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402

SOURCES = ROOT / "test/mpi"
WORLD = 4
# Debian's Open MPI refuses root, and more processes than cores, unless it is told.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OWN = AS_ROOT | {"TORSH_PROFILER_WITH_STACK": "0", "TORSH_PROFILER_REACHABILITY": "0"}
MOVED = ("group", "group_size", "group_rank", "kind", "name", "in_bytes", "out_bytes", "peer", "tag")
WRITTEN = ("group", "group_size", "group_rank", "kind", "name", "in", "out", "peer", "tag")


class Library:
    """How programs of one MPI are compiled and run."""

    def __init__(self, name):
        self.name = name
        if name == "openmpi":
            self.compiler, self.fortran, runner = need_command("mpicc"), "mpifort", need_command("mpirun")
            self.runner = [runner, "--oversubscribe"]
        else:
            folder = pathlib.Path(environment_python("mpi")).parent
            self.compiler = folder / ("mpicc" if name == "mpich" else "mpicc_abi")
            self.runner = [folder / "mpirun"]

    def compiled(self, source, *options):
        output = scratch("program") / source.partition(".")[0]
        result = run([self.compiler, "-O1", "-g", *options, SOURCES / source, "-o", output])
        expect_equal(result.returncode, 0, result.stderr.decode())
        return output

    def started(self, *command, n=WORLD):
        return [*self.runner, "-n", str(n), *command]


def program_of(library, source, *options):
    if not source.endswith(".f90"):
        return library.compiled(source, *options)
    output = scratch("program") / "fortran"
    result = run([need_command("mpifort"), "-cpp", "-ffree-line-length-none", "-O1", *options, SOURCES / source, "-o", output])
    expect_equal(result.returncode, 0, result.stderr.decode())
    return output


def notes_of(folder):
    """What each rank wrote: about itself, and of each call."""
    ranks = [[json.loads(line) for line in (folder / str(rank)).read_text().splitlines()] for rank in range(WORLD)]
    return [rank[0] for rank in ranks], [rank[1:] for rank in ranks]


def calls_by_rank(events):
    """Each rank's calls; the processes that started the ranks have none."""
    processes = {process["process"]: process for process in events["processes"]}
    by_rank = collections.defaultdict(list)
    for call in events["collectives"]:
        process = processes[call["process"]]
        expect_equal(process["world_size"], WORLD, "world size of a process with calls")
        by_rank[int(process["rank"])].append(call)
    return [by_rank[rank] for rank in range(WORLD)], {int(processes[calls[0]["process"]]["rank"]): processes[calls[0]["process"]]["pid"]
                                                     for calls in by_rank.values()}


def ours(call):
    """Functions with large counts are as those without; MPI_COMM_SELF is another one for each rank."""
    row = dict(call, name=call["name"].removesuffix("_c"), group=call["group"].partition(":")[0] if call["group_size"] == 1 else call["group"],
               peer=-1 if call["peer"] is None else call["peer"], tag=-1 if call["tag"] is None else call["tag"])
    return tuple(row[field] for field in MOVED)


def key_of(call):
    """The same on all ranks that take part."""
    if call["kind"] in ("collective", "read", "write"):
        return call["group"], call["instance"], call["sequence"]
    ends = (call["group_rank"], call["peer"]) if call["kind"] == "send" else (call["peer"], call["group_rank"])
    return call["group"], call["instance"], *ends, call["tag"], call["sequence"]


def is_own(call):
    """Only its own rank knows of it: it has no key."""
    return call["kind"] in ("put", "get", "update", "sync") or call["kind"] in ("read", "write") and "all" not in call["name"]


def check_keys(ranks):
    """Every collective has all ranks of its group, every message its two ends and as many bytes on both."""
    joined = collections.defaultdict(list)
    for calls in ranks:
        assert all(call["sequence"] is None for call in calls if is_own(call)), "keys of calls that only one rank makes"
        calls = [call for call in calls if not is_own(call)]
        assert all(call["sequence"] is not None for call in calls), [call for call in calls if call["sequence"] is None]
        keys = [(call["kind"], key_of(call)) for call in calls]
        expect_equal(len(set(keys)), len(keys), "different keys of a rank")
        for call in calls:
            joined[key_of(call)].append(call)
    for key, calls in joined.items():
        is_message = calls[0]["kind"] in ("send", "receive")
        expect_equal(len(calls), 2 if is_message else calls[0]["group_size"], f"ranks in {key}")
        if is_message:
            expect_equal(sorted(call["kind"] for call in calls), ["receive", "send"], f"ends of {key}")
            expect_equal(calls[0]["in_bytes"] + calls[0]["out_bytes"], calls[1]["in_bytes"] + calls[1]["out_bytes"], f"bytes of {key}")
        else:
            expect_equal(len({call["name"] for call in calls}), 1, f"{key}: {calls}")
            expect_equal(len({call["peer"] for call in calls}), 1, f"root of {key}: {calls}")
    return joined


JOINING = ("MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block")


def check_times(ranks, written, joined):
    """A wait is within the program's own clock around the call; nobody leaves before the last has entered, by one clock."""
    for calls, notes in zip(ranks, written):
        for call, note in zip(calls, notes):
            assert call["end_ns"] is not None and call["call_ns"] <= call["end_ns"] and not call["failed"], call
            assert note["ns"] < 0 or call["wait_ns"] <= note["ns"], (call, note)
    for key, calls in joined.items():
        if calls[0]["name"] in JOINING:
            last = max(call["call_ns"] for call in calls)
            assert all(call["end_ns"] >= last for call in calls), (key, calls)


def recorded_calls(command, folder, env):
    """Each rank's calls and its own words, and the recording. Bare it prints the same."""
    bare = run(command, clean_environment() | env)
    expect_equal(bare.returncode, 0, bare.stderr.decode())
    result, output = record(command, env=env)
    expect_equal((result.returncode, sorted(result.stdout.split())), (0, sorted(bare.stdout.split())), f"status and output\n{result.stderr.decode()}")
    events = json.loads(torsh("export", output, "--format", "json"))
    expect_fits("events", events)
    ranks, pids = calls_by_rank(events)
    about, written = notes_of(folder)
    for rank in range(WORLD):
        expect_equal([ours(call) for call in ranks[rank]], [tuple(note[field] for field in WRITTEN) for note in written[rank]],
                     f"calls of rank {rank}")
        expect_equal(pids[rank], about[rank].get("pid", pids[rank]), f"pid of rank {rank}")
    joined = check_keys(ranks)
    check_times(ranks, written, joined)
    print(f"note: {sum(map(len, ranks))} calls of {WORLD} ranks, {len(joined)} different ones")
    return ranks, pids, output


def calls_of(name, source, *options):
    library = Library(name)
    written = scratch("written")
    return recorded_calls(library.started(program_of(library, source, *options), written), written, OWN)


for _name in ("openmpi", "mpich", "mpi_abi"):
    def _case(name=_name):
        calls_of(name, "calls.c")
    _case.__name__ = f"calls_in_c_with_{_name}"
    case(_case if _name == "openmpi" else needs("mpi")(_case))

for _name in ("openmpi", "mpich", "mpi_abi"):
    def _case(name=_name):
        calls_of(name, "more.c")
    _case.__name__ = f"persistent_requests_neighbors_windows_and_files_with_{_name}"
    case(_case if _name == "openmpi" else needs("mpi")(_case))

for _name, _options in (("mpi", ()), ("mpi_f08", ("-DF08",))):
    add_case(f"calls_in_fortran_with_use_{_name}", calls_of, "openmpi", "messages.f90", *_options)
    add_case(f"files_in_fortran_with_use_{_name}", calls_of, "openmpi", "files.f90", *_options)

for _name in ("openmpi", "mpich"):
    def _case(name=_name):
        library, written = Library(name), scratch("written")
        which = {"MPI4PY_LIBMPI": "libmpi.so.40"} if name == "openmpi" else {}
        recorded_calls(library.started(environment_python("mpi"), SOURCES / "ranks.py", written), written, OWN | which)
    _case.__name__ = f"calls_of_mpi4py_with_{_name}"
    case(needs("mpi")(_case))


@case
def functions_that_are_looked_up_are_recorded():
    result, output = record([need_command("mpirun"), "-n", "2", "--oversubscribe", sys.executable, SOURCES / "by_name.py", "libmpi.so.40"],
                            env=OWN)
    expect_equal(result.returncode, 0, result.stderr.decode())
    events = json.loads(torsh("export", output, "--format", "json"))
    expect_equal([(call["name"], call["group"], call["group_size"], call["sequence"]) for call in events["collectives"]],
                 [("MPI_Barrier", "world", 2, i) for _ in range(2) for i in range(3)], "calls")


@case
def receives_from_anyone_have_a_key_where_it_is_certain():
    """By what rank 0 printed: the message of each, the number only where no other such receive could have got it."""
    library = Library("openmpi")
    result, output = record(library.started(library.compiled("any.c")), env=OWN)
    expect_equal(result.returncode, 0, result.stderr.decode())
    said = [line.rsplit(" ", 2) for line in result.stdout.decode().splitlines()]
    events = json.loads(torsh("export", output, "--format", "json"))
    ranks, _ = calls_by_rank(events)
    received = [call for call in ranks[0] if call["kind"] == "receive"]
    counted, expected = collections.Counter(), []
    for how, sender, n in said:
        expected.append((int(sender), int(n), None if how == "at once" else counted[sender]))
        counted[sender] += 1
    found = [(call["peer"], call["out_bytes"], call["sequence"]) for call in received[:len(said)]]
    expect_equal(found, expected, "receives of rank 0")
    # The number of bytes tells the number of the message: the sender's own count.
    for rank in range(1, WORLD):
        sent = [(call["in_bytes"], call["sequence"]) for call in ranks[rank] if call["kind"] == "send"]
        expect_equal(sent[:4], [(10 * rank + i, i) for i in range(4)], f"sends of rank {rank}")
    assert all(n == 10 * peer + sequence for peer, n, sequence in found if sequence is not None), found
    cancelled, *after = received[len(said):]
    expect_equal([(call["peer"], call["sequence"]) for call in after], [(rank, None) for rank in range(1, WORLD)], "after a cancelled one")


@case
def calls_are_in_every_export():
    ranks, pids, output = calls_of("openmpi", "calls.c")
    database = sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite"))
    fields = ("kind", "group", "name", "in_bytes", "out_bytes", "sequence", "peer", "wait_ns")
    rows = database.execute("select pid, kind, group_name, name, in_bytes, out_bytes, sequence, peer, wait_ns from collective_calls c "
                            "join processes p on p.id = c.process order by pid, number").fetchall()
    expect_equal(rows, [(pids[rank], *(call[name] for name in fields)) for rank in sorted(pids, key=pids.get) for call in ranks[rank]], "sqlite")
    waited = [(pids[rank], call) for rank in range(WORLD) for call in ranks[rank] for _ in range(call["waits"])]
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    waits = [event for event in trace["traceEvents"] if event.get("cat") == "collective_wait"]
    expect_equal(sorted((event["pid"], event["args"]["Collective name"], event["args"]["Process Group Name"], event["args"]["Seq"],
                         event["args"]["In bytes"]) for event in waits),
                 sorted((pid, call["name"], call["group"], call["sequence"], call["in_bytes"]) for pid, call in waited), "chrome")
    assert len(waits) > 300, len(waits)
    with open(exported(output, "t.csv", "--format", "csv"), newline="") as file:
        lines = [row for row in csv.DictReader(file, strict=True) if row["category"] == "collective_wait"]
    expect_equal(len(lines), len(waited), "csv")
    dumped = torsh("dump", recordings(output)[0])
    for word in ("collective_moved", "collective_wait", "process_group"):
        assert word in dumped, word


@case
def ranks_have_each_collective_once():
    ranks, _, output = calls_of("openmpi", "calls.c")
    report = json.loads(torsh("ranks", output, "--json"))
    expect_fits("ranks", report)
    expect_equal((report["world_size"], sorted(rank["rank"] for rank in report["ranks"])), (WORLD, list(range(WORLD))), "ranks")
    found, expected = collections.Counter(), collections.Counter()
    for row in report["collectives"]:
        found[row["name"]] += row["calls"]
    for call in sum(ranks, []):
        if call["kind"] == "collective":
            expected[call["name"]] += 1
    expect_equal(found, expected, "calls by name")


# ---- stragglers ----

STEPS, LATE = 60, 2


def steps_of(late):
    def make(folder):
        library = Library("openmpi")
        result, output = record(library.started(library.compiled("steps.c"), folder, STEPS, late), folder / "out", env=OWN)
        expect_equal(result.returncode, 0, result.stderr.decode())
        return str(output), [list(map(int, (folder / str(rank)).read_text().split())) for rank in range(WORLD)]
    output, entered = once(f"mpi-steps-{late}", make)
    last = collections.Counter(max(range(WORLD), key=moments.__getitem__) for moments in zip(*entered))
    return json.loads(torsh("ranks", output, "--json")), last


@case
@waits
def a_rank_that_is_late_is_found():
    report, last = steps_of(LATE)
    straggler, = report["stragglers"]
    print(f"note: {straggler}; by the program's own clock last {dict(last)}")
    expect_equal(straggler["rank"], LATE, "the straggler")
    assert abs(straggler["times_last"] - last[LATE]) <= 3, (straggler, last)


@case
@waits
def equal_ranks_have_no_straggler():
    report, last = steps_of(-1)
    print(f"note: last {dict(last)}")
    # On a machine that others use, a rank may be late without a cause of its own: then the program's clock has that as well.
    for straggler in report["stragglers"]:
        assert last[straggler["rank"]] > STEPS / WORLD, (straggler, last)


# ---- harm ----


@case
def another_tools_wrappers_are_called():
    library = Library("openmpi")
    program, written = library.compiled("calls.c"), scratch("written")
    tool = scratch("tool") / "libtool.so"
    run([library.compiler, "-shared", "-fPIC", SOURCES / "tool.c", "-o", tool], check=True)
    command = library.started(program, written)
    bare = run(command, clean_environment() | AS_ROOT | {"LD_PRELOAD": str(tool)})
    for order in (f"{AGENT}:{tool}", f"{tool}:{AGENT}"):
        output = scratch("both")
        result = run(command, agent_environment(output, **OWN) | {"LD_PRELOAD": order})
        expect_equal(sorted(result.stdout.splitlines()), sorted(bare.stdout.splitlines()), f"output with {order}")
        assert b"the tool saw" in result.stdout, result
        ranks, _ = calls_by_rank(json.loads(torsh("export", output, "--format", "json")))
        _, written_calls = notes_of(written)
        expect_equal([len(calls) for calls in ranks], [len(notes) for notes in written_calls], "calls")


def without_mpi(*options):
    program = scratch("program") / "probe"
    run([need_command("gcc"), SOURCES / "probe.c", "-o", program, *options], check=True)
    return [program]


def with_mpi(name, *options):
    library = Library(name)
    return library.started(library.compiled("probe.c", "-DWITH_MPI", *options), n=1)


def expect_bare(command, **variables):
    """Status, output, names that are found, threads and descriptors, and errors of calls that fail."""
    bare = run(command, clean_environment() | AS_ROOT)
    result, output = record(command, env=OWN | variables)
    expect_equal((result.returncode, result.stdout), (bare.returncode, bare.stdout), f"status and output\n{result.stderr.decode()}")
    return bare.stdout.decode(), output


@case
def a_program_without_mpi_finds_no_mpi():
    said, _ = expect_bare(without_mpi())
    expect_equal(said.count("isn't there"), 5, f"names that aren't there\n{said}")


@case
@waits
def a_program_with_mpi_is_as_without_the_agent():
    said, _ = expect_bare(with_mpi("openmpi", "-DWITH_ERRORS"))
    expect_equal((said.count("isn't one: error"), said.count("result 1")), (3, 1), said)


@case
@needs("mpi")
def a_program_with_mpich_is_as_without_the_agent():
    """PyPI's MPICH checks no arguments: bad ones end it."""
    said, _ = expect_bare(with_mpi("mpich"))
    expect_equal(said.count("result 1"), 1, said)


@case
@waits
def mpi_is_left_out_where_it_is_not_asked_for():
    for activities, n in (("heap", 0), ("mpi", 1)):
        _, output = expect_bare(with_mpi("openmpi"), TORSH_PROFILER_ACTIVITIES=activities)
        events = [json.loads(line) for file in recordings(output) for line in torsh("dump", file).splitlines()]
        expect_equal(sum(event.get("event") == "process_group" for event in events), n, f"groups with {activities}")


main()
