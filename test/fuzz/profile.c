/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The contents of chunks, without the checksums of a recording, and reports of them. The input is a
 * sequence of chunks, each after its length in two bytes. Tables are the same, loaded packed or
 * unpacked.
 */
#include "tools/recording/recording.h"

#include <stdbool.h>
#include <stdlib.h>

#include "test/fuzz/packed_chunk.h"
#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/moments.h"
#include "tools/store/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* The same chunks, loaded both ways. */
struct pair {
	struct recording *packed, *unpacked;
	bool is_comparable; /* no chunk was refused by one of both */
};

/* Returns whether it was loaded. */
static bool load_packed(struct recording *recording, const uint8_t *bytes, size_t n)
{
	Torsh__Chunk *chunk = load_packed_chunk(recording, bytes, n);

	if (chunk)
		torsh__chunk__free_unpacked(chunk, NULL);
	return chunk;
}

static bool load_unpacked(struct recording *recording, const uint8_t *bytes, size_t n)
{
	Torsh__Chunk *chunk = torsh__chunk__unpack(NULL, n, bytes);

	if (!chunk)
		return false;
	torsh_delta_decode(chunk);
	torsh_recording_load(recording, chunk);
	torsh__chunk__free_unpacked(chunk, NULL);
	return true;
}

/* A column with numbers of more than 64 bits may only be loaded packed. */
static struct pair read_chunks(const uint8_t *bytes, size_t n_bytes)
{
	struct pair pair = {torsh_recording_new("fuzz"), torsh_recording_new("fuzz"), true};

	while (n_bytes >= 2) {
		size_t n = bytes[0] | (size_t)bytes[1] << 8u;

		bytes += 2;
		n_bytes -= 2;
		n = n < n_bytes ? n : n_bytes;
		pair.is_comparable &= load_packed(pair.packed, bytes, n) ==
				      load_unpacked(pair.unpacked, bytes, n);
		bytes += n;
		n_bytes -= n;
	}
	return pair;
}

static void compare(const struct pair *pair)
{
	const struct recording *a = pair->packed, *b = pair->unpacked;

	if (!pair->is_comparable)
		return;
	if (a->n_processes != b->n_processes || a->n_bad_rows != b->n_bad_rows)
		abort();
	for (size_t i = 0; i < a->n_processes; i++) {
		if (a->processes[i]->tables->n_stacks != b->processes[i]->tables->n_stacks ||
		    a->processes[i]->totals.n != b->processes[i]->totals.n)
			abort();
	}
}

/* Moments of the heap, and what was held at each. */
static void report_moments(const struct recorded_process *process)
{
	struct memory_moments moments;

	torsh_memory_moments_make(&moments, process);
	for (size_t i = 0; i < moments.n; i++) {
		struct allocation_sites sites = {0};

		torsh_memory_moment_sites(&sites, &moments, &moments.items[i]);
		torsh_sites_free(&sites);
	}
	torsh_memory_moments_free(&moments);
}

static void report(const struct recording *recording, struct symbols *symbols)
{
	struct leaks leaks = {0};

	torsh_leaks_find(&leaks, recording->processes, recording->n_processes, symbols, NULL);
	torsh_sites_name(&leaks.found, symbols, leaks.found.n);
	torsh_leaks_free(&leaks);
	for (enum sites_of what = SITES_LIVE; what <= SITES_MAPPED; what++) {
		struct allocation_sites sites = {.depth = 3};

		for (size_t i = 0; i < recording->n_processes; i++)
			torsh_sites_collect(&sites, recording->processes[i], what);
		torsh_sites_merge_stacks(&sites, symbols);
		torsh_sites_sort(&sites, ORDER_BYTES);
		torsh_sites_name(&sites, symbols, sites.n);
		torsh_sites_free(&sites);
	}
	for (size_t i = 0; i < recording->n_processes; i++)
		report_moments(recording->processes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct pair pair = read_chunks(bytes, n_bytes);
	struct symbols *symbols = torsh_symbols_create(false);

	compare(&pair);
	report(pair.packed, symbols);
	torsh_symbols_destroy(symbols);
	torsh_recording_destroy(pair.packed);
	torsh_recording_destroy(pair.unpacked);
	return 0;
}
