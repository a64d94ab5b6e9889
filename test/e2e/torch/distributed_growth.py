#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Ranks that torchrun starts, with DDP and with FSDP over gloo: nothing grows in a clean training, though buckets are built in
the first steps; a tensor that is kept each step grows in each rank at its line. The ring of the last 2,000 collectives of
PyTorch is not full yet then: with DDP a rule takes it out.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from torch_python import torch_python  # noqa: E402

SCRIPT = ROOT / "test/python/growth/distributed.py"
LEAK_LINE = next(n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith("# line: leak"))
STEPS, TENSOR_BYTES, OBJECTS_BYTES = 240, 16 * 32 * 4, 640
TIMEOUT_S = 480


def growth(kind, n_ranks, *leak):
    """The report of each rank."""
    pids = scratch("pids")
    result, output = record([torch_python(), "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_ranks}",
                             SCRIPT, pids, kind, STEPS, *leak], env={"OMP_NUM_THREADS": 1}, timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    reports = [read_report("leaks", output, "--growth", "--limit", "0", "--stacks", "python", "--pid", pid.read_text())
               for pid in sorted(pids.iterdir())]
    expect_equal(len(reports), n_ranks, "ranks")
    for report in reports:
        expect_equal((report["steps"], report["processes"][0]["rule"]), (STEPS, "calls of an optimizer"), "steps")
    return reports


def check_clean(kind, n_ranks):
    for rank, report in enumerate(growth(kind, n_ranks)):
        expect_equal([(entry["kind"], entry["bytes_per_step"], entry["stack"][:3]) for entry in report["growth"]], [],
                     f"what grows in rank {rank}")
        assert kind == "fsdp" or report["suppressed"]["bytes"] > 200 * STEPS / 2, report["suppressed"]


def check_leak(kind, n_ranks):
    for report in growth(kind, n_ranks, "leak"):
        lines = {(frame["file"], frame["line"]) for entry in report["growth"] for frame in entry["stack"][:1]}
        expect_equal(lines, {(str(SCRIPT), LEAK_LINE)}, "lines that grow")
        rate = sum(entry["bytes_per_step"] for entry in report["growth"])
        assert TENSOR_BYTES <= rate <= TENSOR_BYTES + OBJECTS_BYTES, rate


add_case("nothing_grows_in_2_clean_ranks_with_ddp", check_clean, "ddp", 2)
add_long_case("nothing_grows_in_2_clean_ranks_with_fsdp", check_clean, "fsdp", 2)
add_long_case("nothing_grows_in_4_clean_ranks_with_ddp", check_clean, "ddp", 4)
add_case("a_tensor_of_each_step_grows_in_each_rank_with_ddp", check_leak, "ddp", 2)
add_long_case("a_tensor_of_each_step_grows_in_each_rank_with_fsdp", check_leak, "fsdp", 2)
main()
