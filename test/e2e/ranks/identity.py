#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The place of a process in a distributed run, by its launcher's variables, and the user's labels: in
the recording, in reports and in exports."""

import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported  # noqa: E402
from schema import expect_fits  # noqa: E402
from torch_python import torch_python  # noqa: E402

FIELDS = ("rank", "world_size", "local_rank", "local_world_size", "node_rank", "launcher", "role", "job")
TORCHRUN = {"RANK": 5, "WORLD_SIZE": 8, "LOCAL_RANK": 1, "LOCAL_WORLD_SIZE": 4, "GROUP_RANK": 1, "ROLE_NAME": "trainer",
            "TORCHELASTIC_RUN_ID": "run-7"}
SLURM = {"SLURM_PROCID": 3, "SLURM_STEP_NUM_TASKS": 4, "SLURM_NTASKS": 9, "SLURM_LOCALID": 0, "SLURM_NODEID": 2, "SLURM_JOB_ID": 77}
# What the launchers set, and what follows from it.
LAUNCHERS = {
    "torchrun": (TORCHRUN, (5, 8, 1, 4, 1, "torchrun", "trainer", "run-7")),
    "torchrun_under_slurm": (SLURM | TORCHRUN, (5, 8, 1, 4, 1, "torchrun", "trainer", "run-7")),
    "openmpi_under_slurm": (SLURM | {"OMPI_COMM_WORLD_RANK": 1, "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_RANK": 1,
                                     "OMPI_COMM_WORLD_LOCAL_SIZE": 2, "PMIX_RANK": 1},
                            (1, 2, 1, 2, None, "openmpi", None, None)),
    "slurm": (SLURM, (3, 4, 0, None, 2, "slurm", None, "77")),
    "slurm_batch_script": ({"SLURM_PROCID": 0, "SLURM_NTASKS": 4, "SLURM_JOB_ID": 77}, (0, None, None, None, None, "slurm", None, "77")),
    "hydra": ({"PMI_RANK": 2, "PMI_SIZE": 3, "MPI_LOCALRANKID": 0, "MPI_LOCALNRANKS": 1}, (2, 3, 0, 1, None, "pmi", None, None)),
    "pmix": ({"PMIX_RANK": 6, "PMIX_NAMESPACE": "prte-1"}, (6, None, None, None, None, "pmix", None, "prte-1")),
    "kubernetes": ({"JOB_COMPLETION_INDEX": 4}, (4, None, None, None, None, "kubernetes", None, None)),
    "ray": ({"RAY_JOB_ID": "01000000"}, (None, None, None, None, None, "ray", None, "01000000")),
    "not_a_number": ({"RANK": "1", "WORLD_SIZE": "many"}, (1, None, None, None, None, "torchrun", None, None)),
    "none": ({}, (None,) * 8),
}


def process_of(output):
    report = json.loads(torsh("report", output, "--json"))
    expect_fits("report", report)
    return report["processes"][0]


def a_launcher(env, expected):
    _, output = record([PROGRAMS / "entries"], env=env)
    process = process_of(output)
    expect_equal(tuple(process[field] for field in FIELDS), expected, "identity")
    expect_equal(process["labels"], {}, "labels")
    dumped = [json.loads(line) for line in torsh("dump", recordings(output)[0]).splitlines()]
    rows = [line for line in dumped if "identity" in json.dumps(line)]
    assert bool(rows) == any(expected), f"identity in torsh dump: {rows}"


for what, (variables, place) in LAUNCHERS.items():
    add_case(f"the_place_is_read_from_{what}", a_launcher, variables, place)


@case
def labels_and_place_are_in_every_export():
    env = TORCHRUN | {"TORSH_PROFILER_LABELS": "model=llama,run=17,note=a b=c"}
    _, output = record([PROGRAMS / "regions"], env=env)
    labels = {"model": "llama", "run": "17", "note": "a b=c"}
    expect_equal(process_of(output)["labels"], labels, "labels in the report")
    assert "rank 5 of 8, model=llama, run=17" in torsh("report", output), torsh("report", output)
    trace = json.loads(torsh("export", output, "--format", "chrome"))
    expect_equal(trace["distributedInfo"], {"rank": 5, "world_size": 8}, "distributedInfo")
    events = json.loads(torsh("export", output, "--format", "json"))
    expect_fits("events", events)
    process = events["processes"][0]
    expect_equal((process["rank"], process["world_size"], process["labels"]), ("5", 8, labels), "json")
    database = sqlite3.connect(exported(output, "t.sqlite", "--format", "sqlite"))
    expect_equal(database.execute("select rank, world_size, local_rank, local_world_size, node_rank, launcher, role, job "
                                  "from processes").fetchall(), [("5", 8, 1, 4, 1, "torchrun", "trainer", "run-7")], "sqlite")
    expect_equal(dict(database.execute("select name, value from run_labels").fetchall()), labels, "labels in sqlite")


def refused(labels):
    result, output = record([PROGRAMS / "entries"], env={"TORSH_PROFILER_LABELS": labels})
    about = [line for line in result.stderr.decode().splitlines() if "TORSH_PROFILER_LABELS" in line]
    expect_equal((len(about), process_of(output)["labels"]), (1, {}), f"lines about {labels!r}, and labels")
    assert labels[:64] in about[0] and ("NAME=VALUE" in about[0] or len(labels) > 4096), about


for what, text in (("no_value", "model"), ("an_empty_value", "model="), ("an_empty_name", "=llama"), ("a_name_twice", "a=1,b=2,a=3"),
                   ("a_blank_in_a_name", "my model=llama"), ("a_trailing_comma", "a=1,"), ("too_much", "a=" + "x" * 4096)):
    add_case(f"labels_are_refused_with_{what}", refused, text)


SPAWNED = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3)
    print(os.getpid(), rank, flush=True)
    dist.barrier()  # one that leaves may break the connections of those that begin
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1],), nprocs=3)
"""


@case
def torch_distributed_gives_ranks_without_a_launcher():
    """And over a launcher's, which may be those of the process that spawned them."""
    program = scratch("program") / "spawned.py"
    program.write_text(SPAWNED)
    for env in ({}, {"SLURM_PROCID": 0}):
        result, output = record([torch_python(), program, scratch(f"meeting{len(env)}")],
                                env=env | {"TORSH_PROFILER_WITH_STACK": 0, "OMP_NUM_THREADS": 1})
        expect_equal(result.returncode, 0, result.stderr.decode())
        ranks = dict(map(int, line.split()) for line in result.stdout.decode().splitlines())
        report = json.loads(torsh("report", output, "--json"))
        found = {process["pid"]: (process["rank"], process["world_size"]) for process in report["processes"]}
        expect_equal({pid: found[pid] for pid in ranks}, {pid: (rank, 3) for pid, rank in ranks.items()}, "rank and world size")


main()
