/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads .eh_frame: finds the unwind row of a pc. */
#include "agent/stack/cfi.h"

#include <errno.h>
#include <string.h>

#include "agent/stack/dwarf_bytes.h"

/* bytes of a CIE or FDE: damage could make them longer, and slow to read */
#define LONGEST_ENTRY (1u << 20)

struct frame_description {
	uintptr_t start;
	struct dwarf_bytes cie_program, fde_program;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of addresses in the FDE */
	bool has_augmentation_data, is_signal_frame;
};

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
	if ((version == 1 ? torsh_dwarf_unsigned(&cie, 1) : torsh_dwarf_uleb(&cie)) != CFI_RIP)
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
	d->start = torsh_dwarf_pointer(&fde, d->encoding);
	length = torsh_dwarf_pointer(&fde, d->encoding & DWARF_PE_FORMAT);
	if (!fde.is_bad && pc - d->start >= length)
		return -ENOENT;
	if (d->has_augmentation_data) {
		length = torsh_dwarf_uleb(&fde);
		if (fde.is_bad || length > (uint64_t)(fde.end - fde.at))
			return -EINVAL;
		fde.at += length;
	}
	d->fde_program = fde;
	return fde.is_bad ? -EINVAL : 0;
}

/* Damaged numbers wrap. */
static intptr_t scale(uint64_t number, int64_t factor)
{
	return (intptr_t)(number * (uint64_t)factor);
}

static void set_register(struct cfi_row *row, uint64_t number, enum cfi_location location,
			 intptr_t value)
{
	/* Vector registers have numbers too, but are not needed. */
	if (number < CFI_N_REGISTERS)
		row->registers[number] = (struct cfi_where){.location = location, .value = value};
}

static intptr_t take_block(struct dwarf_bytes *program)
{
	const uint8_t *block = program->at;
	uint64_t length = torsh_dwarf_uleb(program);

	if (program->is_bad || length > (uint64_t)(program->end - program->at)) {
		program->is_bad = true;
		return 0;
	}
	program->at += length;
	return (intptr_t)block;
}

struct machine {
	struct cfi_scratch *scratch;
	const struct frame_description *d;
	uintptr_t location;
	uint32_t n_saved;
	bool is_initial; /* the CIE's program is running */
};

static void set_cfa(struct cfi_row *row, uint64_t number, intptr_t offset)
{
	row->cfa_block = NULL;
	row->cfa_register = (uint32_t)number;
	row->cfa_offset = offset;
}

static void restore_register(const struct machine *m, uint64_t number)
{
	if (number < CFI_N_REGISTERS)
		m->scratch->row.registers[number] = m->scratch->initial.registers[number];
}

/* DW_CFA_remember_state and DW_CFA_restore_state. */
static void save_or_restore(struct machine *m, struct dwarf_bytes *program, bool recall)
{
	struct cfi_scratch *s = m->scratch;

	if (recall ? m->n_saved == 0 : m->n_saved == CFI_STATES_MAX)
		program->is_bad = true;
	else if (recall)
		s->row = s->remembered[--m->n_saved];
	else
		s->remembered[m->n_saved++] = s->row;
}

/* Instructions that set a register's location; false: another instruction. DWARF 5 table 7.29. */
static bool run_register_instruction(struct machine *m, struct dwarf_bytes *p, uint8_t op)
{
	struct cfi_row *row = &m->scratch->row;
	int64_t factor = m->d->data_factor;
	uint64_t number;

	if ((op < 0x05 || op > 0x09) && op != 0x10 && op != 0x11 && (op < 0x14 || op > 0x16) &&
	    op != 0x2f)
		return false;
	number = torsh_dwarf_uleb(p);
	switch (op) {
	case 0x05: /* offset_extended */
		set_register(row, number, CFI_AT_CFA, scale(torsh_dwarf_uleb(p), factor));
		break;
	case 0x06: /* restore_extended */
		restore_register(m, number);
		break;
	case 0x07:
		set_register(row, number, CFI_UNDEFINED, 0);
		break;
	case 0x08:
		set_register(row, number, CFI_SAME, 0);
		break;
	case 0x09:
		set_register(row, number, CFI_IN_REGISTER, (intptr_t)torsh_dwarf_uleb(p));
		break;
	case 0x10:
		set_register(row, number, CFI_AT_EXPRESSION, take_block(p));
		break;
	case 0x11: /* offset_extended_sf */
		set_register(row, number, CFI_AT_CFA, scale((uint64_t)torsh_dwarf_sleb(p), factor));
		break;
	case 0x14: /* val_offset */
		set_register(row, number, CFI_IS_CFA, scale(torsh_dwarf_uleb(p), factor));
		break;
	case 0x15: /* val_offset_sf */
		set_register(row, number, CFI_IS_CFA, scale((uint64_t)torsh_dwarf_sleb(p), factor));
		break;
	case 0x16:
		set_register(row, number, CFI_IS_EXPRESSION, take_block(p));
		break;
	case 0x2f: /* GNU_negative_offset_extended */
		set_register(row, number, CFI_AT_CFA, scale(-torsh_dwarf_uleb(p), factor));
		break;
	}
	return true;
}

static void run_other_instruction(struct machine *m, struct dwarf_bytes *p, uint8_t op)
{
	struct cfi_row *row = &m->scratch->row;
	uint64_t number;

	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x01: /* set_loc */
		m->location = torsh_dwarf_pointer(p, m->d->encoding);
		break;
	case 0x02: /* advance_loc1, 2, 4 */
		m->location += torsh_dwarf_unsigned(p, 1) * m->d->code_factor;
		break;
	case 0x03:
		m->location += torsh_dwarf_unsigned(p, 2) * m->d->code_factor;
		break;
	case 0x04:
		m->location += torsh_dwarf_unsigned(p, 4) * m->d->code_factor;
		break;
	case 0x0a:
	case 0x0b:
		save_or_restore(m, p, op == 0x0b);
		break;
	case 0x0c: /* def_cfa */
		number = torsh_dwarf_uleb(p);
		set_cfa(row, number, (intptr_t)torsh_dwarf_uleb(p));
		break;
	case 0x0d: /* def_cfa_register */
		set_cfa(row, torsh_dwarf_uleb(p), row->cfa_offset);
		break;
	case 0x0e: /* def_cfa_offset */
		row->cfa_offset = (intptr_t)torsh_dwarf_uleb(p);
		break;
	case 0x0f: /* def_cfa_expression */
		row->cfa_block = (const uint8_t *)take_block(p);
		break;
	case 0x12: /* def_cfa_sf */
		number = torsh_dwarf_uleb(p);
		set_cfa(row, number, scale((uint64_t)torsh_dwarf_sleb(p), m->d->data_factor));
		break;
	case 0x13: /* def_cfa_offset_sf */
		row->cfa_offset = scale((uint64_t)torsh_dwarf_sleb(p), m->d->data_factor);
		break;
	case 0x2e: /* GNU_args_size */
		torsh_dwarf_uleb(p);
		break;
	default:
		p->is_bad = true;
	}
}

static int run_program(struct machine *m, struct dwarf_bytes p, uintptr_t pc)
{
	while (p.at < p.end && !p.is_bad) {
		uint8_t op = *p.at++;

		switch (op >> 6) {
		case 1: /* advance_loc */
			m->location += (op & 0x3f) * m->d->code_factor;
			break;
		case 2: /* offset */
			set_register(&m->scratch->row, op & 0x3f, CFI_AT_CFA,
				     scale(torsh_dwarf_uleb(&p), m->d->data_factor));
			break;
		case 3: /* restore */
			restore_register(m, op & 0x3f);
			break;
		default:
			if (!run_register_instruction(m, &p, op))
				run_other_instruction(m, &p, op);
		}
		if (m->location > pc)
			break;
	}
	return p.is_bad ? -EINVAL : 0;
}

int torsh_cfi_read(const uint8_t *eh_frame_hdr, const struct object_memory *memory, uintptr_t pc,
		   struct cfi_scratch *scratch)
{
	struct frame_description d = {.encoding = DWARF_PE_ABSOLUTE};
	struct machine machine = {.scratch = scratch, .d = &d};
	const uint8_t *fde = find_fde(eh_frame_hdr, memory, pc);
	int err;

	if (!fde)
		return -ENOENT;
	err = read_fde(&d, memory, fde, pc);
	if (err)
		return err;

	memset(&scratch->row, 0, sizeof(scratch->row));
	scratch->row.is_signal_frame = d.is_signal_frame;
	/* A damaged CIE may restore registers before it defines them. */
	scratch->initial = scratch->row;
	machine.location = d.start;
	err = run_program(&machine, d.cie_program, UINTPTR_MAX);
	if (err)
		return err;
	scratch->initial = scratch->row;
	return run_program(&machine, d.fde_program, pc);
}

bool torsh_cfi_begins(const uint8_t *eh_frame_hdr, const struct object_memory *memory, uintptr_t pc)
{
	struct frame_description d = {.encoding = DWARF_PE_ABSOLUTE};
	const uint8_t *fde = find_fde(eh_frame_hdr, memory, pc);

	return fde && !read_fde(&d, memory, fde, pc) && d.start == pc;
}
