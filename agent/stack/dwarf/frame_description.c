/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads .eh_frame_hdr, and the entries of .eh_frame. */
#include "agent/stack/dwarf/frame_description.h"

#include <errno.h>
#include <string.h>

#include "agent/stack/cpu/unwind_cpu.h"

/* bytes of a CIE or FDE: damage could make them longer, and slow to read */
#define LONGEST_ENTRY (1u << 20)

/*
 * The body of the CIE or FDE at entry, without its length. The 64-bit form, never used below 4 GiB,
 * is refused.
 */
static struct dwarf_bytes entry_bytes(const struct object_memory *memory, const uint8_t *entry)
{
	size_t room = torsh_object_readable(memory, (uintptr_t)entry);
	uint32_t length = 0;

	if (room >= sizeof(length))
		memcpy(&length, entry, sizeof(length));
	if (length < 4 || length > LONGEST_ENTRY || length > room - sizeof(length))
		return (struct dwarf_bytes){.is_bad = true};
	return (struct dwarf_bytes){.at = entry + 4, .end = entry + 4 + length};
}

/*
 * Look up pc in the sorted table that linkers write: pairs of 32 bits, relative to the header.
 * NULL: no entry covers pc.
 */
static const uint8_t *find_in_table(const uint8_t *hdr, const uint8_t *table, size_t n,
				    uintptr_t pc)
{
	int64_t wanted = (int64_t)(pc - (uintptr_t)hdr);
	size_t low = 0;
	int32_t pair[2];

	while (n > 0) {
		size_t half = n / 2;

		memcpy(pair, table + 8 * (low + half), sizeof(pair));
		if (pair[0] <= wanted) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (low == 0)
		return NULL;
	memcpy(pair, table + 8 * (low - 1), sizeof(pair));
	return hdr + pair[1];
}

/*
 * The FDE that may cover pc. Not inlined, and neither is read_fde: only one at a time is on the
 * stack, which may be a signal handler's small one.
 */
static __attribute__((noinline)) const uint8_t *
find_fde(const uint8_t *hdr, const struct object_memory *memory, uintptr_t pc)
{
	struct dwarf_bytes bytes = {.at = hdr + 4,
				    .end = hdr + torsh_object_readable(memory, (uintptr_t)hdr)};
	uint64_t n;

	if (bytes.end < bytes.at || hdr[0] != 1 || hdr[1] == DWARF_PE_OMIT ||
	    hdr[3] != (DWARF_PE_DATA_RELATIVE | DWARF_PE_S4))
		return NULL;
	torsh_dwarf_pointer(&bytes, hdr[1]);
	n = torsh_dwarf_pointer(&bytes, hdr[2]);
	return bytes.is_bad || n > (size_t)(bytes.end - bytes.at) / 8
		       ? NULL
		       : find_in_table(hdr, bytes.at, n, pc);
}

/* Read the data of a CIE's augmentation string, which are in the order of its letters. */
static void read_augmentation(struct frame_description *d, const char *letters,
			      struct dwarf_bytes *cie)
{
	uint64_t length = torsh_dwarf_uleb(cie);
	struct dwarf_bytes data = *cie;

	if (length > (uint64_t)(cie->end - cie->at)) {
		cie->is_bad = true;
		return;
	}
	cie->at += length;
	d->has_augmentation_data = true;
	while (*letters && !data.is_bad) {
		uint8_t encoding;

		switch (*letters++) {
		case 'R':
			d->encoding = (uint8_t)torsh_dwarf_unsigned(&data, 1);
			break;
		case 'L':
			torsh_dwarf_unsigned(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)torsh_dwarf_unsigned(&data, 1);
			/* Only its length matters. */
			torsh_dwarf_pointer(&data, encoding & DWARF_PE_FORMAT);
			break;
		case 'S':
			d->is_signal_frame = true;
			break;
		case 'B': /* of aarch64: how return addresses are signed, and tags of the stack */
		case 'G':
			break;
		default:
			/*
			 * An unknown letter has data of unknown length, but 'z' has given the
			 * total.
			 */
			return;
		}
	}
	cie->is_bad |= data.is_bad;
}

static int read_cie(struct frame_description *d, const struct object_memory *memory,
		    const uint8_t *entry)
{
	struct dwarf_bytes cie = entry_bytes(memory, entry);
	const char *letters;
	uint8_t version;

	torsh_dwarf_unsigned(&cie, 4);
	version = (uint8_t)torsh_dwarf_unsigned(&cie, 1);
	letters = (const char *)cie.at;
	while (torsh_dwarf_unsigned(&cie, 1))
		;
	if (cie.is_bad || (version != 1 && version != 3 && version != 4))
		return -EINVAL;
	if (version == 4 && torsh_dwarf_unsigned(&cie, 2) != sizeof(void *))
		return -EINVAL;
	d->code_factor = torsh_dwarf_uleb(&cie);
	d->data_factor = torsh_dwarf_sleb(&cie);
	if ((version == 1 ? torsh_dwarf_unsigned(&cie, 1) : torsh_dwarf_uleb(&cie)) !=
	    CFI_RETURN_ADDRESS)
		return -EINVAL;
	if (*letters == 'z')
		read_augmentation(d, letters + 1, &cie);
	else if (*letters)
		return -EINVAL;
	d->cie_program = cie;
	return cie.is_bad ? -EINVAL : 0;
}

static __attribute__((noinline)) int read_fde(struct frame_description *d,
					      const struct object_memory *memory,
					      const uint8_t *entry, uintptr_t pc)
{
	struct dwarf_bytes fde = entry_bytes(memory, entry);
	const uint8_t *cie_field = fde.at;
	uint64_t length;
	int err;

	if (fde.is_bad)
		return -EINVAL;
	/* The distance back to the CIE; 0 marks a CIE. */
	length = torsh_dwarf_unsigned(&fde, 4);
	if (length == 0)
		return -EINVAL;
	err = read_cie(d, memory, cie_field - length);
	if (err)
		return err;
	d->fde = entry;
	d->start = torsh_dwarf_pointer(&fde, d->encoding);
	length = torsh_dwarf_pointer(&fde, d->encoding & DWARF_PE_FORMAT);
	if (!fde.is_bad && pc - d->start >= length)
		return -ENOENT;
	d->end = d->start + length;
	if (d->has_augmentation_data) {
		length = torsh_dwarf_uleb(&fde);
		if (fde.is_bad || length > (uint64_t)(fde.end - fde.at))
			return -EINVAL;
		fde.at += length;
	}
	d->fde_program = fde;
	return fde.is_bad ? -EINVAL : 0;
}

int torsh_frame_description_find(const uint8_t *eh_frame_hdr, const struct object_memory *memory,
				 uintptr_t pc, struct frame_description *d)
{
	const uint8_t *fde = find_fde(eh_frame_hdr, memory, pc);

	if (!fde)
		return -ENOENT;
	*d = (struct frame_description){.encoding = DWARF_PE_ABSOLUTE};
	return read_fde(d, memory, fde, pc);
}
