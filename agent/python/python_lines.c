/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/python/python_lines.h"

/*
 * Up to 3.9 (co_lnotab): pairs of bytes with the differences of offset (unsigned) and line
 * (signed).
 */
static uint32_t line_by_lnotab(const uint8_t *table, size_t n_bytes, uint32_t line, int32_t offset)
{
	int32_t at = 0;

	for (size_t i = 0; i + 1 < n_bytes; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (uint32_t)(int8_t)table[i + 1];
	}
	return line;
}

#define NO_LINE (-128)

/*
 * 3.10 (co_linetable): pairs of bytes with the length of the code in bytes and the line's
 * difference to the previous pair.
 */
static uint32_t line_by_pairs(const uint8_t *table, size_t n_bytes, uint32_t line, int32_t offset)
{
	int32_t end = 0;

	for (size_t i = 0; i + 1 < n_bytes; i += 2) {
		int8_t ahead = (int8_t)table[i + 1];

		end += table[i];
		if (ahead != NO_LINE)
			line += (uint32_t)ahead;
		if (offset < end)
			return ahead == NO_LINE ? 0 : line;
	}
	return 0;
}

/*
 * From 3.11 on (Objects/locations.md of CPython) only the first byte of an entry has its top bit
 * set. Bits 3-6 are the entry's kind, bits 0-2 its length in code units, less one.
 */
#define LOCATION_START 0x80u
#define UNIT_BYTES 2

enum location_code {
	LOCATION_ONE_LINE = 10, /* up to 12: the line advances by the kind less 10 */
	LOCATION_NO_COLUMNS = 13, /* followed by the line's difference */
	LOCATION_LONG = 14, /* followed by the line's difference, end line and columns */
	LOCATION_NONE = 15,
};

/*
 * Six bits a byte, lowest first; bit 6: another byte follows. The number's lowest bit is its sign.
 */
static int32_t read_signed(const uint8_t *at, const uint8_t *end)
{
	uint32_t value = 0, shift = 0;

	do
		value |= (at < end ? *at & 63u : 0) << shift;
	while (at < end && *at++ & 64 && (shift += 6) < 32);
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static uint32_t line_by_locations(const uint8_t *table, size_t n_bytes, uint32_t line,
				  int32_t offset)
{
	const uint8_t *at = table, *end = table + n_bytes;
	int32_t covered = 0;

	while (at < end) {
		uint32_t code = *at >> 3 & 15u;

		covered += ((*at & 7) + 1) * UNIT_BYTES;
		if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
			line += (uint32_t)read_signed(at + 1, end);
		else if (code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMNS)
			line += code - LOCATION_ONE_LINE;
		if (offset < covered)
			return code == LOCATION_NONE ? 0 : line;
		do
			at++;
		while (at < end && !(*at & LOCATION_START));
	}
	return 0;
}

uint32_t torsh_python_line(enum cpython_lines how, const uint8_t *table, size_t n_bytes,
			   uint32_t first_line, int32_t offset)
{
	if (offset < 0)
		return first_line;
	switch (how) {
	case CPYTHON_LNOTAB:
		return line_by_lnotab(table, n_bytes, first_line, offset);
	case CPYTHON_LINE_PAIRS:
		return line_by_pairs(table, n_bytes, first_line, offset);
	case CPYTHON_LOCATIONS:
		return line_by_locations(table, n_bytes, first_line, offset);
	}
	return 0;
}
