/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Call frame information: which registers of the caller are saved where, at one location in the
 * code, read from the .eh_frame of a loaded object (DWARF 5 section 6.4, LSB 5 section 10.6). No
 * lock, no allocation, no system call.
 */
#ifndef TORSH_AGENT_STACK_DWARF_CFI_H
#define TORSH_AGENT_STACK_DWARF_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/loaded_object.h"
#include "agent/stack/cpu/unwind_cpu.h"
#include "agent/stack/dwarf/frame_description.h"

enum cfi_location {
	CFI_SAME, /* not touched */
	CFI_UNDEFINED, /* lost; for the return address: there is no caller */
	CFI_AT_CFA, /* saved at CFA + value */
	CFI_IS_CFA, /* is CFA + value */
	CFI_IN_REGISTER, /* is in register number value */
	CFI_AT_EXPRESSION, /* saved at the address that the block at value computes */
	CFI_IS_EXPRESSION, /* is what the block at value computes */
};

struct cfi_where {
	enum cfi_location location;
	/* an offset, a register, or the address of a block: ULEB128 length and DWARF expression */
	intptr_t value;
};

struct cfi_row {
	const uint8_t *cfa_block; /* when not NULL, its expression computes the CFA */
	uint32_t cfa_register;
	intptr_t cfa_offset;
	bool is_signal_frame;
	struct cfi_where registers[CFI_N_REGISTERS];
};

/*
 * A function that is being read. Large: it has no place on the small stacks of signal handlers and
 * coroutines. Needs no initialisation.
 */
#define CFI_STATES_MAX 8
struct cfi_function {
	struct frame_description description;
	struct dwarf_bytes rest; /* of the program */
	uintptr_t location; /* the row holds up to here */
	uintptr_t last_pc;
	uint32_t n_saved;
	struct cfi_row row, initial, remembered[CFI_STATES_MAX];
};

/*
 * Open the function at pc; eh_frame_hdr and memory are those of the object that contains pc.
 * Handles damaged data: only memory is read. Returns 0, -ENOENT if nothing describes pc, or -EINVAL
 * for unsupported data; *function is then meaningless.
 */
int torsh_cfi_open(const uint8_t *eh_frame_hdr, const struct object_memory *memory, uintptr_t pc,
		   struct cfi_function *function);

/*
 * Read the row for the instruction at pc, in the function's code, into function->row. Blocks that
 * it points to lie in the object's memory. A pc after that of the last call costs only the
 * instructions in between. Returns 0, or -EINVAL for unsupported data.
 */
int torsh_cfi_read(struct cfi_function *function, uintptr_t pc);

/* Whether the code that one FDE describes begins at pc, so that pc is the start of a function. */
bool torsh_cfi_begins(const uint8_t *eh_frame_hdr, const struct object_memory *memory,
		      uintptr_t pc);

#endif
