/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The columns of a message of recording.proto, read value by value where they are packed: the
 * largest tables have millions of rows, whose numbers take ten times as much memory unpacked.
 */
#ifndef TORSH_STORE_PACKED_COLUMNS_H
#define TORSH_STORE_PACKED_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_FIELDS 19u /* numbers of fields that a message may have are below */

/* What is left of a column: n values. */
struct packed_column {
	const uint8_t *at;
	size_t n;
};

/* A message with single numbers and columns of varints, by the field's number. */
struct packed_message {
	uint32_t member; /* number of its field in Chunk */
	uint64_t numbers[PACKED_FIELDS];
	struct packed_column columns[PACKED_FIELDS];
};

/* Which fields a message has, by number, as bits. */
struct packed_fields {
	uint32_t numbers, columns;
};

/*
 * Find the columns of a message of n bytes, which must outlive it. Returns false if it isn't plain:
 * it has other fields, or one twice, or is damaged.
 */
bool torsh_packed_message_open(struct packed_message *message, const struct packed_fields *fields,
			       const uint8_t *bytes, size_t n);

/* Read a varint from *at, which has an end, and move behind it. More than 64 bits are lost. */
static inline uint64_t torsh_packed_varint(const uint8_t **at)
{
	uint64_t value = *(*at)++;
	unsigned shift = 7;

	if (value < 0x80)
		return value;
	value &= 0x7f;
	for (;; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

/* Read the next value of a column; 0 if none is left. */
static inline uint64_t torsh_packed_take(struct packed_column *column)
{
	if (!column->n)
		return 0;
	column->n--;
	return torsh_packed_varint(&column->at);
}

/* Returns the number that a varint of a field of type sint32 or sint64 stands for. */
static inline int64_t torsh_packed_signed(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

#endif
