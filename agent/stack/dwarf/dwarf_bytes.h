/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads the numbers and pointers of encoded unwind data. */
#ifndef TORSH_AGENT_STACK_DWARF_DWARF_BYTES_H
#define TORSH_AGENT_STACK_DWARF_DWARF_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/* Encodings of pointers: LSB 5, table 10.5. */
enum {
	DWARF_PE_ABSOLUTE = 0x00,
	DWARF_PE_ULEB = 0x01,
	DWARF_PE_U2 = 0x02,
	DWARF_PE_U4 = 0x03,
	DWARF_PE_U8 = 0x04,
	DWARF_PE_SLEB = 0x09,
	DWARF_PE_S2 = 0x0a,
	DWARF_PE_S4 = 0x0b,
	DWARF_PE_S8 = 0x0c,
	DWARF_PE_FORMAT = 0x0f,
	DWARF_PE_RELATIVE = 0x70,
	DWARF_PE_PC_RELATIVE = 0x10,
	DWARF_PE_DATA_RELATIVE = 0x30,
	DWARF_PE_INDIRECT = 0x80,
	DWARF_PE_OMIT = 0xff,
};

/*
 * A cursor over encoded unwind data. is_bad after a read past the end or of unsupported data; every
 * later value is 0.
 */
struct dwarf_bytes {
	const uint8_t *at, *end;
	bool is_bad;
};

/* Read an unsigned integer of size_bytes (1, 2, 4 or 8); 0 once the cursor is_bad. */
uint64_t torsh_dwarf_unsigned(struct dwarf_bytes *bytes, uint32_t size_bytes);

/* Read a signed integer of size_bytes likewise. */
int64_t torsh_dwarf_signed(struct dwarf_bytes *bytes, uint32_t size_bytes);

uint64_t torsh_dwarf_long_uleb(struct dwarf_bytes *bytes);

/* Read an unsigned LEB128 number (DWARF 5, section 7.6); 0 once the cursor is_bad. */
static inline uint64_t torsh_dwarf_uleb(struct dwarf_bytes *bytes)
{
	if (bytes->at < bytes->end && *bytes->at < 0x80 && !bytes->is_bad)
		return *bytes->at++;
	return torsh_dwarf_long_uleb(bytes);
}

/* Read a signed LEB128 number likewise. */
int64_t torsh_dwarf_sleb(struct dwarf_bytes *bytes);

/*
 * Read a pointer in one of the encodings. Indirect pointers, and those relative to anything but
 * themselves, are bad.
 */
uintptr_t torsh_dwarf_pointer(struct dwarf_bytes *bytes, uint8_t encoding);

#endif
