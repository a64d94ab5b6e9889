#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh-mpi under mpirun, with as many processes as folds, more and fewer: the bytes of torsh merge."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import made  # noqa: E402

RANKS = 5
# Debian's Open MPI refuses root, and more processes than cores, unless it is told.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def command(n, *arguments):
    if not (BUILD / "torsh-mpi").exists():
        raise Skip("torsh-mpi was not built: no mpicc here")
    return [need_command("mpirun"), "-n", str(n), "--oversubscribe", BUILD / "torsh-mpi", *arguments]


def mpi(n, *arguments):
    return run(command(n, *arguments), {**os.environ, **ENVIRONMENT})


def have_ended(parent):
    """Whether a process has started some, of which none runs any more."""
    try:
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        states = {pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children}
    except OSError:
        return False
    return bool(states) and states <= {"Z", "X"}


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
    started = subprocess.Popen(command(3, many, "-o", many / "out"), env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=(many / "stderr").open("wb"))
    # The job has ended when its processes have: libpmix of Debian 12 may lock mpirun up for ever after that.
    wait_until(lambda: started.poll() is not None or have_ended(started.pid), "the end of the job", 120)
    status = started.poll()
    started.kill()
    started.wait()
    assert status != 0 and not (many / "out").exists(), status
    assert b"x.fold is cut off" in (many / "stderr").read_bytes(), (many / "stderr").read_bytes()


main()
