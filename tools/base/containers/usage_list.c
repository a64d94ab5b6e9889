/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A usage is three varints: the distance to the previous one's number, zigzag, the blocks and the
 * bytes.
 */
#include "tools/base/containers/usage_list.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

#define USAGE_BYTES_MAX 30u /* of three numbers of at most 10 bytes each */

static size_t put_varint(uint8_t *out, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}

static uint64_t take_varint(const uint8_t *in, size_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = in[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

void torsh_usage_list_add(struct usage_list *list, uint32_t number, uint64_t blocks, uint64_t bytes)
{
	int64_t distance = (int64_t)number - (int64_t)list->last;
	uint8_t usage[USAGE_BYTES_MAX];
	size_t n = put_varint(usage, (uint64_t)distance << 1 ^ (uint64_t)(distance >> 63));

	n += put_varint(usage + n, blocks);
	n += put_varint(usage + n, bytes);
	list->packed = torsh_array_extend(list->packed, list->n_packed + n, &list->packed_room,
					  sizeof(*list->packed));
	memcpy(list->packed + list->n_packed, usage, n);
	list->n_packed += n;
	list->last = number;
}

bool torsh_usage_list_next(const struct usage_list *list, struct usage_at *at)
{
	uint64_t distance;

	if (at->end == list->n_packed)
		return false;
	distance = take_varint(list->packed, &at->end);
	at->number += (uint32_t)(distance >> 1 ^ -(distance & 1));
	at->blocks = take_varint(list->packed, &at->end);
	at->bytes = take_varint(list->packed, &at->end);
	return true;
}

void torsh_usage_list_clear(struct usage_list *list)
{
	list->n_packed = 0;
	list->last = 0;
}

void torsh_usage_list_free(struct usage_list *list)
{
	free(list->packed);
	*list = (struct usage_list){0};
}
