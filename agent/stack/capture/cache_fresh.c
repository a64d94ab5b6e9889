/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fresh frames become cached ones, with the slots that prove them. */
#include "agent/stack/capture/cached_stack.h"

#include "agent/stack/cpu/unwind_cpu.h"

static inline void add_check(struct stack *s, uint32_t *at, uintptr_t slot, uintptr_t value)
{
	s->list[(*at)++] = (struct check){.slot = slot, .value = value};
}

/* ip: the return address that the slot has led to. */
static inline void add_ip_check(struct stack *s, uint32_t *at, uintptr_t slot, uintptr_t ip)
{
	add_check(s, at, slot, torsh_unwind_saved_ip(slot, ip));
}

/*
 * Add entries for the slots that the step from f to outer read by an uncommon rule; the first read
 * come last.
 */
static __attribute__((noinline)) uint32_t add_other_checks(struct stack *s, struct step_frame f,
							   struct step_frame outer, bool is_bp_used,
							   uint64_t rule, uint32_t at)
{
	uintptr_t ip = torsh_untagged_ip(outer.tagged_ip);
	bool restores_bp = is_bp_used && rule & RULE_RESTORES_BP;

	if (rule & RULE_UNPROVABLE) {
		add_check(s, &at, (uintptr_t)&s->never, 1);
		return at;
	}
	if (rule & RULE_LAST || outer.sp == NO_FRAME)
		return at;
	switch (torsh_unwind_rule_kind(rule)) {
	case RULE_OWN:
		at += torsh_unwind_checks_own(&f, &outer, is_bp_used, rule, &s->list[at]);
		break;
	case RULE_SIGNAL:
		add_check(s, &at, f.sp + SIGNAL_IP, ip);
		add_check(s, &at, f.sp + SIGNAL_SP, outer.sp);
		if (is_bp_used)
			add_check(s, &at, f.sp + SIGNAL_FP, outer.bp);
		break;
	case RULE_NO_INFO:
		add_ip_check(s, &at, outer.sp - 8, ip);
		if (is_bp_used)
			add_check(s, &at, outer.sp - 16, outer.bp);
		break;
	default:
		add_ip_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_ip_where(rule), ip);
		if (restores_bp)
			add_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_bp_where(rule),
				  outer.bp);
	}
	return at;
}

static inline uint32_t add_checks(struct stack *s, struct step_frame f, struct step_frame outer,
				  bool is_bp_used, uint64_t rule, uint32_t at)
{
	if (!is_likely(is_simple(rule)))
		return add_other_checks(s, f, outer, is_bp_used, rule, at);
	/* A tagged return address equals the address. */
	add_ip_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_ip_where(rule),
		     outer.tagged_ip);
	if (is_bp_used && rule & RULE_RESTORES_BP)
		add_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_bp_where(rule), outer.bp);
	return at;
}

static inline bool is_bp_needed(bool outer_needs_bp, uint64_t rule)
{
	if (torsh_unwind_rule_kind(rule) == RULE_SP)
		return outer_needs_bp && !(rule & RULE_RESTORES_BP);
	return torsh_unwind_rule_kind(rule) != RULE_SIGNAL &&
	       torsh_unwind_rule_kind(rule) != RULE_STOP;
}

bool torsh_stack_cache_fresh(struct stack *s, uint32_t n_kept)
{
	struct stack_frame inner = n_kept ? s->frames[n_kept - 1] : (struct stack_frame){0};
	struct step_frame outer = n_kept ? cached_at(s, n_kept - 1) : s->end;
	bool are_simple = n_kept && !s->stepper.is_guessing;
	uint32_t depth = n_kept;

	for (uint32_t i = s->n_fresh; i-- > 0; depth++) {
		uint64_t rule = s->fresh[i].rule;
		struct step_frame f = fresh_at(s, i);

		are_simple = are_simple && is_simple(rule);
		inner.sp = f.sp;
		inner.tagged_ip = f.tagged_ip;
		inner.bp = f.bp;
		inner.n_checks = add_checks(s, f, outer, inner.needs_bp, rule, inner.n_checks);
		inner.needs_bp = is_bp_needed(inner.needs_bp, rule);
		s->frames[depth] = inner;
		s->ids[depth] = torsh_unwind_rule_id(rule);
		outer = f;
	}
	s->depth = depth;
	s->top = inner;
	return are_simple && s->n_fresh;
}
