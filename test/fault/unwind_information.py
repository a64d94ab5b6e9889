#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Damaged unwind information: a program that runs with it runs under the agent, too."""

import os
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

N_MUTANTS = int(os.environ.get("TEST_MUTANTS", "40"))
N_BLOCKS = 200
N_THREADS = 3


def sections(path):
    """Where .eh_frame_hdr and .eh_frame lie in the file: name, offset, size."""
    listed = run(["readelf", "-SW", path]).stdout.decode()
    found = re.findall(r"\] (\.eh_frame(?:_hdr)?) +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", listed)
    return [(name, int(offset, 16), int(size, 16)) for name, offset, size in found]


def damage(original, places, chance):
    """A copy with some bytes of one section changed."""
    data = bytearray(original)
    _, offset, size = chance.choice(places)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        at = offset + chance.randrange(size)
        data[at] = chance.choice((chance.randrange(256), 0xff, 0x80, 0, data[at] ^ 1 << chance.randrange(8)))
    return bytes(data)


def expect_as_bare(seed):
    need_command("readelf")
    program = PROGRAMS / "committed"
    original, places, chance = program.read_bytes(), sections(program), random.Random(seed)
    expect_equal(len(places), 2, "sections with unwind information")
    folder, output = scratch("mutants"), scratch("out")
    for i in range(N_MUTANTS):
        mutant, counts = folder / "mutant", folder / "counts"
        mutant.write_bytes(damage(original, places, chance))
        mutant.chmod(0o755)
        counts.write_bytes(bytes(8 * 64))
        command = [mutant, counts, N_BLOCKS, N_THREADS, "return"]
        bare = run(command).returncode
        result, _ = record(command, output=output)
        expect_equal(result.returncode, bare, f"status of mutant {i} of seed {seed}")


for seed in range(3):
    add_case(f"damaged_unwind_information_of_a_program_{seed}", expect_as_bare, seed)

main()
