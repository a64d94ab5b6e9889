/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packs call frame information into an unwind rule. */
#include "agent/stack/unwind_rule.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_watch.h"
#include "agent/stack/dwarf/dwarf_bytes.h"
#include "agent/stack/recent_functions.h"
#include "agent/stack/unwind_rules.h"
#include "agent/wire/channel.h"

/* some rules belong to code outside of any object: a new object may be loaded in its place */
static _Atomic bool has_orphans;

/* Of instructions. */
enum {
	CALL_RELATIVE = 0xe8,
	CALL_RELATIVE_BYTES = 5,
	CALL_INDIRECT = 0xff,
	CALL_INDIRECT_FIELD = 2,
	LONGEST_CALL = 7,
};

enum { OP_DEREF = 0x06, OP_LIT0 = 0x30, OP_BREG_RBP = 0x76 };

/*
 * mov $SYS_rt_sigreturn,%rax; syscall: the return address in the kernel's signal frame, with any C
 * library.
 */
static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

bool torsh_unwind_rule_is_signal_return(uintptr_t ip, const struct object_memory *memory)
{
	uintptr_t last = ip + sizeof(signal_return) - 1;
	bool is_there = memory && torsh_object_readable(memory, ip) >= sizeof(signal_return);

	if (!is_there && !(torsh_probe(ip) && torsh_probe(last - 7)))
		return false;
	return memcmp((const void *)ip, signal_return, sizeof(signal_return)) == 0;
}

/* Whether the bytes before ip are a call: near and relative, or through a register or memory. */
static bool follows_call(uintptr_t ip)
{
	const uint8_t *at = (const uint8_t *)ip;

	for (int n = 2; n <= LONGEST_CALL; n++)
		if (at[-n] == CALL_INDIRECT && (at[1 - n] >> 3 & 7) == CALL_INDIRECT_FIELD)
			return true;
	return at[-CALL_RELATIVE_BYTES] == CALL_RELATIVE;
}

bool torsh_unwind_rule_is_origin(uintptr_t ip, const struct module *module)
{
	return torsh_object_readable(&module->memory, ip - LONGEST_CALL) >= LONGEST_CALL &&
	       !follows_call(ip) && torsh_cfi_begins(module->eh_frame_hdr, &module->memory, ip);
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

/* Not inlined: it is on the stack only after the row was read. */
static __attribute__((noinline)) uint64_t compile_row(const struct cfi_row *row, uintptr_t ip)
{
	const struct cfi_where *rip = &row->registers[CFI_RIP], *rbp = &row->registers[CFI_RBP];
	const uint8_t deref = OP_DEREF;
	bool saves_bp = rbp->location == CFI_AT_CFA;
	intptr_t offset, where = saves_bp ? rbp->value : 0;

	if (rip->location == CFI_UNDEFINED)
		return RULE_STOP;
	if (rip->location != CFI_AT_CFA || rip->value != -8 ||
	    row->registers[CFI_RSP].location != CFI_SAME || row->is_signal_frame)
		return RULE_BAD;

	if (row->cfa_block && is_rbp_plus(row->cfa_block, &deref, 1, &offset)) {
		if (rbp->location == CFI_SAME)
			return pack(RULE_DEREF_RBP, false, 0, offset);
		if (rbp->location != CFI_AT_EXPRESSION ||
		    !is_rbp_plus((const uint8_t *)rbp->value, &deref, 0, &where))
			return RULE_BAD;
		return pack(RULE_DEREF_RBP, true, where, offset);
	}
	if (!saves_bp && rbp->location != CFI_SAME && rbp->location != CFI_UNDEFINED)
		return RULE_BAD;
	if (row->cfa_block)
		return is_plt(row->cfa_block, ip, &offset) ? pack(RULE_RSP, saves_bp, where, offset)
							   : RULE_BAD;
	if (row->cfa_register == CFI_RSP && row->cfa_offset >= 8)
		return pack(RULE_RSP, saves_bp, where, row->cfa_offset);
	if (row->cfa_register == CFI_RBP)
		return pack(RULE_RBP, saves_bp, where, row->cfa_offset);
	return RULE_BAD;
}

static uint64_t compile_orphan(uintptr_t ip, uintptr_t pc)
{
	atomic_store_explicit(&has_orphans, true, memory_order_relaxed);
	if (torsh_unwind_rule_is_signal_return(ip, NULL))
		return RULE_SIGNAL;
	return torsh_probe(pc & ~(uintptr_t)7) ? RULE_NO_INFO : RULE_NOWHERE;
}

static uint64_t compile_address(uintptr_t ip, bool is_exact, struct recent_functions *recent,
				const struct module **module)
{
	uintptr_t pc = is_exact ? ip : ip - 1;
	struct looked_up found = torsh_recent_functions_look_up(recent, pc);

	if (found.answer == MODULE_NONE)
		return compile_orphan(ip, pc);
	*module = found.module;
	if (found.answer == MODULE_NEW && atomic_load_explicit(&has_orphans, memory_order_relaxed))
		torsh_modules_forget(found.module->start, found.module->end);
	if (torsh_unwind_rule_is_signal_return(ip, &found.module->memory))
		return RULE_SIGNAL;
	if (found.err == -ENOENT)
		return !is_exact && torsh_unwind_rule_is_origin(ip, found.module) ? RULE_STOP
										  : RULE_NO_INFO;
	return found.err ? RULE_BAD : compile_row(found.row, ip);
}

uint64_t torsh_unwind_rule_compile(uint64_t tagged_ip, struct recent_functions *recent,
				   uint32_t *flags, const struct module **module)
{
	enum ip_tag tag = torsh_ip_tag(tagged_ip);
	uint64_t rule;

	*module = NULL;
	switch (tag) {
	case IP_TAG_CUT_UNKNOWN:
		*flags = ADDRESS_CUT_UNKNOWN_CODE;
		return RULE_STOP;
	case IP_TAG_CUT_BAD:
		*flags = ADDRESS_CUT_BAD_FRAME;
		return RULE_STOP;
	case IP_TAG_CUT_DEEP:
		*flags = ADDRESS_CUT_TOO_DEEP;
		return RULE_STOP;
	default:
		rule = compile_address(torsh_untagged_ip(tagged_ip), tag == IP_TAG_INTERRUPTED,
				       recent, module);
		*flags = tag == IP_TAG_INTERRUPTED ? ADDRESS_EXACT : ADDRESS_RETURN;
		if (torsh_unwind_rule_kind(rule) == RULE_SIGNAL)
			*flags |= ADDRESS_SIGNAL_FRAME;
		if (torsh_unwind_rule_kind(rule) == RULE_NO_INFO)
			*flags |= ADDRESS_NO_UNWIND_INFO;
		return rule;
	}
}
