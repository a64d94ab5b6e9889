# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The program test/programs/heap/committed.c seen from outside: its own count of allocations, and
the reports'."""

import struct

from harness import PROGRAMS, entries_through, leaks, total

PROGRAM = PROGRAMS / "committed"
KEPT_BYTES = 48
N_COUNTS = 64
ALL_THERE = 32
HELD = 33


class Counts:
    """The file that the program counts in; readable while it runs and after it died."""

    def __init__(self, folder):
        self.path = folder / "counts"
        self.clear()

    def clear(self):
        """For the program's next run."""
        self.path.write_bytes(bytes(8 * N_COUNTS))

    def read(self):
        return struct.unpack(f"{N_COUNTS}Q", self.path.read_bytes())

    def kept(self):
        return sum(self.read()[:ALL_THERE])

    def all_there(self):
        return self.read()[ALL_THERE] != 0

    def hold(self, is_held):
        """Where the program comes to its end while this is so it waits."""
        with self.path.open("r+b") as file:
            file.seek(8 * HELD)
            file.write(struct.pack("Q", is_held))


def command(counts, n_blocks, n_threads=1, how="return"):
    return [PROGRAM, counts.path, n_blocks, n_threads, how]


def reported(output):
    """
    Blocks and bytes of keep_block in the report of all processes recorded below output, at their end or when they
    became another program.
    """
    found = [entry for when in ((), ("--at-exec",)) for entry in entries_through(leaks(output, *when)["leaks"], "keep_block")]
    return total(found, "blocks"), total(found, "bytes")


def expect_all_reported(output, counts):
    """For a program that came to the end of its allocations: exactly what it counted."""
    blocks, n_bytes = reported(output)
    assert blocks == counts.kept(), f"reported {blocks} blocks, the program has {counts.kept()}"
    assert n_bytes == blocks * KEPT_BYTES, f"{n_bytes} bytes in {blocks} blocks of {KEPT_BYTES}"
