/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/wire/cpython/python_lines.h"

/*
 * Up to 3.9 (co_lnotab): pairs of bytes with the differences of offset (unsigned) and line
 * (signed).
 */
static uint32_t line_by_lnotab(struct python_lines *lines, int32_t offset)
{
	const uint8_t *table = lines->table;

	while (lines->entry + 1 < lines->n_bytes && lines->start + table[lines->entry] <= offset) {
		lines->start += table[lines->entry];
		lines->line += (uint32_t)(int8_t)table[lines->entry + 1];
		lines->entry += 2;
	}
	return lines->line;
}

#define NO_LINE (-128)

/*
 * 3.10 (co_linetable): pairs of bytes with the length of the code in bytes and the line's
 * difference to the previous pair.
 */
static uint32_t line_by_pairs(struct python_lines *lines, int32_t offset)
{
	const uint8_t *table = lines->table;

	for (; lines->entry + 1 < lines->n_bytes; lines->entry += 2) {
		int8_t ahead = (int8_t)table[lines->entry + 1];
		int32_t end = lines->start + table[lines->entry];
		uint32_t line = lines->line + (ahead == NO_LINE ? 0 : (uint32_t)ahead);

		if (offset < end)
			return ahead == NO_LINE ? 0 : line;
		lines->start = end;
		lines->line = line;
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

/* How much further than the entry before the line of this one is. */
static uint32_t advance_of(uint32_t code, const uint8_t *data, const uint8_t *end)
{
	if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
		return (uint32_t)read_signed(data, end);
	return code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMNS ? code - LOCATION_ONE_LINE
								       : 0;
}

static uint32_t line_by_locations(struct python_lines *lines, int32_t offset)
{
	const uint8_t *at = lines->table + lines->entry, *end = lines->table + lines->n_bytes;
	uint32_t line = lines->line, found = 0;
	int32_t start = lines->start;

	while (at < end) {
		uint32_t code = *at >> 3 & 15u, next = line + advance_of(code, at + 1, end);
		int32_t covered = start + ((*at & 7) + 1) * UNIT_BYTES;

		if (offset < covered) {
			found = code == LOCATION_NONE ? 0 : next;
			break;
		}
		do
			at++;
		while (at < end && !(*at & LOCATION_START));
		line = next;
		start = covered;
	}
	lines->entry = (uint32_t)(at - lines->table);
	lines->line = line;
	lines->start = start;
	return found;
}

uint32_t torsh_python_line(enum cpython_lines how, struct python_lines *lines, int32_t offset)
{
	if (offset < 0)
		return lines->first_line;
	if (!lines->entry || offset < lines->start) {
		lines->entry = 0;
		lines->line = lines->first_line;
		lines->start = 0;
	}
	switch (how) {
	case CPYTHON_LNOTAB:
		return line_by_lnotab(lines, offset);
	case CPYTHON_LINE_PAIRS:
		return line_by_pairs(lines, offset);
	case CPYTHON_LOCATIONS:
		return line_by_locations(lines, offset);
	}
	return 0;
}
