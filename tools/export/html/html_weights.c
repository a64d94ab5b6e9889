/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A weight is three varints: the distance to the previous one's node, zigzag, the blocks and the
 * bytes.
 */
#include "tools/export/html/html_weights.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

#define WEIGHT_BYTES_MAX 30u /* of three numbers of at most 10 bytes each */

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

void torsh_html_weights_add(struct html_weights *weights, uint32_t node, struct html_value value)
{
	int64_t distance = (int64_t)node - (int64_t)weights->last;
	uint8_t *out;

	weights->packed = torsh_array_extend(weights->packed, weights->n_packed + WEIGHT_BYTES_MAX,
					     &weights->packed_room, sizeof(*weights->packed));
	out = weights->packed + weights->n_packed;
	out += put_varint(out, (uint64_t)distance << 1 ^ (uint64_t)(distance >> 63));
	out += put_varint(out, value.blocks);
	out += put_varint(out, value.bytes);
	weights->n_packed = (size_t)(out - weights->packed);
	weights->last = node;
}

bool torsh_html_weights_next(const struct html_weights *weights, struct html_weight_at *at)
{
	uint64_t distance;

	if (at->end == weights->n_packed)
		return false;
	distance = take_varint(weights->packed, &at->end);
	at->node += (uint32_t)(distance >> 1 ^ -(distance & 1));
	at->value.blocks = take_varint(weights->packed, &at->end);
	at->value.bytes = take_varint(weights->packed, &at->end);
	return true;
}

void torsh_html_weights_free(struct html_weights *weights)
{
	free(weights->packed);
	*weights = (struct html_weights){0};
}
