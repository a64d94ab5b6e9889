/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/chunk_members.h"

#include <stdbool.h>
#include <string.h>

#define TYPE_BITS 3 /* of a tag, below the field's number */
#define TYPE_MESSAGE 2u /* a length and as many bytes */

/* Returns the varint at *at and moves *at behind it, or to end if it has no end. */
static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	*at = end;
	return 0;
}

size_t torsh_chunk_leave_out(uint8_t *packed, size_t n, uint32_t members)
{
	const uint8_t *at = packed, *end = packed + n;
	size_t n_kept = 0;

	while (at < end) {
		const uint8_t *member = at;
		uint64_t tag = take_varint(&at, end), n_bytes = take_varint(&at, end);
		uint64_t field = tag >> TYPE_BITS;
		bool is_message = (tag & ((1u << TYPE_BITS) - 1)) == TYPE_MESSAGE &&
				  n_bytes <= (uint64_t)(end - at);

		at = is_message ? at + n_bytes : end;
		if (is_message && field < 32 && members >> field & 1)
			continue;
		memmove(packed + n_kept, member, (size_t)(at - member));
		n_kept += (size_t)(at - member);
	}
	return n_kept;
}
