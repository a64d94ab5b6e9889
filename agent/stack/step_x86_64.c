/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ways to leave a frame. */
#include "agent/stack/step.h"

#include <errno.h>

#include "agent/modules/memory_probe.h"
#include "agent/producer/counter.h"
#include "agent/stack/chain.h"
#include "agent/stack/unwind_rule.h"
#include "shim/sys.h"

#define FARTHEST_CFA (UINT64_C(64) << 20)
#define LARGEST_STACK (UINT64_C(8) << 20)

/*
 * The end of the thread's stack, if it can be found: the C library keeps per-thread data there,
 * above all frames. That of the first thread is elsewhere, as on other kinds of stacks; these end
 * where their memory ends.
 */
static uintptr_t end_of_stack(uintptr_t sp)
{
	uintptr_t own = torsh_cpu_thread_pointer();

	return sp < own ? own : UINTPTR_MAX;
}

/*
 * Whether address is in the readable memory around the hook's frame; extends that upwards if
 * needed.
 */
static bool is_on_stack(struct stepper *s, uintptr_t address)
{
	if (address < s->low || address - s->low > LARGEST_STACK ||
	    address >= end_of_stack(s->hook_sp))
		return false;
	while (!torsh_step_is_readable(s, address)) {
		/* If a filter prevents the query, the memory counts as readable. */
		if (torsh_sys_compare(s->high, 0) == -EFAULT)
			return false;
		s->high += PROBE_PAGE_BYTES;
	}
	return true;
}

static bool read_word(struct stepper *s, uintptr_t sp, uintptr_t address, uintptr_t *value,
		      uint64_t *rule)
{
	bool is_near = address - sp < STEP_NEAR_BYTES;

	if (address % 8)
		return false;
	if (!is_near || !is_on_stack(s, address)) {
		if (!torsh_probe(address))
			return false;
		/*
		 * A guess led here. Next time the memory may be gone, and it would not be probed.
		 */
		if (s->is_guessing)
			*rule |= RULE_UNPROVABLE;
	}
	*value = *(const uintptr_t *)address;
	return true;
}

/* Step to the frame with its return address, and perhaps rbp, saved below cfa. */
static enum step_result step_to(struct stepper *s, struct step_frame *f, uint64_t *rule,
				uintptr_t cfa, uintptr_t bp_slot)
{
	uintptr_t ip, bp = f->bp;

	if (!read_word(s, f->sp, cfa - 8, &ip, rule) ||
	    (*rule & RULE_RESTORES_BP && !read_word(s, f->sp, bp_slot, &bp, rule)) ||
	    !torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	*f = (struct step_frame){
		.sp = cfa, .tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL), .bp = bp};
	return ip ? STEP_NEXT : STEP_END_READ;
}

static enum step_result step_by_bp(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa = f->bp + (uintptr_t)torsh_unwind_rule_offset(*rule);

	/*
	 * This is another stack, if it is valid. Return addresses outside of it would be read
	 * without a probe next time.
	 */
	if (cfa <= f->sp || cfa - f->sp > FARTHEST_CFA)
		*rule |= RULE_UNPROVABLE;
	return step_to(s, f, rule, cfa, cfa + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
}

static enum step_result step_by_deref(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa;

	if (!read_word(s, f->sp, f->bp + (uintptr_t)torsh_unwind_rule_offset(*rule), &cfa, rule) ||
	    cfa <= f->sp || cfa - f->sp > FARTHEST_CFA) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	return step_to(s, f, rule, cfa, f->bp + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
}

static enum step_result step_by_ucontext(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t sp, bp, ip;

	if (!read_word(s, f->sp, f->sp + CHAIN_GREG_RSP, &sp, rule) ||
	    !read_word(s, f->sp, f->sp + CHAIN_GREG_RBP, &bp, rule) ||
	    !read_word(s, f->sp, f->sp + CHAIN_GREG_RIP, &ip, rule) ||
	    !torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	*f = (struct step_frame){
		.sp = sp, .tagged_ip = torsh_tagged_ip(ip, IP_TAG_INTERRUPTED), .bp = bp};
	if (ip)
		return STEP_NEXT;
	f->tagged_ip = 0;
	return STEP_END_READ;
}

static enum step_result step_by_chain(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t ip, outer_bp, bp = f->bp;

	s->is_guessing = true;
	if (!torsh_chain_is_plausible(f->sp, bp))
		return STEP_CUT_UNKNOWN;
	if (!read_word(s, f->sp, bp, &outer_bp, rule) || !read_word(s, f->sp, bp + 8, &ip, rule) ||
	    !torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_UNKNOWN;
	}
	*f = (struct step_frame){
		.sp = bp + 16, .tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL), .bp = outer_bp};
	return ip ? STEP_NEXT : STEP_END_READ;
}

static bool reach(struct stepper *s, const struct step_frame *f)
{
	struct unwind_cursor *c = &s->cursor;

	if (!s->has_cursor) {
		torsh_count(COUNTER_captures_slow);
		if (torsh_unwind_reach(c, &s->recent, s->hook_sp))
			return false;
		s->has_cursor = true;
	}
	while (c->registers[CFI_RSP] != f->sp ||
	       c->registers[CFI_RIP] != torsh_untagged_ip(f->tagged_ip)) {
		if (torsh_unwind_step(c) <= 0)
			return false;
	}
	return true;
}

/* No slot of the stack proves the value of rbx or another register. */
static enum step_result step_with_all_registers(struct stepper *s, struct step_frame *f,
						uint64_t *rule)
{
	const uintptr_t *registers = s->cursor.registers;
	int result;

	*rule |= RULE_UNPROVABLE;
	if (!reach(s, f))
		return STEP_CUT_BAD;
	result = torsh_unwind_step(&s->cursor);
	if (result <= 0 || !torsh_unwind_rule_can_be_ip(registers[CFI_RIP]))
		return result ? STEP_CUT_BAD : STEP_END;
	*f = (struct step_frame){
		.sp = registers[CFI_RSP],
		.tagged_ip = torsh_tagged_ip(registers[CFI_RIP],
					     s->cursor.is_exact ? IP_TAG_INTERRUPTED : IP_TAG_CALL),
		.bp = registers[CFI_RBP],
	};
	return STEP_NEXT;
}

enum step_result torsh_step(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa;

	switch (torsh_unwind_rule_kind(*rule)) {
	case RULE_RSP:
		cfa = f->sp + (uintptr_t)torsh_unwind_rule_offset(*rule);
		return step_to(s, f, rule, cfa, cfa + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
	case RULE_RBP:
		return step_by_bp(s, f, rule);
	case RULE_DEREF_RBP:
		return step_by_deref(s, f, rule);
	case RULE_SIGNAL:
		return step_by_ucontext(s, f, rule);
	case RULE_STOP:
		return *rule == RULE_NOWHERE ? STEP_NOWHERE : STEP_END;
	case RULE_NO_INFO:
		return step_by_chain(s, f, rule);
	default:
		return step_with_all_registers(s, f, rule);
	}
}
