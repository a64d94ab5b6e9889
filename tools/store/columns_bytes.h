/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Growing columns of bytes, and a reader of one that never reads beyond its end.
 */
#ifndef TORSH_STORE_COLUMNS_BYTES_H
#define TORSH_STORE_COLUMNS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct column_bytes {
	uint8_t *bytes;
	size_t n, capacity;
};

/* Room for n more bytes. Returns 0 or -ENOMEM. */
int torsh_bytes_reserve(struct column_bytes *column, size_t n);

/* Append a varint; room for 10 bytes must be reserved. */
static inline void torsh_bytes_put_varint(struct column_bytes *column, uint64_t value)
{
	while (value >= 0x80) {
		column->bytes[column->n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	column->bytes[column->n++] = (uint8_t)value;
}

/* Append n bytes; room for them must be reserved. */
static inline void torsh_bytes_put(struct column_bytes *column, const void *bytes, size_t n)
{
	memcpy(column->bytes + column->n, bytes, n);
	column->n += n;
}

struct column_reader {
	const uint8_t *at, *end;
	bool is_short; /* a read went beyond the end and returned 0 */
};

/* The next varint; 0 beyond the end. */
static inline uint64_t torsh_bytes_take_varint(struct column_reader *column)
{
	uint64_t value = 0;

	for (uint32_t shift = 0; shift < 64 && column->at < column->end; shift += 7) {
		uint8_t byte = *column->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	column->is_short = true;
	return 0;
}

/* n bytes of the column, or NULL. */
static inline const uint8_t *torsh_bytes_take(struct column_reader *column, size_t n)
{
	const uint8_t *bytes = column->at;

	if ((size_t)(column->end - column->at) < n) {
		column->is_short = true;
		return NULL;
	}
	column->at += n;
	return bytes;
}

/* The next 8 bytes as a number; 0 beyond the end. */
static inline uint64_t torsh_bytes_take_u64(struct column_reader *column)
{
	const uint8_t *bytes = torsh_bytes_take(column, 8);
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, 8);
	return value;
}

/* A signed difference as a small unsigned number (protobuf's zig-zag). */
static inline uint64_t torsh_bytes_zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

/* The inverse of torsh_bytes_zigzag. */
static inline uint64_t torsh_bytes_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

#endif
