#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh merge-trace: timelines of several ranks in one file, as Perfetto's own trace processor reads them."""

import collections
import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from ranks.clock_job import NAMESPACE_S, SHIFT_NS, in_time_namespace, job, largest_error_ns  # noqa: E402
from consumers import ask_trace_processor  # noqa: E402
from torch_python import torch_python  # noqa: E402

WORLD = 4
all_need("torch")
all_need("consumers")

SLICES = ("select slice.id, slice.name, ts, dur, upid, process.name as process, pid, "
          "(select coalesce(int_value, string_value) from args where args.arg_set_id = slice.arg_set_id and key in "
          "('debug.sequence', 'args.Seq')) as sequence, "
          "(select string_value from args where args.arg_set_id = slice.arg_set_id and key in "
          "('debug.group', 'args.Process Group')) as group_name, "
          "(select int_value from args where args.arg_set_id = slice.arg_set_id and key in "
          "('debug.clock_error_ns', 'args.Clock error (ns)')) as error_ns "
          "from slice join {table} on slice.track_id = {table}.id {more} join process using (upid) where category = 'collective'")
PERFETTO = SLICES.format(table="process_track", more="")
CHROME = SLICES.format(table="thread_track", more="join thread using (utid)")
FLOWS = "select slice_out, slice_in from flow"
LABELS = "select process.name, string_value as label from process join args using (arg_set_id) where key like 'chrome.process_label%'"


def merged(ending, *arguments):
    """Collectives by their slice, arrows between them, and the labels of the processes."""
    path = scratch("merged") / f"job{ending}"
    torsh("merge-trace", *arguments, "-o", path)
    slices, flows, labels = ask_trace_processor(path, PERFETTO if ".pftrace" in ending else CHROME, FLOWS, LABELS)
    by_id = {one["id"]: one for one in slices}
    arrows = [(by_id[flow["slice_out"]], by_id[flow["slice_in"]]) for flow in flows if flow["slice_out"] in by_id]
    for one, other in arrows:
        expect_equal((one["name"], one["group_name"], one["sequence"]), (other["name"], other["group_name"], other["sequence"]),
                     "collective of an arrow's ends")
        assert one["upid"] != other["upid"] and one["ts"] <= other["ts"], (one, other)
    return slices, arrows, {row["name"]: row["label"] for row in labels} or labels_of(path)


def labels_of(path):
    """Of Chrome's format, for which the trace processor doesn't keep them."""
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "M"]
    names, labels = ({event["pid"]: event["args"][key] for event in events if event["name"] == what} for what, key in
                     (("process_name", "name"), ("process_labels", "labels")))
    return {names[pid]: labels[pid] for pid in names}


def calls_of(slices):
    """By collective, the ranks that had it."""
    calls = collections.defaultdict(list)
    for one in slices:
        calls[one["name"], one["group_name"], one["sequence"]].append(rank_of(one))
    return calls


def rank_of(one):
    return int(one["process"].split()[1])


def gloo_job():
    """The recording of four ranks that torchrun started, and how many collectives each set of ranks had, in their own words."""
    def make(folder):
        command = [torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={WORLD}",
                   ROOT / "test/python/ranks/gloo_ranks.py", folder]
        result, output = record(command, folder / "out", env={"OMP_NUM_THREADS": 1, "TORSH_PROFILER_REACHABILITY": 0,
                                                              "TORSH_PROFILER_WITH_STACK": 0})
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
        words = [json.loads((folder / f"done-{rank}.json").read_text())["done"] for rank in range(WORLD)]
        return str(output), words
    return once("gloo", make)


def collectives(words, ranks):
    """The sets of these ranks that took part in a collective, one for each: of the program's words."""
    found = []
    counters = [collections.Counter() for _ in words]
    joined = collections.defaultdict(list)
    for rank, done in enumerate(words):
        for call in done:
            if call["kind"] == "collective":
                counters[rank][call["group"]] += 1
                joined[call["group"], counters[rank][call["group"]]].append(rank)
    for members in joined.values():
        found.append(tuple(sorted(set(members) & set(ranks))))
    return collections.Counter(one for one in found if len(one) > 1)


def expect_ranks(ending):
    output, words = gloo_job()
    for option, ranks in ((), range(WORLD)), (("--ranks", "0,2-3"), (0, 2, 3)), (("--ranks", "1"), (1,)):
        slices, arrows, labels = merged(ending, output, *option)
        expected = collectives(words, ranks)
        found = collections.Counter(tuple(sorted(calls)) for calls in calls_of(slices).values())
        expect_equal(found, expected, f"collectives of {option}")
        expect_equal(len(arrows), sum((len(members) - 1) * n for members, n in expected.items()), f"arrows of {option}")
        expect_equal(sorted(int(name.split()[1]) for name in labels), list(ranks), "ranks in the file")
        assert all(label == "the first rank's clock" for label in labels.values()), labels


@case
def ranks_and_arrows_of_a_trace_for_perfetto():
    expect_ranks(".pftrace")


@case
def ranks_and_arrows_of_a_trace_for_chrome():
    expect_ranks(".json")
    expect_ranks(".json.gz")


@case
@quiet
def steps_and_times_on_aligned_clocks():
    """The second rank's clocks are 11,560 s and 11.56 s ahead; each rank says between which times it entered its all-reduces."""
    stamps = scratch("stamps")
    # Longer than the two seconds until a writer asks again where nobody answered at first.
    outputs = job(in_time_namespace(), SHIFT_NS, steps=60, stamps=stamps)
    said = [json.loads((stamps / f"{rank}.json").read_text()) for rank in range(2)]
    steps = [[step["index"] for step in json.loads(torsh("steps", output, "--json", "--limit", "0"))["steps"]] for output in outputs]
    expect_equal(steps[0], steps[1], "steps of the ranks")
    limit_ns = largest_error_ns(outputs[1], said[1][-1][1])
    for ending in (".pftrace", ".json"):
        slices, arrows, labels = merged(ending, *outputs)
        assert "by probes" in next(label for name, label in labels.items() if name.startswith("rank 1")), labels
        reduces = [sorted((one for one in slices if one["name"] == "allreduce" and rank_of(one) == rank), key=lambda one: one["ts"])
                   for rank in range(2)]
        expect_equal([len(one) for one in reduces], [120, 120], "all-reduces")
        for first, second, (begin, end), (other_begin, other_end) in zip(*reduces, *said):
            error = first["error_ns"] + second["error_ns"]
            assert 0 < error <= limit_ns, (first, second, limit_ns)
            between_ns = second["ts"] - first["ts"] + NAMESPACE_S * 10**9
            assert other_begin - end - error <= between_ns <= other_end - begin + error, (first, second, between_ns)
        expect_equal(len(arrows), len(calls_of(slices)), "arrows: one for each collective of two ranks")
        chosen = steps[0][3:6]
        slices, arrows, _ = merged(ending, *outputs, "--steps", f"{chosen[0]}-{chosen[-1]}")
        expect_equal(collections.Counter(rank_of(one) for one in slices if one["name"] == "allreduce"), {0: 6, 1: 6},
                     "all-reduces in three steps")
        expect_equal(len(arrows), 6, "arrows in three steps")
        path = scratch("steps") / f"job{ending}"
        torsh("merge-trace", *outputs, "--steps", f"{chosen[0]}-{chosen[-1]}", "-o", path)
        names, = ask_trace_processor(path, "select name from slice where name like 'step %' or name like 'ProfilerStep#%'")
        numbers = collections.Counter(int(row["name"].replace("#", " ").split()[-1]) for row in names)
        expect_equal(numbers, {number: 2 for number in chosen}, "steps in the file")


@case
def what_cannot_be_written_is_said():
    output, _ = gloo_job()
    folder = scratch("bad")
    for arguments, words in [((output, "-o", folder / "x.txt"), ".json or .pftrace"), ((output,), "-o FILE.json"),
                             ((output, "-o", folder / "x.json", "--ranks", "7"), "none of the recordings has such a rank"),
                             ((output, "-o", folder / "x.json", "--ranks", "1-0"), "--ranks takes numbers"),
                             ((output, "-o", folder / "x.json", "--ranks", "a"), "--ranks takes numbers"),
                             ((output, "-o", folder / "x.json", "--steps", "900000"), "no step in"),
                             ((folder, "-o", folder / "x.json"), "has no recordings"), (("-o", folder / "x.json"), "which ranks?")]:
        result = run([TORSH, "merge-trace", *arguments])
        assert result.returncode == 2 and words in result.stderr.decode(), (arguments, result)
        assert not (folder / "x.json").exists(), arguments


main()
