#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
NCCL's profiler interface, versions 1 to 6, on the simulated NCCL: it looks up a plugin as NCCL does,
calls it on the program's threads and on a proxy's, and logs each call. The recordings of two ranks
have the same events, field by field, nested alike. Another plugin receives what it receives alone.
"""

import collections
import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build  # noqa: E402
from consumers import ask_trace_processor  # noqa: E402
from ranks.nccl_ranks import BYTES, PRELOAD, PROGRAM, UNKNOWN, nccl_events, play, said  # noqa: E402
from simcuda import cuda_python, need_simcuda, read_truth, recording_environment  # noqa: E402
from timeline import short  # noqa: E402

PLUGIN = ROOT / "test/e2e/cuda/nccl_plugin.c"
# Bits of the types, and the agent's kinds for them (enum nccl_kind).
KINDS = {"nccl_call": {2: 0, 4: 1, 512: 2, 1024: 3, 4096: 4}, "nccl_work": {1: 5, 256: 6, 2048: 7, 8192: 8, 16384: 9},
         "nccl_transfer": {8: 10, 16: 11, 128: 12}, "nccl_kernel": {64: None}}
EVENT_OF = {bit: event for event, bits in KINDS.items() for bit in bits}
PROXY = 8 | 16 | 128
def described(line, interface):
    """The fields that an event of the recording has for a start in the log."""
    kind, fields = line["type"], {"communicator": line["communicator"]}
    if kind in KINDS["nccl_call"]:
        size = BYTES[line["datatype"]] * line["count"]
        is_task, is_message = kind in (2, 4), kind in (4, 1024)
        fields.update(function=line["function"], datatype=line["datatype"], count=line["count"], bytes=size,
                      root=0 if is_message else line["root"], peer=line["peer"] + 1 if kind == 4 else 0,
                      algorithm=line["algorithm"] if kind == 2 else "", protocol=line["protocol"] if kind == 2 else "",
                      channels=line["channels"] if kind == 2 or kind == 4 and interface >= 4 else 0,
                      warps=line["warps"] if kind == 2 else 0, stream=0 if is_task else line["stream"],
                      sequence=line["sequence"] if kind in (2, 4096) else UNKNOWN, is_captured=0, collective=0)
    elif kind in KINDS["nccl_work"]:
        fields.update(depth=line["depth"] if kind == 256 else 0, operations=line["operations"], bytes=line["bytes"])
    elif kind == 64:
        fields.update(channel=line["channel"], device_ns=line["timer"] if interface >= 4 else 0)
    elif kind == 8:
        fields.update(channel=line["channel"], peer=line["to"] + 1, steps=line["steps"], chunk_bytes=line["chunk"],
                      is_send=line["is_send"], is_foreign=0)
    elif kind == 16:
        fields.update(step=line["step"])
    else:
        fields.update(bytes=line["bytes"], opcode=1, type=(2 << 16) | 1)
    return fields


def expect_same(output, truth, interface):
    """Every event of the log is in the recording, with its fields, its parent, its states and its end, and no other."""
    events, starts = nccl_events(output), said(truth, "start")
    begins = [event for event in events if event["event"] in KINDS]
    expect_equal(len(begins), len(starts), "events")
    # Numbers are given in the order of the calls of all threads; the log's are, too, but for races of two threads: so by
    # thread, and within one in order.
    by_thread = [collections.defaultdict(list), collections.defaultdict(list)]
    for event in begins:
        by_thread[0][event["thread"]].append(event)
    for line in starts:
        by_thread[1][line["thread"]].append(line)
    expect_equal(sorted(map(len, by_thread[0].values())), sorted(map(len, by_thread[1].values())), "events by thread")
    number_of = {0: 0}
    pairs = [pair for ours, theirs in zip(sorted(by_thread[0].values(), key=lambda some: some[0]["at_ns"]), by_thread[1].values())
             for pair in zip(ours, theirs)]
    for event, line in pairs:
        number_of[line["id"]] = event["number"]
    for event, line in pairs:
        expect_equal(event["event"], EVENT_OF[line["type"]], f"event of {line}")
        expect_equal(event.get("kind"), KINDS[event["event"]][line["type"]], f"kind of {line}")
        fields = described(line, interface)
        expect_equal({name: event[name] for name in fields}, fields, f"fields of {line}")
        expect_equal(event["parent"], number_of[line["parent"]], f"parent of {line}")
    states = collections.Counter((event["number"], event["state"], event["value"], event["steps"]) for event in events
                                 if event["event"] == "nccl_state")
    expect_equal(states, collections.Counter((number_of[line["id"]], line["state"], line["value"], line["steps"])
                                             for line in said(truth, "state")), "states")
    ends = collections.Counter(event["number"] for event in events if event["event"] == "nccl_end")
    expect_equal(ends, collections.Counter(number_of[line["id"]] for line in said(truth, "stop")), "ends")
    expect_equal(set(ends), {event["number"] for event in begins}, "events that ended")
    return events


def expect_communicators(events, truth, interface):
    made = [line for line in said(truth, "init")]
    expect_equal([line["interface"] for line in made], [interface] * 2, "the interface that was used")
    last = {}
    for event in events:
        if event["event"] == "nccl_communicator":
            last[event["number"]] = event
    names = {event["number"]: (event["hash"], event["rank"] - 1, event["version"], event["is_ended"]) for event in last.values()}
    expect_equal(names, {line["communicator"]: (line["hash"], line["rank"], interface, 1) for line in made}, "communicators")
    if interface >= 4:
        expect_equal([event["n_ranks"] for event in last.values()], [2, 2], "ranks")


def every_interface(interface):
    hashes = []
    for output, truth in play("nccl:full", interface):
        events = expect_same(output, truth, interface)
        expect_communicators(events, truth, interface)
        types = {line["type"] for line in said(truth, "start")}
        wanted = {1, 2, 4, 8, 16} | ({64, 128} if interface >= 3 else set()) | ({256, 512, 1024, 2048} if interface >= 5 else set()) \
            | ({4096, 8192, 16384} if interface >= 6 else set())
        expect_equal(types, wanted, "types of events")
        hashes.append({event["hash"] for event in events if event["event"] == "nccl_communicator" and event["hash"]})
        check_counts(read_report("report", output)["events"])
    expect_equal(hashes[0], hashes[1], "the communicators' hashes, on both ranks")


for number in range(1, 7):
    add_case(f"interface_{number}_is_recorded_call_by_call", every_interface, number)


@case
def the_proxy_is_left_out_unless_it_is_wanted():
    for output, truth in play("cuda,nccl", 6):
        expect_same(output, truth, 6)
        expect_equal({line["type"] & PROXY for line in said(truth, "start")}, {0}, "types of proxy and network")


@case
def nothing_is_changed_where_nccl_is_not_wanted():
    show = "import os; print({name for name in os.environ if name.startswith('NCCL')})"
    for activities in ("cpu", "cpu,cuda"):
        output = scratch()
        variables = agent_environment(output, TORSH_PROFILER_ACTIVITIES=activities)
        expect_equal(run([sys.executable, "-c", show], variables).stdout, b"set()\n", "variables")
    for output, truth in play("cpu,cuda", 6):
        expect_equal(said(truth, "init"), [], "plugins that were found")
    # The program itself is the plugin: it has none, and the agent isn't one.
    for output, truth in play("cpu,cuda", 6, env={"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN"}):
        expect_equal(said(truth, "init"), [], "plugins that were found in the program")


@case
def a_user_who_wants_none_gets_none():
    for output, truth in play("cuda,nccl", 6, env={"NCCL_PROFILER_PLUGIN": "none"}):
        expect_equal(said(truth, "init"), [], "plugins that were found")


@case
def the_program_itself_may_be_named_as_the_plugin():
    for output, truth in play("nccl", 6, env={"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN"}):
        expect_same(output, truth, 6)


@case
def a_library_without_the_interface_is_said_to_have_none():
    for output, truth in play("cuda,nccl", 0):
        expect_equal(said(truth, "init"), [], "plugins that were found")
        assert "older than 2.23" in torsh("report", output), "it is not in the report"
        kernels = read_report("kernels", output, "--limit", "0")["kernels"]
        found = sum(kernel["calls"] for kernel in kernels if kernel["symbol"].startswith("ncclDevKernel"))
        expect_equal(found, len([line for line in truth if line["kind"] == "kernel"]), "kernels by CUPTI")


def plugin(*versions):
    name = "libnccl-profiler-" + "".join(map(str, versions))
    return build(f"{name}.so", PLUGIN, f"-I{ROOT}", "-fPIC", "-shared", "-pthread", *(f"-DHAS_V{version}" for version in versions))


def heard(log):
    """What a plugin received, by thread: in order within each."""
    found = collections.defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else []:
        thread, _, rest = line.partition(" ")
        found[thread].append(rest)
    return dict(found)


def with_and_without(interface, env, activities="cuda,nccl:full"):
    """What a plugin receives from one rank alone, under an agent that doesn't record NCCL, and under one that does, whose
    recording comes last, with the truth."""
    need_simcuda()
    logs, folder = [], scratch("logs")
    for i, wanted in enumerate((None, "cuda", activities)):
        log, truth, output = folder / f"log{i}", folder / f"truth{i}", scratch("out")
        variables = recording_environment(output, truth, {"SIMCUDA_NCCL_INTERFACE": str(interface), "PLUGIN_LOG": str(log), **env})
        variables["LD_PRELOAD"] = f"{AGENT}:{PRELOAD}" if wanted else PRELOAD
        variables["LD_LIBRARY_PATH"] = f"{variables['LD_LIBRARY_PATH']}:{env.get('LD_LIBRARY_PATH', '')}"
        variables["TORSH_PROFILER_ACTIVITIES"] = wanted or ""
        result = run([sys.executable, PROGRAM, 0, 1, scratch("meeting")], variables)
        expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
        logs.append((heard(log), [(line["plugin"], line["interface"]) for line in said(read_truth(truth), "init")]))
    alone, aside, beside = logs
    expect_equal(aside, alone, "what the plugin receives beside an agent that does not record NCCL")
    expect_equal(beside[0], alone[0], "what the plugin receives with the agent")
    assert not any("BAD" in line for lines in beside[0].values() for line in lines), "a handle or context of another's"
    return output, read_truth(truth), alone[0], beside[1]


def another_plugin_is_called_through(has, interface, used, mask):
    output, truth, alone, tables = with_and_without(interface, {"NCCL_PROFILER_PLUGIN": str(plugin(*has)), "PLUGIN_MASK": str(mask)})
    expect_equal(tables, [(f"other{used}", used)] * 2, "the table that was used, and its name")
    assert alone if not mask else any(line.startswith("start") for line in alone["1"]), f"the plugin received {alone}"
    expect_same(output, truth, used) if mask & ~PROXY or not mask else None
    assert "another profiler plugin is there" in torsh("report", output), "it is not in the report"


for has, interface, used in (((6,), 6, 6), ((5, 4, 1), 6, 5), ((6, 4, 2), 5, 4), ((3,), 6, 3), ((2,), 4, 2), ((1,), 1, 1)):
    for mask in (0, 0x7fdf if used > 4 else 0xdf, 2, 8 if used < 3 else 128):
        add = add_case if mask == 0 or used == 6 else add_long_case
        add(f"plugin_{''.join(map(str, has))}_with_nccl_of_{interface}_and_mask_{mask}_receives_the_same",
            another_plugin_is_called_through, has, interface, used, mask)


@case
def a_mask_that_changes_on_the_way_does_so_with_the_agent():
    # Read when a call is made: on one thread, to be the same each time.
    with_and_without(6, {"NCCL_PROFILER_PLUGIN": str(plugin(6)), "PLUGIN_MASK": str(0x302), "PLUGIN_LATER": str(0x100),
                         "PLUGIN_LATER_AT": "12"}, "cuda,nccl")


@case
def a_plugin_by_its_short_or_default_name_is_called_through():
    library = plugin(5)
    folder = scratch("libraries")
    (folder / "libnccl-profiler-some.so").symlink_to(library)
    (folder / "libnccl-profiler.so").symlink_to(library)
    for env in ({"NCCL_PROFILER_PLUGIN": "some"}, {}):
        _, _, alone, tables = with_and_without(6, {"LD_LIBRARY_PATH": str(folder), "PLUGIN_MASK": "3", **env})
        expect_equal(tables, [("other5", 5)] * 2, "the table that was used")
        assert any(line.startswith("start 2") for line in alone["1"]), "the plugin received no collective"


@case
def a_plugin_that_does_not_start_is_done_without():
    output, truth = scratch(), scratch("truth") / "truth"
    variables = recording_environment(output, truth, {
        "SIMCUDA_NCCL_INTERFACE": "6", "PLUGIN_LOG": str(scratch("log") / "log"), "NCCL_PROFILER_PLUGIN": str(plugin(6)),
        "PLUGIN_FAILS": "1", "TORSH_PROFILER_ACTIVITIES": "nccl:full"})
    variables["LD_PRELOAD"] = f"{AGENT}:{PRELOAD}"
    expect_equal(run([sys.executable, PROGRAM, 0, 1, scratch("meeting")], variables).returncode, 0, "status")
    expect_same(output, read_truth(truth), 6)


def spans_of(truth, interface):
    """What each reported call, group, launch, channel and transfer is, by the log."""
    found = collections.Counter()
    for line in said(truth, "start"):
        fields = described(line, interface)
        name = fields.get("function") or NAMES[line["type"]]
        found[name, fields.get("algorithm") or None, fields["bytes"] if line["type"] in CALLS else None] += 1
    return found


CALLS = (2, 4, 512, 1024, 4096)
NAMES = {1: "group", 256: "group_call", 2048: "launch", 8192: "copy_engine_sync", 16384: "copy_engine_batch",
         8: "proxy_operation", 16: "proxy_step", 128: "network", 64: "kernel_channel"}


@case
def exports_have_all_that_nccl_reported():
    output, truth = play("nccl:full", 6)[0]
    expected = spans_of(truth, 6)
    path = scratch("exported") / "t.sqlite"
    torsh("export", output, "-o", path, "--format", "sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT coalesce(function, kind), algorithm, CASE WHEN function NOT NULL THEN bytes END FROM nccl_spans")
        expect_equal(collections.Counter(rows.fetchall()), expected, "rows of nccl_spans")
        expect_equal(sorted(database.execute("SELECT hash, ranks, rank, interface FROM nccl_communicators").fetchall()),
                     sorted((f"{line['hash']:016x}", line["ranks"], line["rank"], 6) for line in said(truth, "init")), "communicators")
        moved = sum(line["bytes"] for line in said(truth, "start") if line["type"] == 128)
        expect_equal(database.execute("SELECT sum(bytes) FROM nccl_spans WHERE kind = 'network'").fetchone()[0], moved, "bytes moved")
        # Each channel ran 50 ns on the simulated device, as part of a collective or a message.
        expect_equal(database.execute("SELECT DISTINCT c.device_end_ns - c.device_start_ns, p.kind FROM nccl_spans c JOIN nccl_spans p "
                                      "ON p.process = c.process AND p.number = c.parent WHERE c.kind = 'kernel_channel' ORDER BY 2").fetchall(),
                     [(50, "collective"), (50, "message")], "kernel channels")
    trace = json.loads(torsh("export", output, "--format", "chrome"))["traceEvents"]
    begins, ends = ({event["id"]: event for event in trace if event.get("cat") == "nccl" and event["ph"] == phase} for phase in "be")
    expect_equal(collections.Counter((event["name"], event["args"].get("Algorithm"),
                                      event["args"]["Bytes"] if "Elements" in event["args"] else None) for event in begins.values()),
                 expected, "events of Chrome's trace")
    assert all(ends[number]["ts"] >= event["ts"] for number, event in begins.items()), "an event ends before it begins"
    slices, = ask_trace_processor_of(output)
    expect_equal({row["name"]: row["n"] for row in slices}, dict(sum_by_name(expected)), "slices of Perfetto's trace")


def sum_by_name(spans):
    found = collections.Counter()
    for (name, _, _), n in spans.items():
        found[name] += n
    return found


def ask_trace_processor_of(output):
    path = scratch("exported") / "t.pftrace"
    torsh("export", output, "-o", path, "--format", "perfetto")
    return ask_trace_processor(path, "select name, count(*) n from slice where category = 'nccl' and dur >= 0 group by 1")


@case
def ranks_compares_collectives_of_programs_without_pytorch():
    played = play("nccl", 6)
    report = json.loads(torsh("ranks", *(path for output, _ in played for path in recordings(output)), "--json"))
    words = {"AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
             "Reduce": "reduce"}
    expected = collections.Counter()
    for _, truth in played:
        communicators = {line["communicator"]: f"{line['hash']:016x}" for line in said(truth, "init")}
        for line in said(truth, "start"):
            if line["type"] in (2, 4096):
                size = BYTES[line["datatype"]] * line["count"] * (2 if line["function"] in ("AllGather", "ReduceScatter") else 1)
                key = words[line["function"]], communicators[line["communicator"]], 2
                expected[key] += 1
                expected[(*key, "bytes")] += size
    found = collections.Counter()
    for row in report["collectives"]:
        key = row["name"], row["group"], row["group_size"]
        found[key] += row["calls"]
        found[(*key, "bytes")] += row["bytes"]
    expect_equal([rank["rank"] for rank in report["ranks"]], [0, 1], "ranks")
    expect_equal(found, expected, "collectives, and their bytes")


TRAINING = """
import sys, torch
import torch.distributed as dist
rank = int(sys.argv[2])
dist.init_process_group("nccl", init_method=f"file://{sys.argv[1]}/meeting", rank=rank, world_size=2)
for n in (1024, 65536):
    dist.all_reduce(torch.ones(n, device="cuda"))
dist.all_gather_into_tensor(torch.zeros(14, device="cuda"), torch.ones(7, device="cuda"))
dist.reduce_scatter_tensor(torch.zeros(9, dtype=torch.float16, device="cuda"), torch.ones(18, dtype=torch.float16, device="cuda"))
(dist.send if rank == 0 else dist.recv)(torch.ones(33, device="cuda"), 1 - rank)
torch.cuda.synchronize()
dist.destroy_process_group()
"""


@case
@needs("torch")
def collectives_of_pytorch_have_what_nccl_did_for_them():
    python, meeting, ranks = cuda_python(), scratch("meeting"), []
    for rank in range(2):
        output, truth = scratch(f"rank{rank}"), scratch(f"truth{rank}") / "truth"
        variables = recording_environment(output, truth, {"TORSH_PROFILER_ACTIVITIES": "cpu,cuda,nccl", "RANK": str(rank),
                                                          "WORLD_SIZE": "2"})
        ranks.append((subprocess.Popen([python, "-c", TRAINING, meeting, str(rank)], env=variables, stderr=subprocess.PIPE), output))
    for rank, (process, output) in enumerate(ranks):
        stderr = process.communicate(timeout=240)[1]
        expect_equal(process.returncode, 0, f"status\n{stderr.decode()[-2000:]}\n")
        wait_until(lambda: recordings(output), "a recording")
        calls = json.loads(torsh("export", output, "--format", "json"))["collectives"]
        found = [(call["kind"], call["sequence"], call["algorithm"], call["protocol"], call["nccl_bytes"]) for call in calls]
        # The gather and the scatter are told of as one rank's part.
        expect_equal(found, [("collective", 0, "TREE", "LL", 4096), ("collective", 1, "RING", "SIMPLE", 262144),
                             ("collective", 2, "TREE", "LL", 28), ("collective", 3, "TREE", "LL", 18),
                             ("send" if rank == 0 else "receive", 0, None, None, 132)], "collectives with NCCL's part")
        expect_equal({call["in_bytes"] for call in calls[:2]}, {call["nccl_bytes"] for call in calls[:2]}, "bytes by both")


def looked_for(library):
    """Versions of the interface that a libnccl looks for; those before 2.23 have none."""
    return set(re.findall(rb"\0ncclProfiler_v(\d)(?=\0)", library.read_bytes()))


FOUND = sorted({path.resolve() for folder in ((ROOT / "build").glob("*venv*"), pathlib.Path("/usr/local").glob("cuda*")) for where in folder
               for pattern in ("lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2", "lib/libnccl.so.2", "lib64/libnccl.so.2")
               for path in where.glob(pattern)})
REAL = [library for library in FOUND if looked_for(library)]


@case
def the_vendors_library_loads_the_agent_and_reports_to_it():
    """Without a device: its own functions that find a plugin, make it a communicator, and report a call."""
    if not REAL:
        missing("no libnccl.so.2 of the vendor's is there (PyPI's wheel below build/venv, or a toolkit)")
    for library in REAL:
        known = looked_for(library)
        newest = max(map(int, known))
        exported = run(["nm", "-D", "--defined-only", AGENT]).stdout.decode()
        expect_equal([version for version in sorted(known) if f" ncclProfiler_v{int(version)}\n" not in exported], [],
                     f"tables that {library} looks for and the agent lacks")
        for activities in ("cpu", "nccl"):
            result, output = record([sys.executable, ROOT / "test/simcuda/programs/real_nccl.py", library],
                                    env={"TORSH_PROFILER_ACTIVITIES": activities, "TORSH_PROFILER_FOLLOW": "0"})
            mask = {"cpu": 0, "nccl": 0x7f47}[activities]
            expect_equal((result.returncode, result.stdout), (0, f"{mask}\n".encode()), f"status and mask {result.stderr}")
        events = nccl_events(output)
        expect_equal([event["version"] for event in events if event["event"] == "nccl_communicator"], [newest] * 2, "interface")
        expect_equal([short(event, "kind", "parent", "function", "datatype", "count", "bytes", "stream") for event in events
                      if event["event"] == "nccl_call"],
                     [("nccl_call", 2, 1, "AllReduce", "ncclFloat32", 1234, 4936, 0x77)], "the call")
        expect_equal([short(event, "kind", "number") for event in events if event["event"] == "nccl_work"], [("nccl_work", 6, 1)],
                     "the group")
        expect_equal([event["number"] for event in events if event["event"] == "nccl_end"], [2, 1], "ends")


if __name__ == "__main__":
    main()
