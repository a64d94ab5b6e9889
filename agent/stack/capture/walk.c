/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The walk: from the hook outwards, frame by frame, until the cached frames are reached. */
#include "agent/stack/capture/cached_stack.h"

#include "agent/producer/counter.h"
#include "shim/loader/unloading.h"

/*
 * Of deeper stacks this many inner frames are kept, so that they can grow and shrink for a while
 * before they are walked in full again.
 */
#define DEEP_KEPT 768u

static void append_cut(struct stack *s, uintptr_t ip, enum ip_tag variety)
{
	uint64_t tagged_ip = torsh_tagged_ip(ip, variety),
		 rule = torsh_unwind_rules_find(tagged_ip);

	s->fresh[s->n_fresh++] = (struct fresh_frame){
		.sp = NO_FRAME,
		.tagged_ip = tagged_ip,
		.rule = rule ? rule : torsh_unwind_rules_compile(tagged_ip, &s->stepper.recent),
	};
}

/* The walk reached an end of the stack, stepping from the last fresh frame to *at. */
static void finish_walk(struct stack *s, enum step_result result, const struct step_frame *at)
{
	s->is_too_deep = false;
	s->end = (struct step_frame){.sp = result == STEP_END_READ ? at->sp : NO_FRAME};
	if (result == STEP_END || result == STEP_END_READ)
		return;
	torsh_count(COUNTER_captures_cut);
	if (result == STEP_NOWHERE && s->n_fresh > 1)
		s->fresh[--s->n_fresh - 1].rule |= RULE_UNPROVABLE;
	append_cut(s, torsh_untagged_ip(s->fresh[s->n_fresh - 1].tagged_ip),
		   result == STEP_CUT_UNKNOWN ? IP_TAG_CUT_UNKNOWN : IP_TAG_CUT_BAD);
}

static void finish_deep_walk(struct stack *s)
{
	s->is_too_deep = true;
	s->end = (struct step_frame){.sp = NO_FRAME};
	s->n_fresh = DEEP_KEPT;
	s->fresh[DEEP_KEPT - 1].rule |= RULE_LAST;
	append_cut(s, 0, IP_TAG_CUT_DEEP);
}

/*
 * The same for all other kinds, from the last fresh frame to s->at; false: the walk is over. Not
 * inlined: it is rare.
 */
static __attribute__((noinline)) bool step_otherwise(struct stack *s, uint32_t n_fresh)
{
	enum step_result result;

	s->n_fresh = n_fresh;
	s->at = fresh_at(s, n_fresh - 1);
	result = torsh_step(&s->stepper, &s->at, &s->fresh[n_fresh - 1].rule);
	if (result != STEP_NEXT)
		finish_walk(s, result, &s->at);
	return result == STEP_NEXT;
}

/*
 * Compile the rule of an address that has none. An address reached by a guess may be in code to
 * which this thread does not return.
 */
static __attribute__((noinline)) uint64_t compile_rule(struct stack *s, uint64_t tagged_ip)
{
	uint64_t rule;

	if (!s->stepper.is_guessing)
		return torsh_unwind_rules_compile(tagged_ip, &s->stepper.recent);
	if (!torsh_unloading_forbid())
		return RULE_NOWHERE;
	rule = torsh_unwind_rules_compile(tagged_ip, &s->stepper.recent);
	torsh_unloading_allow();
	return rule;
}

uint32_t torsh_stack_walk(struct stack *s, struct step_frame at)
{
	uint32_t n_left = s->depth; /* cached frames that may still be reached */

	s->n_fresh = 0;
	for (uint32_t n = 0;;) {
		uint64_t rule;

		while (n_left && s->frames[n_left - 1].sp < at.sp)
			n_left--;
		if (n_left && matches_cached(s, &at, &n_left)) {
			s->n_fresh = n;
			return n_left;
		}
		rule = find_rule(s, at.tagged_ip);
		if (!is_likely(rule)) {
			rule = compile_rule(s, at.tagged_ip);
			if (atomic_load_explicit(&torsh_unwind_rules_generation,
						 memory_order_acquire) != s->generation)
				return WALK_AGAIN;
		}
		if (!is_likely(n < STACK_MAX_FRAMES - 1)) {
			finish_deep_walk(s);
			return 0;
		}
		s->fresh[n++] = (struct fresh_frame){
			.sp = at.sp, .tagged_ip = at.tagged_ip, .bp = at.bp, .rule = rule};
		if (!is_likely(!s->stepper.is_guessing && step_simply(&s->stepper, &at, rule))) {
			if (!step_otherwise(s, n))
				return 0;
			at = s->at;
		}
	}
}
