# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a pair of malloc and free costs: warm and with cold caches, in many threads, sampled, and with nothing recorded."""

import re
import statistics

from results import cell, table
from runs import (BARE, BENCH, DORMANT, FULL, NOOP_MODE, OFF, OURS, RAW, SAMPLED, SAMPLED_PAUSED, Mode, Options, Program, scaled,
                  take_turns)

DEPTHS, SITES = (10, 30, 80), (1, 4)
PAIRS, PAIRS_OF_HEAPTRACK, PAIRS_SAMPLED = 4_000_000, 400_000, 10_000_000
UNRECORDED = (BARE, NOOP_MODE, OFF, DORMANT, SAMPLED_PAUSED, SAMPLED)
CROWDS = (1, 2, 16)


def printed_ns(run):
    """The last figure that the program itself printed: heaptrack prints beside it."""
    return float(re.findall(r"^\d+\.\d+$", run.text, re.M)[-1])


def cpu_ns(run):
    return float(re.search(r"^cpu (\d+\.\d+)$", run.text, re.M)[1])


def beside_bare(ns):
    """How slow the machine is: what a pair takes without an agent, and what one adds that does nothing."""
    return f"bare {ns[BARE]:.1f} ns, no-op {ns[NOOP_MODE] - ns[BARE]:+.1f}"


def median(of_mode, figure):
    return statistics.median(map(figure, of_mode))


# ---- warm ---------------------------------------------------------------------------------------------------------------

def measure_pairs(machine):
    """{(threads, sites, depth): {mode: ns a pair, "writer": ns of its CPU time a pair}}."""
    modes = [Mode(name, machine) for name in (BARE, NOOP_MODE, OURS, RAW, FULL)]
    found = {}
    for threads in (1, 2):
        for sites in SITES:
            for depth in DEPTHS:
                command = [BENCH / "pair", sites, depth, threads, scaled(PAIRS)]
                program = Program(f"pair, {sites} sites, depth {depth}, {threads} threads", command)
                # Heaptrack needs long to print so many events: a tenth of them gives the same
                # result.
                slow = Program(f"{program.name}, heaptrack", [*command[:-1], scaled(PAIRS_OF_HEAPTRACK)])
                runs = take_turns(program, modes[:3], Options.rounds)
                runs.update(take_turns(slow, modes[3:], min(3, Options.rounds)))
                found[threads, sites, depth] = {name: median(of_mode, printed_ns) for name, of_mode in runs.items()}
                writer_ns = median(runs[OURS], lambda run: run.writer_cpu_s) * 1e9 / (threads * scaled(PAIRS))
                found[threads, sites, depth]["writer"] = writer_ns
    return found


def pair_section(pairs, verdicts):
    modes = (BARE, NOOP_MODE, OURS, RAW, FULL)
    rows = [[*map(str, key), *(cell(ns.get(mode)) for mode in modes), cell(ns[OURS] - ns[BARE]), cell(ns["writer"])]
            for key, ns in pairs.items()]
    for sites, limit in ((1, 40), (4, 60)):
        ns = pairs[1, sites, 30]
        verdicts.at_most(f"added per pair at depth 30, {sites} site{'s' * (sites > 1)}", limit, ns[OURS] - ns[BARE], "ns",
                         note=beside_bare(ns))
    return ["## ns per malloc+free pair, per thread", ""] + table(
        ["threads", "sites", "depth", *modes, "added by torsh", "writer's CPU time"], rows)


# ---- cold ---------------------------------------------------------------------------------------------------------------

def measure_cold_pairs(machine):
    """ns per malloc+free pair after so much was written, {(KiB, ways, depth): {mode: ns}}."""
    modes, found = [Mode(name, machine) for name in (BARE, NOOP_MODE, OURS)], {}
    for kib, n_pairs in ((64, 30_000), (4096, 600)):
        for ways in (4, 64):
            for depth in DEPTHS:
                program = Program(f"cold pair, {kib} KiB, {ways} ways, depth {depth}",
                                  [BENCH / "cold_pair", ways, depth, kib, scaled(n_pairs)])
                runs = take_turns(program, modes, min(3, Options.rounds))
                found[kib, ways, depth] = {name: median(of_mode, printed_ns) for name, of_mode in runs.items()}
    return found


def cold_section(pairs):
    rows = [[*map(str, key), *(cell(value) for value in ns.values()), cell(ns[OURS] - ns[BARE])] for key, ns in pairs.items()]
    return ["## ns per malloc+free pair with cold caches", "",
            "So many KiB are written before each pair, and the next of so many stacks leads to it.", ""] + table(
                ["KiB", "stacks", "depth", BARE, NOOP_MODE, OURS, "added by torsh"], rows)


# ---- many threads -------------------------------------------------------------------------------------------------------

def measure_crowd(machine):
    """ns of the target's processor time per pair and thread at depth 30, {number of threads: {mode: ns}}."""
    modes, found = [Mode(name, machine) for name in (BARE, OURS)], {}
    for threads in CROWDS:
        program = Program(f"pair, {threads} threads", [BENCH / "pair", 1, 30, threads, scaled(PAIRS // threads)])
        runs = take_turns(program, modes, Options.rounds)
        found[threads] = {name: median(of_mode, cpu_ns) for name, of_mode in runs.items()}
        found[threads]["writer"] = median(runs[OURS], lambda run: run.writer_cpu_s) * 1e9 / scaled(PAIRS)
    return found


def crowd_section(pairs, verdicts):
    verdicts.at_least("events of 2 threads against 1, in a CPU second of each thread, depth 30", 1.9,
                      2 * pairs[1][OURS] / pairs[2][OURS], "×", "{:.2f}",
                      note=f"bare {2 * pairs[1][BARE] / pairs[2][BARE]:.2f}×")
    added = {threads: ns[OURS] - ns[BARE] for threads, ns in pairs.items()}
    verdicts.at_most("CPU time that the agent adds to a pair in each of 16 threads, of what it adds in one", 1.05,
                     added[16] / added[1], "×", "{:.2f}")
    rows = [[str(threads), cell(ns[BARE]), cell(ns[OURS]), cell(added[threads]), cell(ns["writer"])]
            for threads, ns in pairs.items()]
    return ["## ns of the program's own CPU time per malloc+free pair, depth 30", ""] + table(
        ["threads", BARE, OURS, "added by torsh", "writer's CPU time"], rows)


# ---- sampled, and nothing recorded --------------------------------------------------------------------------------------

def measure_sampled(machine):
    """{(sites, depth): {mode: lowest ns of CPU time a pair}}; the writer's under "writer"."""
    modes, found = [Mode(name, machine) for name in UNRECORDED], {}
    for sites in SITES:
        for depth in DEPTHS:
            program = Program(f"pair, {sites} sites, depth {depth}, sampled", [BENCH / "pair", sites, depth, 1, scaled(PAIRS_SAMPLED)])
            runs = take_turns(program, modes, Options.rounds)
            found[sites, depth] = {name: min(map(cpu_ns, of_mode)) for name, of_mode in runs.items()}
            writer_ns = median(runs[SAMPLED], lambda run: run.writer_cpu_s) * 1e9 / scaled(PAIRS_SAMPLED)
            found[sites, depth]["writer"] = writer_ns
    return found


def sampled_section(pairs, verdicts):
    for mode, limit, words in ((SAMPLED, 8, "added to a pair by HEAP=sampled"), (SAMPLED_PAUSED, 3, "added to a pair by HEAP=sampled in a pause"),
                               (OFF, 3, "added to a pair by an agent that is off"), (DORMANT, 3, "added to a pair by a dormant agent")):
        ns = max(pairs.values(), key=lambda ns: ns[mode] - ns[BARE])
        verdicts.at_most(f"{words}, the most of depths and sites", limit, ns[mode] - ns[BARE], "ns", note=beside_bare(ns))
    rows = [[*map(str, key), *(cell(ns[mode]) for mode in UNRECORDED), *(cell(ns[mode] - ns[BARE]) for mode in UNRECORDED[2:]),
             cell(ns["writer"], "{:.2f}")] for key, ns in pairs.items()]
    return ["## ns of CPU time per malloc+free pair, sampled or not recorded, lowest", ""] + table(
        ["sites", "depth", *UNRECORDED, "added: ENABLED=0", "dormant", "paused", "sampled", "writer's CPU time, sampled"], rows)


def sections(machine, verdicts):
    return (pair_section(measure_pairs(machine), verdicts) + crowd_section(measure_crowd(machine), verdicts)
            + sampled_section(measure_sampled(machine), verdicts))


def cold_sections(machine, _verdicts):
    return cold_section(measure_cold_pairs(machine))
