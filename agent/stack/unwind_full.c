/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps with all registers. */
#include "agent/stack/unwind_full.h"

#include <errno.h>
#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/stack/cpu/unwind_cpu.h"
#include "agent/stack/unwind_rule.h"
#include "shim/loader/unloading.h"

/* Frames between here and the hook; frames of signal handlers in between are not walked. */
#define MAX_OWN_FRAMES 64

static int run(struct unwind_cursor *c, const uint8_t *block, const uintptr_t *initial,
	       uintptr_t *result)
{
	return torsh_expression_run(block, c->registers, initial, &c->known_page, c->values,
				    result);
}

static int find_cfa(struct unwind_cursor *c, const struct cfi_row *row, uintptr_t *cfa)
{
	if (row->cfa_block)
		return run(c, row->cfa_block, NULL, cfa);
	if (row->cfa_register >= CFI_N_REGISTERS)
		return -EINVAL;
	if (c->is_sp_guessed && row->cfa_register == CFI_SP) {
		/* The frame pointer leads to the frame's record, if it has one. */
		if (row->registers[CFI_FP].location != CFI_AT_CFA)
			return -EINVAL;
		*cfa = c->registers[CFI_FP] - (uintptr_t)row->registers[CFI_FP].value;
		return 0;
	}
	*cfa = c->registers[row->cfa_register] + (uintptr_t)row->cfa_offset;
	return 0;
}

/* The caller's value of register number. */
static int find_register(struct unwind_cursor *c, const struct cfi_row *row, uintptr_t cfa,
			 uint32_t number, uintptr_t *value)
{
	const struct cfi_where *where = &row->registers[number];
	uintptr_t address;
	int err;

	switch (where->location) {
	case CFI_SAME:
	case CFI_UNDEFINED:
		*value = number == CFI_SP ? cfa : c->registers[number];
		return 0;
	case CFI_AT_CFA:
		address = cfa + (uintptr_t)where->value;
		break;
	case CFI_IS_CFA:
		*value = cfa + (uintptr_t)where->value;
		return 0;
	case CFI_IN_REGISTER:
		if ((uintptr_t)where->value >= CFI_N_REGISTERS)
			return -EINVAL;
		*value = c->registers[where->value];
		return 0;
	case CFI_AT_EXPRESSION:
		err = run(c, (const uint8_t *)where->value, &cfa, &address);
		if (err)
			return err;
		break;
	case CFI_IS_EXPRESSION:
		return run(c, (const uint8_t *)where->value, &cfa, value);
	default:
		return -EINVAL;
	}
	return torsh_probe_read(address, &c->known_page, value) ? 0 : -EFAULT;
}

/* Not inlined: it isn't on the stack while the row is looked up. */
static __attribute__((noinline)) int step_by_row(struct unwind_cursor *c)
{
	const struct cfi_row *row = c->row;
	uintptr_t *next = c->next, cfa;
	int err;

	if (row->registers[CFI_RETURN_ADDRESS].location == CFI_UNDEFINED)
		return 0;
	err = find_cfa(c, row, &cfa);
	for (uint32_t i = 0; !err && i < CFI_N_REGISTERS; i++)
		err = find_register(c, row, cfa, i, &next[i]);
	if (err)
		return err;
	next[CFI_IP] = torsh_cpu_code_address(next[CFI_RETURN_ADDRESS]);
	/* Every step pops at least a return address; otherwise frames would repeat without end. */
	if (next[CFI_SP] == c->registers[CFI_SP] && next[CFI_IP] == c->registers[CFI_IP])
		return -EINVAL;
	c->is_exact = row->is_signal_frame;
	c->is_sp_guessed = false;
	memcpy(c->registers, next, sizeof(c->next));
	return next[CFI_IP] ? 1 : 0;
}

static int step_by_chain(struct unwind_cursor *c)
{
	uintptr_t bp = c->registers[CFI_FP], return_address, outer_bp;

	c->is_guessing = true;
	if (!torsh_unwind_is_chain(c->registers[CFI_SP], bp) ||
	    !torsh_probe_read(bp, &c->known_page, &outer_bp) ||
	    !torsh_probe_read(bp + 8, &c->known_page, &return_address))
		return -ENOENT;
	return_address = torsh_cpu_code_address(return_address);
	c->registers[CFI_SP] = bp + 16;
	c->registers[CFI_FP] = outer_bp;
	c->registers[CFI_IP] = return_address;
	c->is_sp_guessed = !UNWIND_CHAIN_HAS_SP;
	c->is_exact = false;
	return return_address ? 1 : 0;
}

/* Step out of the frame that returns from a signal. */
static int step_by_ucontext(struct unwind_cursor *c)
{
	static const uint8_t order[] = SIGNAL_ORDER;
	uintptr_t saved = c->registers[CFI_SP] + SIGNAL_REGISTERS;

	if (c->is_sp_guessed)
		return -EINVAL;
	for (uint32_t i = 0; i < sizeof(order); i++) {
		if (!torsh_probe_read(saved + 8 * i, &c->known_page, &c->registers[order[i]]))
			return -EFAULT;
	}
	c->is_exact = true;
	return c->registers[CFI_IP] ? 1 : 0;
}

enum way { WAY_ROW, WAY_CHAIN, WAY_UCONTEXT, WAY_NONE /* there is no caller */ };

/*
 * Returns an enum way or -errno. Not inlined: the module isn't on the stack, which may be a small
 * one, during the step.
 */
static __attribute__((noinline)) int find_way(struct unwind_cursor *c)
{
	uintptr_t pc = c->registers[CFI_IP] - !c->is_exact;
	uintptr_t ip = c->registers[CFI_IP];
	struct looked_up found = torsh_recent_functions_look_up(c->recent, pc);
	bool is_known = found.answer != MODULE_NONE;

	if (torsh_unwind_rule_is_signal_return(ip, is_known ? &found.module->memory : NULL))
		return WAY_UCONTEXT;
	if (!is_known)
		return WAY_CHAIN;
	c->row = found.row;
	if (found.err == -ENOENT)
		return !c->is_exact && torsh_unwind_rule_is_origin(ip, found.module) ? WAY_NONE
										     : WAY_CHAIN;
	return found.err ? found.err : WAY_ROW;
}

static int step(struct unwind_cursor *c)
{
	int way = find_way(c);

	switch (way) {
	case WAY_ROW:
		return step_by_row(c);
	case WAY_CHAIN:
		return step_by_chain(c);
	case WAY_UCONTEXT:
		return step_by_ucontext(c);
	case WAY_NONE:
		return 0;
	default:
		return way;
	}
}

int torsh_unwind_step(struct unwind_cursor *c)
{
	int result;

	if (!c->is_guessing)
		return step(c);
	if (!torsh_unloading_forbid())
		return -EAGAIN;
	result = step(c);
	torsh_unloading_allow();
	return result;
}

/*
 * Not inlined: the registers stored here belong to a frame that lives until the cursor has left it.
 */
__attribute__((noinline)) int torsh_unwind_reach(struct unwind_cursor *c,
						 struct recent_functions *recent, uintptr_t sp)
{
	memset(c, 0, sizeof(*c));
	c->recent = recent;
	c->is_exact = true;
	torsh_cpu_registers(c->registers);
	for (int i = 0; i < MAX_OWN_FRAMES; i++) {
		int err = torsh_unwind_step(c);

		if (err <= 0)
			return err ? err : -ENOENT;
		if (c->registers[CFI_SP] == sp)
			return 0;
	}
	return -ENOENT;
}
