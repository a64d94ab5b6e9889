/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ways to leave a frame. */
#include "agent/stack/step.h"

#include "agent/modules/memory_probe.h"
#include "agent/producer/counter.h"
#include "agent/stack/cpu/unwind_cpu.h"
#include "agent/stack/unwind_rule.h"

static enum step_result step_by_bp(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa = f->bp + (uintptr_t)torsh_unwind_rule_offset(*rule);

	/*
	 * This is another stack, if it is valid. Return addresses outside of it would be read
	 * without a probe next time.
	 */
	if (cfa <= f->sp || cfa - f->sp > STEP_FARTHEST_CFA)
		*rule |= RULE_UNPROVABLE;
	s->is_sp_guessed = false;
	return torsh_step_to(s, f, rule, cfa, cfa + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
}

static enum step_result step_by_ucontext(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t sp, bp, ip;

	if (s->is_sp_guessed) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_UNKNOWN;
	}
	if (!torsh_step_read(s, f->sp, f->sp + SIGNAL_SP, &sp, rule) ||
	    !torsh_step_read(s, f->sp, f->sp + SIGNAL_FP, &bp, rule) ||
	    !torsh_step_read(s, f->sp, f->sp + SIGNAL_IP, &ip, rule) ||
	    !torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	s->signal_sp = f->sp;
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
	if (!torsh_unwind_is_chain(f->sp, bp))
		return STEP_CUT_UNKNOWN;
	if (!torsh_step_read(s, f->sp, bp, &outer_bp, rule) ||
	    !torsh_step_read(s, f->sp, bp + 8, &ip, rule)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_UNKNOWN;
	}
	ip = torsh_cpu_code_address(ip);
	if (!torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_UNKNOWN;
	}
	s->is_sp_guessed = !UNWIND_CHAIN_HAS_SP;
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
	while (c->registers[CFI_SP] != f->sp ||
	       c->registers[CFI_IP] != torsh_untagged_ip(f->tagged_ip)) {
		if (torsh_unwind_step(c) <= 0)
			return false;
	}
	return true;
}

/* No slot of the stack proves the value of other registers. */
static enum step_result step_with_all_registers(struct stepper *s, struct step_frame *f,
						uint64_t *rule)
{
	const uintptr_t *registers = s->cursor.registers;
	int result;

	*rule |= RULE_UNPROVABLE;
	if (!reach(s, f))
		return STEP_CUT_BAD;
	result = torsh_unwind_step(&s->cursor);
	if (result <= 0 || !torsh_unwind_rule_can_be_ip(registers[CFI_IP]))
		return result ? STEP_CUT_BAD : STEP_END;
	s->signal_sp = 0;
	s->is_sp_guessed = s->cursor.is_sp_guessed;
	*f = (struct step_frame){
		.sp = registers[CFI_SP],
		.tagged_ip = torsh_tagged_ip(registers[CFI_IP],
					     s->cursor.is_exact ? IP_TAG_INTERRUPTED : IP_TAG_CALL),
		.bp = registers[CFI_FP],
	};
	return STEP_NEXT;
}

/*
 * Where sp is unknown, the frame pointer leads to the frame's record, if it has one, and from there
 * to its CFA. Nothing that is re-read proves that sp was unknown.
 */
static enum step_result step_by_record(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa = f->bp - (uintptr_t)torsh_unwind_rule_bp_where(*rule);
	enum step_result result = STEP_CUT_UNKNOWN;

	if (!(*rule & RULE_RESTORES_BP) || !torsh_unwind_is_chain(f->sp, f->bp))
		result = step_by_chain(s, f, rule);
	else if (cfa > f->sp && cfa - f->sp <= STEP_FARTHEST_CFA) {
		s->is_sp_guessed = false;
		result = torsh_step_to(s, f, rule, cfa, f->bp);
	}
	*rule |= RULE_UNPROVABLE;
	return result;
}

enum step_result torsh_step(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t cfa;

	switch (torsh_unwind_rule_kind(*rule)) {
	case RULE_SP:
		if (!UNWIND_CHAIN_HAS_SP && s->is_sp_guessed)
			return step_by_record(s, f, rule);
		cfa = f->sp + (uintptr_t)torsh_unwind_rule_offset(*rule);
		return torsh_step_to(s, f, rule, cfa,
				     cfa + (uintptr_t)torsh_unwind_rule_bp_where(*rule));
	case RULE_FP:
		return step_by_bp(s, f, rule);
	case RULE_OWN:
		return (enum step_result)torsh_unwind_step_own(s, f, rule);
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
