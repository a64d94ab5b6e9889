#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lifetimes of blocks and shares of holders, against a C program that measures its own."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from exported import made  # noqa: E402
from harness import *  # noqa: E402,F403

# Prints a line a block: its bytes, and the least and the most that it lived, in ns.
PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct block { void *address; size_t bytes; uint64_t before, after; };
static struct block held[20], one;
static char lines[1 << 16];
static size_t n;

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A macro: the block is its caller's.
#define HOLD(block, n_bytes) do { \
		(block)->bytes = (n_bytes); \
		(block)->before = now_ns(); \
		(block)->address = malloc(n_bytes); \
		(block)->after = now_ns(); \
	} while (0)

static void release(struct block *block)
{
	uint64_t before = now_ns();
	free(block->address);
	n += snprintf(lines + n, sizeof(lines) - n, "%zu %llu %llu\n", block->bytes, (unsigned long long)(before - block->after),
		(unsigned long long)(now_ns() - block->before));
}

__attribute__((noinline)) void hold_most(void) { for (int i = 0; i < 12; i++) HOLD(&held[i], 1 << 20); }
__attribute__((noinline)) void hold_some(void) { for (int i = 12; i < 18; i++) HOLD(&held[i], 1 << 20); }
__attribute__((noinline)) void hold_few(void) { for (int i = 18; i < 20; i++) HOLD(&held[i], 1 << 20); }

int main(void)
{
	hold_most();
	hold_some();
	hold_few();
	for (int i = 0; i < 20; i++)
		release(&held[i]);
	for (uint64_t ns = 1000; ns < 100000000; ns *= 10) {
		for (int i = 0; i < 20; i++) {
			HOLD(&one, 1000 + i);
			while (now_ns() - one.after < ns * (i + 1) / 10)
				;
			release(&one);
		}
	}
	fputs(lines, stdout);
}
"""
HOLDERS = {"hold_most": 12 << 20, "hold_some": 6 << 20, "hold_few": 2 << 20}
OTHER_BLOCKS, OTHER_BYTES = 50, 1 << 20  # of the C library
CLOCKS_APART = 0.01  # of a time: the time stamp counter's rate, as it is measured in a short run
BAR = " ▏▎▍▌▋▊▉█"


def recorded():
    """What the program printed, and its recording."""
    def make(folder):
        source = folder / "blocks.c"
        source.write_text(PROGRAM)
        expect_equal(run(["gcc", "-g", "-O1", "-o", folder / "blocks", source]).returncode, 0, "compiler")
        result, _ = record([folder / "blocks"], output=folder / "recording")
        (folder / "printed").write_bytes(result.stdout)
        return str(folder)

    folder = pathlib.Path(once("known-blocks", make))
    blocks = [tuple(map(int, line.split())) for line in (folder / "printed").read_text().splitlines()]
    expect_equal(len(blocks), 120, "blocks")
    return blocks, folder / "recording"


@case
def blocks_are_counted_in_the_class_of_their_lifetime():
    blocks, output = recorded()
    *_, heap = [row["heap"] for row in map(json.loads, torsh("dump", output, "--only", "heap").splitlines())
                if row["heap"].get("lifetime_blocks")]
    begins = heap["lifetime_from_ns"]
    ends = [*begins[1:], float("inf")]
    sure, possible = [[0, 0] for _ in begins], [[0, 0] for _ in begins]
    for n_bytes, least, most in blocks:
        least, most = least * (1 - CLOCKS_APART), most * (1 + CLOCKS_APART)
        within = [i for i, (begin, end) in enumerate(zip(begins, ends)) if least < end and most >= begin]
        for i in within:
            for counts in (possible, sure) if len(within) == 1 else (possible,):
                counts[i][0] += 1
                counts[i][1] += n_bytes
    assert sum(n for n, _ in sure) > len(blocks) / 2, sure
    for i, counted in enumerate(zip(heap["lifetime_blocks"], heap["lifetime_bytes"])):
        for value, least, most, others in zip(counted, sure[i], possible[i], (OTHER_BLOCKS, OTHER_BYTES)):
            assert least <= value <= most + others, (begins[i], counted, sure[i], possible[i])


@case
def shares_of_holders_are_those_of_the_peak():
    _, output = recorded()
    peak = read_report("report", output)["peak"]["peak_bytes"]
    assert sum(HOLDERS.values()) <= peak <= sum(HOLDERS.values()) + OTHER_BYTES, peak
    for name, row in (("report", r"([\d.]+) MiB +([\d.]+)%  .*\b(hold_\w+)"), ("peak", r"([\d.]+) MiB +([\d.]+)% .*\b(hold_\w+)")):
        found = {function: (float(size), float(share)) for size, share, function in re.findall(row, torsh(name, output))}
        expect_equal(set(found), set(HOLDERS), f"holders in torsh {name}")
        for function, n_bytes in HOLDERS.items():
            size, share = found[function]
            assert size == n_bytes >> 20 and abs(share - 100 * n_bytes / peak) <= 0.051, (name, function, size, share, peak)


@case
def bars_are_as_long_as_their_shares():
    recording, _ = made()
    operators = json.loads(torsh("ops", recording, "--json", "--limit", 0))["ops"]
    total = sum(operator["self_cpu_ns"] for operator in operators)
    rows = re.findall(rf"^(\S+) .* ([\d.]+)%  ([{BAR[1:]}]*)", torsh("ops", recording, "--limit", 0), re.MULTILINE)
    expect_equal(len(rows), len(operators), "rows")
    for (name, share, bar), operator in zip(rows, operators):
        expected = 100 * operator["self_cpu_ns"] / total
        assert abs(float(share) - expected) <= 0.051, (name, share, expected)
        eighths = sum(map(BAR.index, bar))
        assert abs(eighths - 80 * expected / 100) <= 1, (name, bar, eighths, expected)


main()
