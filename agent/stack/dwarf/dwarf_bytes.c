/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/stack/dwarf/dwarf_bytes.h"

#include <stddef.h>

uint64_t torsh_dwarf_unsigned(struct dwarf_bytes *bytes, uint32_t size_bytes)
{
	uint64_t value = 0;

	if (bytes->is_bad || (size_t)(bytes->end - bytes->at) < size_bytes) {
		bytes->is_bad = true;
		return 0;
	}
	for (uint32_t i = 0; i < size_bytes; i++)
		value |= (uint64_t)bytes->at[i] << 8 * i;
	bytes->at += size_bytes;
	return value;
}

int64_t torsh_dwarf_signed(struct dwarf_bytes *bytes, uint32_t size_bytes)
{
	uint32_t unused_bits = 64 - 8 * size_bytes;

	return (int64_t)(torsh_dwarf_unsigned(bytes, size_bytes) << unused_bits) >> unused_bits;
}

static uint64_t read_leb(struct dwarf_bytes *bytes, bool is_signed)
{
	uint64_t value = 0;
	uint32_t shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)torsh_dwarf_unsigned(bytes, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

uint64_t torsh_dwarf_long_uleb(struct dwarf_bytes *bytes)
{
	return read_leb(bytes, false);
}

int64_t torsh_dwarf_sleb(struct dwarf_bytes *bytes)
{
	return (int64_t)read_leb(bytes, true);
}

uintptr_t torsh_dwarf_pointer(struct dwarf_bytes *bytes, uint8_t encoding)
{
	uintptr_t base =
		(encoding & DWARF_PE_RELATIVE) == DWARF_PE_PC_RELATIVE ? (uintptr_t)bytes->at : 0;

	if ((encoding & DWARF_PE_RELATIVE) > DWARF_PE_PC_RELATIVE || encoding & DWARF_PE_INDIRECT)
		bytes->is_bad = true;
	switch (encoding & DWARF_PE_FORMAT) {
	case DWARF_PE_ABSOLUTE:
	case DWARF_PE_U8:
	case DWARF_PE_S8:
		return base + torsh_dwarf_unsigned(bytes, 8);
	case DWARF_PE_ULEB:
		return base + torsh_dwarf_uleb(bytes);
	case DWARF_PE_U2:
		return base + torsh_dwarf_unsigned(bytes, 2);
	case DWARF_PE_U4:
		return base + torsh_dwarf_unsigned(bytes, 4);
	case DWARF_PE_SLEB:
		return base + (uintptr_t)torsh_dwarf_sleb(bytes);
	case DWARF_PE_S2:
		return base + (uintptr_t)torsh_dwarf_signed(bytes, 2);
	case DWARF_PE_S4:
		return base + (uintptr_t)torsh_dwarf_signed(bytes, 4);
	default:
		bytes->is_bad = true;
		return 0;
	}
}
