/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The readers of call frame information and of DWARF expressions, over an untrusted object: two
 * bytes select the instruction, as an offset from the header that follows (.eh_frame_hdr, then
 * .eh_frame).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/dwarf/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* A block lies in the object, and what it computes is of no matter. */
static void run_block(const struct object_memory *memory, const uint8_t *block)
{
	static uintptr_t registers[CFI_N_REGISTERS];
	uintptr_t known_page = 0, initial = 8, values[EXPRESSION_VALUES], result;

	if (!torsh_object_readable(memory, (uintptr_t)block))
		abort();
	torsh_expression_run(block, registers, &initial, &known_page, values, &result);
}

static void run_blocks(const struct object_memory *memory, const struct cfi_row *row)
{
	if (row->cfa_block)
		run_block(memory, row->cfa_block);
	for (int i = 0; i < CFI_N_REGISTERS; i++)
		if (row->registers[i].location == CFI_AT_EXPRESSION ||
		    row->registers[i].location == CFI_IS_EXPRESSION)
			run_block(memory, (const uint8_t *)row->registers[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct cfi_function function, other;
	struct object_memory memory = {.n = 1};
	uintptr_t pc;
	int err;

	if (n_bytes < 2)
		return 0;
	memory.spans[0].start = (uintptr_t)bytes + 2;
	memory.spans[0].end = (uintptr_t)bytes + n_bytes;
	pc = (uintptr_t)bytes + 2 + (uintptr_t)(int16_t)(bytes[0] | bytes[1] << 8);
	if (torsh_cfi_open(bytes + 2, &memory, pc, &function))
		return 0;
	if (!torsh_cfi_read(&function, pc))
		run_blocks(&memory, &function.row);

	/* A later row, read onwards, is the one that is read from the start. */
	pc += bytes[0];
	if (pc >= function.description.end || torsh_cfi_open(bytes + 2, &memory, pc, &other) ||
	    other.description.fde != function.description.fde)
		return 0;
	err = torsh_cfi_read(&function, pc);
	if (err != torsh_cfi_read(&other, pc) ||
	    (!err && memcmp(&function.row, &other.row, sizeof(other.row))))
		abort();
	return 0;
}
