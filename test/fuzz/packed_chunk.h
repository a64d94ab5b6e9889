/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A chunk loaded as reports load it: with stacks and their totals packed where they are plain. */
#ifndef TORSH_TEST_FUZZ_PACKED_CHUNK_H
#define TORSH_TEST_FUZZ_PACKED_CHUNK_H

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/recording/recording.h"
#include "tools/store/chunk_members.h"
#include "tools/store/delta.h"

/* Returns the rest of the chunk, which the caller frees, or NULL if it is damaged. */
static inline Torsh__Chunk *load_packed_chunk(struct recording *recording, const uint8_t *bytes,
					      size_t n)
{
	struct packed_messages messages = {0};
	uint8_t *rest = torsh_need(malloc(n + 1));
	size_t n_rest = torsh_chunk_split(bytes, n, &messages, rest);
	Torsh__Chunk *chunk = n_rest == SIZE_MAX ? torsh__chunk__unpack(NULL, n, bytes)
						 : torsh__chunk__unpack(NULL, n_rest, rest);

	if (chunk) {
		torsh_delta_decode(chunk);
		torsh_recording_load_packed(recording, chunk, &messages);
	}
	free(messages.items);
	free(rest);
	return chunk;
}

#endif
