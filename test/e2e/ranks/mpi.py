#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh-mpi under mpirun, with as many processes as folds, more and fewer: the bytes of torsh merge."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import made  # noqa: E402

RANKS = 5
# Debian's Open MPI refuses root, and more processes than cores, unless it is told.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpi(n, *arguments):
    if not (BUILD / "torsh-mpi").exists():
        raise Skip("torsh-mpi was not built: no mpicc here")
    command = [need_command("mpirun"), "-n", str(n), "--oversubscribe", BUILD / "torsh-mpi", *arguments]
    return run(command, {**os.environ, **ENVIRONMENT})


@case
def every_number_of_processes_gives_the_bytes_of_torsh_merge():
    recording, _ = made(ranks=2, operators=202)
    folder, many = scratch("out"), scratch("many")
    torsh("fold", recording, "--rank", "0", "-o", folder / "one.fold")
    run([BUILD / "test/fold_synthesis", folder / "one.fold", str(RANKS), many], check=True)
    torsh("merge", many, "-o", folder / "merged")
    expected = (folder / "merged").read_bytes()
    for n in (1, 2, 3, 4, 7):
        result = mpi(n, many, "-o", folder / f"by-{n}")
        expect_equal(result.returncode, 0, f"status of {n} processes\n{result.stderr.decode()}")
        expect_equal((folder / f"by-{n}").read_bytes() == expected, True, f"{n} processes give the same")


@case
def a_bad_fold_fails_the_whole_job():
    many = scratch("bad")
    (many / "x.fold").write_bytes(b"torshfol\x01\0\0\0\0\0\0\0")
    result = mpi(3, many, "-o", many / "out")
    assert result.returncode != 0 and not (many / "out").exists(), result
    assert b"x.fold is cut off" in result.stderr, result.stderr


main()
