# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that measure by themselves: annotations, captures, and the writer's decoding and folding."""

import json
import statistics

from results import cell, table
from runs import BARE, BENCH, OURS, Mode, Options, Program, output_of, progress, scaled, take_turns

FOLDED = 100_000_000


def output_of_helper(name, *arguments):
    """What the program prints, or None where it was not built."""
    program = BENCH / name
    return output_of([program, *map(str, arguments)], timeout_s=600).strip() if program.exists() else None


def region_sections(machine, _verdicts):
    runs, found = take_turns(Program("regions", [BENCH / "regions"]), [Mode(name, machine) for name in (BARE, OURS)], Options.rounds), {}
    for mode, of_mode in runs.items():
        printed = [json.loads(run.text) for run in of_mode]
        for what in printed[0]:
            found.setdefault(what, {})[mode] = statistics.median(one[what] for one in printed)
    text = [[what, *(cell(of_mode.get(mode)) for mode in (BARE, OURS))] for what, of_mode in found.items()]
    return ["## Annotations of a program: ns", ""] + table(["", "without the agent", "recorded"], text)


def capture_sections(_machine, _verdicts):
    text = output_of_helper("capture_bench")
    return ["## A capture alone", "", "```", text, "```", ""] if text else []


def fold_sections(_machine, verdicts):
    """fold_bench prints an object: how many events it folded, and in how many seconds of CPU time."""
    found = []
    for _ in range(Options.rounds):
        text = output_of_helper("fold_bench", scaled(FOLDED))
        if text and text.startswith("{"):
            found.append(json.loads(text))
            progress("folded")
    seconds = statistics.median(one["seconds"] * FOLDED / one["events"] for one in found) if found else None
    verdicts.at_most("100 million events folded on one core, CPU time", 4, seconds, "s", "{:.2f}")
    verdicts.at_most("memory of the writer for a live block", 24, found and found[0].get("bytes_per_block") or None, "bytes")
    return ["## The writer's decoding and folding", "", "```", *map(json.dumps, found), "```", ""] if found else []
