# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Synthetic recordings of a training, with a known number of everything, and exports of them."""

from harness import BUILD, TORSH, expect_equal, json, run, scratch, torsh

SYNTHETIC = BUILD / "test/synthetic"
OPERATORS = 2000
OPERATORS_OF_STEP = 101  # also in test/lib/recordings/synthetic.c
LAYERS = 10
TENSOR_BYTES = 65536


def made(ranks=None, operators=OPERATORS):
    """A recording, and how many of each kind a process has. With ranks: also values, marks and stacks."""
    path = scratch("recording") / "training.torsh"
    result = run([SYNTHETIC, path, str(operators), *([str(ranks)] if ranks else [])])
    expect_equal(result.returncode, 0, "status of synthetic")
    return path, json.loads(result.stdout)


def crowded(threads):
    """A recording of a process with so many threads, one after another, each with a range and a row of its own."""
    path = scratch("recording") / "crowd.torsh"
    result = run([SYNTHETIC, path, str(OPERATORS), "0", "0", str(threads)])
    expect_equal(result.returncode, 0, "status of synthetic")
    return path


def exported(recording, name, *arguments):
    path = scratch("exported") / name
    torsh("export", recording, "-o", path, *arguments)
    return path


def refused(recording, *arguments):
    """The sentence with which an export is refused."""
    path = scratch("exported") / "refused"
    result = run([BUILD / "torsh", "export", recording, "-o", path, *arguments])
    expect_equal(result.returncode, 2, f"status of {arguments}")
    assert not path.exists() and not path.with_suffix(".tmp").exists(), f"{arguments} left something behind"
    return result.stderr.decode()


def memory_of(*arguments):
    """The most KiB that a torsh command took, by GNU time: ru_maxrss of a child counts what its parent had, too."""
    written = scratch("memory") / "kib"
    command = ["time", "--format", "%M", "--output", written, TORSH, *map(str, arguments)]
    expect_equal(run(command).returncode, 0, "status")
    return int(written.read_text())
