/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What chunks say, past the checksums of a recording, and reports of it. The input is chunks one behind the other, each
 * behind its length in two bytes.
 */
#include "tools/recording/recording.h"

#include <stdlib.h>

#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/store/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static struct profile *read_chunks(const uint8_t *bytes, size_t n_bytes)
{
	struct profile *profile = torsh_profile_create("fuzz");

	while (n_bytes >= 2) {
		size_t n = bytes[0] | (size_t)bytes[1] << 8u;
		Torsh__Chunk *chunk;

		bytes += 2;
		n_bytes -= 2;
		n = n < n_bytes ? n : n_bytes;
		chunk = torsh__chunk__unpack(NULL, n, bytes);
		if (chunk) {
			torsh_steps_sum(chunk);
			torsh_profile_apply(profile, chunk);
			torsh__chunk__free_unpacked(chunk, NULL);
		}
		bytes += n;
		n_bytes -= n;
	}
	return profile;
}

static void report(const struct profile *profile, struct symbols *symbols)
{
	struct leaks leaks = {0};

	torsh_leaks_find(&leaks, profile->processes, profile->n_processes, symbols, NULL);
	torsh_holders_name(&leaks.found, symbols, leaks.found.n);
	torsh_leaks_free(&leaks);
	for (enum holders_of what = HOLDERS_LIVE; what <= HOLDERS_MAPPED; what++) {
		struct holders holders = {.depth = 3};

		for (size_t i = 0; i < profile->n_processes; i++)
			torsh_holders_collect(&holders, profile->processes[i], what);
		torsh_holders_merge_stacks(&holders, symbols);
		torsh_holders_sort(&holders, ORDER_BYTES);
		torsh_holders_name(&holders, symbols, holders.n);
		torsh_holders_free(&holders);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct profile *profile = read_chunks(bytes, n_bytes);
	struct symbols *symbols = torsh_symbols_create(false);

	report(profile, symbols);
	torsh_symbols_destroy(symbols);
	torsh_profile_destroy(profile);
	return 0;
}
