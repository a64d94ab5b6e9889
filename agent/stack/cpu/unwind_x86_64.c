/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules and frames that only x86-64 has. */
#include "agent/stack/cpu/unwind_cpu.h"

#include <stdbool.h>
#include <string.h>

#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/dwarf/dwarf_bytes.h"
#include "agent/stack/step.h"
#include "agent/stack/unwind_rule.h"

/* Of instructions. */
enum {
	CALL_RELATIVE = 0xe8,
	CALL_RELATIVE_BYTES = 5,
	CALL_INDIRECT = 0xff,
	CALL_INDIRECT_FIELD = 2,
};

enum { OP_DEREF = 0x06, OP_LIT0 = 0x30, OP_BREG_RBP = 0x76 };

/* A call is near and relative, or through a register or memory. */
bool torsh_unwind_follows_call(uintptr_t ip)
{
	const uint8_t *at = (const uint8_t *)ip;

	for (int n = 2; n <= (int)UNWIND_LONGEST_CALL; n++)
		if (at[-n] == CALL_INDIRECT && (at[1 - n] >> 3 & 7) == CALL_INDIRECT_FIELD)
			return true;
	return at[-CALL_RELATIVE_BYTES] == CALL_RELATIVE;
}

/* A rule of a kind with both offsets, or RULE_BAD if they don't fit. */
static uint64_t pack(enum rule_kind kind, bool restores_bp, intptr_t bp_where, intptr_t offset)
{
	intptr_t where = bp_where / 8, cfa = offset / 8;

	if (bp_where % 8 || offset % 8 || where < -2048 || where > 2047 || cfa < -(1 << 23) ||
	    cfa >= 1 << 23)
		return RULE_BAD;
	return (uint64_t)kind | (restores_bp ? RULE_RESTORES_BP : 0) |
	       ((uint64_t)where & 0xfff) << 4 | ((uint64_t)cfa & 0xffffff) << 16;
}

/*
 * The offset of a block that is "rbp + offset", followed by n_more operations equal to more; false:
 * it isn't.
 */
static bool is_rbp_plus(const uint8_t *block, const uint8_t *more, uint64_t n_more,
			intptr_t *offset)
{
	struct dwarf_bytes bytes = {.at = block, .end = block + 10};
	uint64_t length = torsh_dwarf_uleb(&bytes);

	bytes.end = bytes.at + length;
	if (torsh_dwarf_unsigned(&bytes, 1) != OP_BREG_RBP)
		return false;
	*offset = torsh_dwarf_sleb(&bytes);
	return !bytes.is_bad && (uint64_t)(bytes.end - bytes.at) == n_more &&
	       memcmp(bytes.at, more, n_more) == 0;
}

/*
 * The expression that linkers write for procedure linkage tables: rsp + 8, and 8 more once the
 * entry has pushed its number, when the offset in its 16 bytes has reached a limit.
 */
static bool is_plt(const uint8_t *block, uintptr_t pc, intptr_t *offset)
{
	/* breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus */
	static const uint8_t head[] = {11, 0x77, 8, 0x80, 0, 0x3f, 0x1a},
			     suffix[] = {0x2a, 0x33, 0x24, 0x22};
	uint8_t limit;

	/* The length comes first: shorter blocks end before the compared bytes. */
	if (*block != *head || memcmp(block, head, sizeof(head)))
		return false;
	limit = block[sizeof(head)] - OP_LIT0;
	if (limit > 15 || memcmp(block + sizeof(head) + 1, suffix, sizeof(suffix)))
		return false;
	*offset = (pc & 15) >= limit ? 16 : 8;
	return true;
}

uint64_t torsh_unwind_pack(const struct cfi_row *row, uintptr_t ip, bool is_exact)
{
	const struct cfi_where *rip = &row->registers[CFI_RIP], *rbp = &row->registers[CFI_RBP];
	const uint8_t deref = OP_DEREF;
	bool saves_bp = rbp->location == CFI_AT_CFA;
	intptr_t offset, where = saves_bp ? rbp->value : 0;

	(void)is_exact;
	if (rip->location == CFI_UNDEFINED)
		return RULE_STOP;
	if (rip->location != CFI_AT_CFA || rip->value != -8 ||
	    row->registers[CFI_RSP].location != CFI_SAME || row->is_signal_frame)
		return RULE_BAD;

	if (row->cfa_block && is_rbp_plus(row->cfa_block, &deref, 1, &offset)) {
		if (rbp->location == CFI_SAME)
			return pack(RULE_OWN, false, 0, offset);
		if (rbp->location != CFI_AT_EXPRESSION ||
		    !is_rbp_plus((const uint8_t *)rbp->value, &deref, 0, &where))
			return RULE_BAD;
		return pack(RULE_OWN, true, where, offset);
	}
	if (!saves_bp && rbp->location != CFI_SAME && rbp->location != CFI_UNDEFINED)
		return RULE_BAD;
	if (row->cfa_block)
		return is_plt(row->cfa_block, ip, &offset) ? pack(RULE_SP, saves_bp, where, offset)
							   : RULE_BAD;
	if (row->cfa_register == CFI_RSP && row->cfa_offset >= 8)
		return pack(RULE_SP, saves_bp, where, row->cfa_offset);
	if (row->cfa_register == CFI_RBP)
		return pack(RULE_FP, saves_bp, where, row->cfa_offset);
	return RULE_BAD;
}

int torsh_unwind_step_own(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa;

	if (!torsh_step_read(s, f->sp, f->bp + (uintptr_t)torsh_unwind_rule_offset(*rule), &cfa,
			     rule) ||
	    cfa <= f->sp || cfa - f->sp > STEP_FARTHEST_CFA) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	return torsh_step_to(s, f, rule, cfa, f->bp + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
}

uint32_t torsh_unwind_checks_own(const struct step_frame *f, const struct step_frame *outer,
				 bool is_bp_used, uint64_t rule, struct check *checks)
{
	uint32_t n = 0;

	checks[n++] = (struct check){.slot = outer->sp - 8, .value = outer->tagged_ip};
	if (is_bp_used && rule & RULE_RESTORES_BP)
		checks[n++] =
			(struct check){.slot = f->bp + (uintptr_t)torsh_unwind_rule_bp_where(rule),
				       .value = outer->bp};
	checks[n++] = (struct check){.slot = f->bp + (uintptr_t)torsh_unwind_rule_offset(rule),
				     .value = outer->sp};
	return n;
}
