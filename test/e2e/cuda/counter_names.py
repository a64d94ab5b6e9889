#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The metrics that the agent measures (collectors/cuda/counters/cuda_counters.def) against the
vendor's libcupti, which has the names and the passes of every chip without a device or a driver."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402

CHIPS = ("GA100", "GA102", "AD102", "GH100", "GB100", "GB202")
INVALID_METRIC_NAME = 17
ONE_PASS = {"gpu_time_duration_ns", "sm_active_cycles", "sm_active_pct", "achieved_occupancy", "dram_throughput_pct",
            "dram_bytes_read", "dram_bytes_written", "executed_instructions", "tensor_instructions",
            "tensor_instructions_pct", "l1_hit_rate", "l1_sectors", "l2_request_hit_rate", "l2_sectors", "l2_bytes"}
TWO_PASSES = ONE_PASS - {"tensor_instructions_pct", "l2_request_hit_rate"} | {
    "tensor_core_active_pct", "l2_hit_rate", "warp_cycles_per_instruction", "eligible_cycles_pct", "ipc_active",
    "issued_instructions", "local_memory_spills", "avg_threads_per_warp"}
ALL_PASSES = TWO_PASSES | {"sm_throughput_pct", "memory_throughput_pct", "mem_busy_pct"}
PASSES_OF_ALL = {"GA100": 8, "GA102": 8, "AD102": 9, "GH100": 11, "GB100": 10, "GB202": 11}
SAMPLED = {"gpu_active_cycles", "sm_active_cycles", "sm_active_pct", "achieved_occupancy", "dram_throughput_pct",
           "dram_bytes_read", "dram_bytes_written", "executed_instructions", "l2_sectors", "l2_bytes", "pcie_bytes_read",
           "pcie_bytes_written", "nvlink_bytes_received", "nvlink_bytes_sent"}
# What a chip lacks, or what would need a pass more.
WITHOUT = {
    ("GA100", "K2"): {"avg_threads_per_warp"}, ("GH100", "K2"): {"avg_threads_per_warp"},
    ("GB100", "K2"): {"avg_threads_per_warp"}, ("GB202", "K2"): {"avg_threads_per_warp"},
    ("AD102", "T"): {"nvlink_bytes_received", "nvlink_bytes_sent"},
    ("GB202", "T"): {"nvlink_bytes_received", "nvlink_bytes_sent"},
    ("GB100", "T"): {"pcie_bytes_read", "pcie_bytes_written"},
}
# Names that profilers request and no chip has.
WRONG = ("dram__bytes_written.sum", "l1tex__t_hit_rate.pct", "lts__t_hit_rate.pct", "sm__active_cycles_elapsed.sum",
         "smsp__warp_cycles_per_issued_instruction.ratio", "smsp__average_threads_executed_per_instruction.ratio",
         "launch__registers_per_thread", "l1tex__data_pipe_lsu_wavefronts_mem_local.sum",
         "launch__shared_mem_per_block_dynamic")


def library():
    python = pathlib.Path(environment_python("cupti"))
    (found,) = python.parent.parent.glob("lib/python3*/site-packages/nvidia/*/lib/libcupti.so.1[23]")
    return found


def look_up(names=()):
    result = run([BUILD / "test/counter_names", library(), *CHIPS, *names], clean_environment())
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    return [json.loads(line) for line in result.stdout.decode().splitlines()]


@case
@needs("cupti")
def each_chip_has_the_counters_in_as_many_passes_as_are_declared():
    chosen = {(line["chip"], line["choice"]): line for line in look_up() if "choice" in line}
    expect_equal(len(chosen), 4 * len(CHIPS), "answers")
    for (chip, choice), line in chosen.items():
        fields = {"K1": ONE_PASS, "K2": TWO_PASSES, "FULL": ALL_PASSES, "T": SAMPLED}[choice]
        expect_equal(line["result"], 0, f"result of {chip} {choice}")
        expect_equal(line["passes"], {"K2": 2, "FULL": PASSES_OF_ALL[chip]}.get(choice, 1), f"passes of {chip} {choice}")
        expect_equal(set(line["metrics"]), fields - WITHOUT.get((chip, choice), set()), f"fields of {chip} {choice}")


@case
@needs("cupti")
def each_chip_has_the_names_that_were_chosen_for_it():
    chosen = [line for line in look_up() if "choice" in line]
    names = sorted({name for line in chosen for name in line["metrics"].values()})
    known = {(line["chip"], line["name"]): line for line in look_up(names) if "name" in line}
    for line in chosen:
        profiler = "sampling" if line["choice"] == "T" else "range"
        for field, name in line["metrics"].items():
            expect_equal(known[line["chip"], name][profiler], 0, f"{line['chip']} {field} {name}")
    # The bytes of memory have another name on the last of them.
    reads = {line["chip"]: line["metrics"]["dram_bytes_read"] for line in chosen}
    expect_equal(reads["GB202"], "dram__bytes_op_read.sum", "GB202's")
    expect_equal({reads[chip] for chip in CHIPS if chip != "GB202"}, {"dram__bytes_read.sum"}, "the others'")


@case
@needs("cupti")
def no_chip_has_the_names_that_others_request():
    answers = [line for line in look_up(WRONG) if "name" in line]
    expect_equal(len(answers), len(WRONG) * len(CHIPS), "answers")
    for line in answers:
        expect_equal(line["range"], INVALID_METRIC_NAME, f"{line['chip']} {line['name']}")


if __name__ == "__main__":
    main()
