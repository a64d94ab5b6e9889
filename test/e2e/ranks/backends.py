#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Groups by the backend that PyTorch names, through all reports: ucc, which no wheel of PyTorch has, so that a plugin stands for it,
and gloo.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

WORLD = 2
ENV = {"OMP_NUM_THREADS": 1, "TORSH_PROFILER_REACHABILITY": 0, "TORSH_PROFILER_WITH_STACK": 0, "TORSH_PROFILER_WITH_MODULES": 0}


@case
@needs("torch")
def collectives_have_the_backend_that_the_program_has():
    if run([torch_python(), "-c", "import torch.distributed as dist, sys; sys.exit(dist.is_ucc_available())"]).returncode:
        raise Skip("this PyTorch has UCC itself")
    result, output = record([torch_python(), "-W", "ignore", "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={WORLD}",
                             ROOT / "test/python/ranks/backend_ranks.py"], env=ENV, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
    expect_equal(result.stdout.decode().count("backends ucc gloo"), WORLD, "what PyTorch calls them")
    report = read_report("ranks", output)
    expect_fits("ranks", report)
    found = sorted((row["name"], row["backend"], row["calls"], row["group_size"]) for row in report["collectives"])
    expect_equal(found, [("allreduce", "gloo", 3 * WORLD, 2), ("allreduce", "ucc", 3 * WORLD, 2)], "collectives")
    # The works of the plugin, which are gloo's, have begins, ends and waits.
    assert all(row["total_ns"] > 0 for row in report["collectives"]), report["collectives"]
    expect_equal(report["collectives_compared"], 6, "compared collectives")
    fold = scratch("fold") / "job.fold"
    torsh("merge", *recordings(output), "-o", fold)
    expect_equal(read_report("ranks", fold)["collectives"], report["collectives"], "collectives in the fold")
    text = torsh("ranks", output)
    assert "backend" in text and "ucc" in text and "gloo" in text, text


main()
