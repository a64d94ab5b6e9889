/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs the programs of call frame information. */
#include "agent/stack/dwarf/cfi.h"

#include <errno.h>
#include <string.h>

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

static void set_cfa(struct cfi_row *row, uint64_t number, intptr_t offset)
{
	row->cfa_block = NULL;
	row->cfa_register = (uint32_t)number;
	row->cfa_offset = offset;
}

static void restore_register(struct cfi_function *f, uint64_t number)
{
	if (number < CFI_N_REGISTERS)
		f->row.registers[number] = f->initial.registers[number];
}

/* DW_CFA_remember_state and DW_CFA_restore_state. */
static void save_or_restore(struct cfi_function *f, struct dwarf_bytes *program, bool recall)
{
	if (recall ? f->n_saved == 0 : f->n_saved == CFI_STATES_MAX)
		program->is_bad = true;
	else if (recall)
		f->row = f->remembered[--f->n_saved];
	else
		f->remembered[f->n_saved++] = f->row;
}

/* Instructions that set a register's location; false: another instruction. DWARF 5 table 7.29. */
static bool run_register_instruction(struct cfi_function *f, struct dwarf_bytes *p, uint8_t op)
{
	struct cfi_row *row = &f->row;
	int64_t factor = f->description.data_factor;
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
		restore_register(f, number);
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

static void run_other_instruction(struct cfi_function *f, struct dwarf_bytes *p, uint8_t op)
{
	struct cfi_row *row = &f->row;
	uint64_t number;

	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x01: /* set_loc */
		f->location = torsh_dwarf_pointer(p, f->description.encoding);
		break;
	case 0x02: /* advance_loc1, 2, 4 */
		f->location += torsh_dwarf_unsigned(p, 1) * f->description.code_factor;
		break;
	case 0x03:
		f->location += torsh_dwarf_unsigned(p, 2) * f->description.code_factor;
		break;
	case 0x04:
		f->location += torsh_dwarf_unsigned(p, 4) * f->description.code_factor;
		break;
	case 0x0a:
	case 0x0b:
		save_or_restore(f, p, op == 0x0b);
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
		set_cfa(row, number,
			scale((uint64_t)torsh_dwarf_sleb(p), f->description.data_factor));
		break;
	case 0x13: /* def_cfa_offset_sf */
		row->cfa_offset = scale((uint64_t)torsh_dwarf_sleb(p), f->description.data_factor);
		break;
	case 0x2e: /* GNU_args_size */
		torsh_dwarf_uleb(p);
		break;
	default:
		p->is_bad |= !torsh_cfi_is_ignored(op);
	}
}

/* Run the program at *p up to the row that holds after pc. */
static int run_program(struct cfi_function *f, struct dwarf_bytes *p, uintptr_t pc)
{
	while (f->location <= pc && p->at < p->end && !p->is_bad) {
		uint8_t op = *p->at++;

		switch (op >> 6) {
		case 1: /* advance_loc */
			f->location += (op & 0x3f) * f->description.code_factor;
			break;
		case 2: /* offset */
			set_register(&f->row, op & 0x3f, CFI_AT_CFA,
				     scale(torsh_dwarf_uleb(p), f->description.data_factor));
			break;
		case 3: /* restore */
			restore_register(f, op & 0x3f);
			break;
		default:
			if (!run_register_instruction(f, p, op))
				run_other_instruction(f, p, op);
		}
	}
	return p->is_bad ? -EINVAL : 0;
}

/* Go back to the start of the function. */
static int rewind_function(struct cfi_function *f)
{
	struct dwarf_bytes p = f->description.cie_program;
	int err;

	memset(&f->row, 0, sizeof(f->row));
	f->row.is_signal_frame = f->description.is_signal_frame;
	/* A damaged CIE may restore registers before it defines them. */
	f->initial = f->row;
	f->n_saved = 0;
	f->location = 0;
	err = run_program(f, &p, UINTPTR_MAX);
	f->initial = f->row;
	f->last_pc = f->location = f->description.start;
	f->rest = f->description.fde_program;
	return err;
}

int torsh_cfi_open(const uint8_t *eh_frame_hdr, const struct object_memory *memory, uintptr_t pc,
		   struct cfi_function *f)
{
	int err = torsh_frame_description_find(eh_frame_hdr, memory, pc, &f->description);

	return err ? err : rewind_function(f);
}

int torsh_cfi_read(struct cfi_function *f, uintptr_t pc)
{
	int err = pc < f->last_pc ? rewind_function(f) : 0;

	f->last_pc = pc;
	return err ? err : run_program(f, &f->rest, pc);
}

bool torsh_cfi_begins(const uint8_t *eh_frame_hdr, const struct object_memory *memory, uintptr_t pc)
{
	struct frame_description d;

	return !torsh_frame_description_find(eh_frame_hdr, memory, pc, &d) && d.start == pc;
}
