/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/packed_columns.h"

#include <string.h>

#define TYPE_BITS 3 /* of a tag, below the field's number */
#define TYPE_VARINT 0u
#define TYPE_BYTES 2u /* a length and as many bytes */
#define VARINT_BYTES 10u
#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Read a varint that may have no end before `end`. Returns false if so, or if it is too long. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	const uint8_t *last = *at;

	while (last < end && *last >= 0x80)
		last++;
	if (last == end || last - *at >= (ptrdiff_t)VARINT_BYTES)
		return false;
	*value = torsh_packed_varint(at);
	return true;
}

/* Returns the number of varints in n bytes: each has one byte without the highest bit. */
static size_t count_varints(const uint8_t *bytes, size_t n)
{
	size_t n_varints = 0, i = 0;
	uint64_t eight;

	for (; i + sizeof(eight) <= n; i += sizeof(eight)) {
		memcpy(&eight, bytes + i, sizeof(eight));
		n_varints += ((~eight >> 7 & EACH_BYTE) * EACH_BYTE) >> 56;
	}
	for (; i < n; i++)
		n_varints += bytes[i] < 0x80;
	return n_varints;
}

bool torsh_packed_message_open(struct packed_message *message, const struct packed_fields *fields,
			       const uint8_t *bytes, size_t n)
{
	const uint8_t *at = bytes, *end = bytes + n;
	uint32_t seen = 0;

	while (at < end) {
		uint64_t tag, value;
		uint32_t bit, type;

		if (!take_number(&at, end, &tag) || !take_number(&at, end, &value) ||
		    tag >> TYPE_BITS >= PACKED_FIELDS)
			return false;
		bit = UINT32_C(1) << (tag >> TYPE_BITS);
		type = tag & ((1u << TYPE_BITS) - 1);
		if (seen & bit)
			return false;
		seen |= bit;
		if (type == TYPE_VARINT && fields->numbers & bit) {
			message->numbers[tag >> TYPE_BITS] = value;
			continue;
		}
		if (type != TYPE_BYTES || !(fields->columns & bit) || value > (size_t)(end - at) ||
		    (value && at[value - 1] >= 0x80))
			return false;
		message->columns[tag >> TYPE_BITS] =
			(struct packed_column){.at = at, .n = count_varints(at, value)};
		at += value;
	}
	return true;
}
