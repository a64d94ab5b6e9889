/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The capture on x86-64: walk out from the hook until a frame of the previous capture is met again, and prove by the
 * slots that were read then that all outside of it is as it was. See stack.h.
 *
 * Why that is exact: a step depends on nothing but the frame's address, sp, rbp where its rule or an outer one uses
 * it, and the slots it reads. When a cached frame has equal ones, its step reads the same slots; when these have equal
 * values, it leads to the same outer frame; and so on to the end.
 */
#include "agent/stack.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/arbiter.h"
#include "agent/chain.h"
#include "agent/checks.h"
#include "agent/counter.h"
#include "agent/modules.h"
#include "agent/rules.h"
#include "agent/step.h"
#include "shim/sys.h"

#define is_likely(x) __builtin_expect(!!(x), 1)

/*
 * Deeper stacks keep this many inner frames, so that they can grow and shrink for a while before they are walked in
 * full again.
 */
#define DEEP_KEPT 768u
#define DEEP_FEWEST 384u

#define NO_FRAME UINTPTR_MAX /* the sp of what isn't a frame */
#define MOST_CHECKS_PER_FRAME 3u

struct frame {
	uintptr_t sp;
	uint64_t key;
	uintptr_t bp;
	uint32_t checks; /* so many entries of the list prove everything outside of this frame */
	bool needs_bp; /* bp decides over this frame's step, or over that of one further out */
};

struct fresh_frame {
	struct step_frame at;
	uint64_t rule;
};

struct stack {
	uint32_t depth;
	uint32_t n_fresh;
	uint32_t generation; /* of the rules that the frames were found by */
	uint32_t n_unchecked; /* captures since the last one that the arbiter saw */
	bool is_anew; /* the next delta starts from nothing */
	bool is_too_deep; /* the outermost frame says so */
	uintptr_t never; /* 0, where a check expects something else */
	struct frame end; /* beyond the outermost frame; sp is NO_FRAME unless memory said that it ends there */
	struct stepper stepper;
	uint32_t ids[STACK_MAX_FRAMES + STACK_READABLE];
	struct frame frames[STACK_MAX_FRAMES]; /* outermost first */
	struct fresh_frame fresh[STACK_MAX_FRAMES]; /* innermost first */
	struct check_group checks[STACK_MAX_FRAMES * MOST_CHECKS_PER_FRAME]; /* each on a page of its own, at worst */
	uintptr_t ours[STACK_MAX_FRAMES], arbiters[ARBITER_MAX_FRAMES];
};

static _Atomic uint32_t check_every;

void torsh_stack_start(void)
{
	torsh_rules_start(true);
}

struct stack *torsh_stack_create(void)
{
	struct stack *s = torsh_sys_pages(sizeof(*s));

	if (s)
		torsh_stack_reset(s);
	return s;
}

void torsh_stack_destroy(struct stack *s)
{
	if (s)
		torsh_sys_munmap(s, sizeof(*s));
}

void torsh_stack_reset(struct stack *s)
{
	s->depth = 0;
	s->is_anew = true;
	s->is_too_deep = false;
}

/* ---- walking ---- */

/* The cached frame by which entry position of the list came in: that many frames lie outside of it. */
static uint32_t find_owner(const struct stack *s, uint32_t n_frames, uint32_t position)
{
	do
		n_frames--;
	while (n_frames && s->frames[n_frames - 1].checks > position);
	return n_frames;
}

static void append_cut(struct stack *s, uintptr_t ip, enum rule_variety variety)
{
	uint64_t key = torsh_rule_key(ip, variety), rule = torsh_rules_find(key);

	if (!rule)
		rule = torsh_rules_learn(key, &s->stepper.scratch);
	s->fresh[s->n_fresh++] = (struct fresh_frame){.at = {.sp = NO_FRAME, .key = key}, .rule = rule};
}

/* The walk has come to an end of the stack, stepping from the last fresh frame to *at. */
static void finish_walk(struct stack *s, enum step_result result, const struct step_frame *at)
{
	const struct fresh_frame *last;

	s->is_too_deep = false;
	s->end = (struct frame){.sp = result == STEP_END_READ ? at->sp : NO_FRAME};
	if (result == STEP_END || result == STEP_END_READ)
		return;
	torsh_count(COUNTER_captures_cut);
	if (result == STEP_NOWHERE && s->n_fresh > 1)
		s->fresh[--s->n_fresh - 1].rule |= RULE_UNPROVABLE;
	last = &s->fresh[s->n_fresh - 1];
	append_cut(s, torsh_rule_ip(last->at.key), result == STEP_CUT_UNKNOWN ? RULE_OF_CUT_UNKNOWN : RULE_OF_CUT_BAD);
}

static void finish_deep_walk(struct stack *s)
{
	s->is_too_deep = true;
	s->end = (struct frame){.sp = NO_FRAME};
	s->n_fresh = DEEP_KEPT;
	append_cut(s, 0, RULE_OF_CUT_DEEP);
}

/* The common step, for frames nearby; false: it takes more. */
static inline bool step_simply(struct step_frame *at, uint64_t rule)
{
	uintptr_t base = torsh_rule_kind(rule) == RULE_RSP ? at->sp : at->bp;
	uintptr_t cfa = base + (uintptr_t)torsh_rule_offset(rule), ip;

	if (torsh_rule_kind(rule) > RULE_RBP || cfa - 8 - at->sp >= STEP_NEAR_BYTES || cfa % 8)
		return false;
	ip = *(const uintptr_t *)(cfa - 8);
	if (!ip)
		return false;
	if (rule & RULE_RESTORES_BP)
		at->bp = *(const uintptr_t *)(cfa + (uintptr_t)torsh_rule_bp_where(rule));
	at->sp = cfa;
	at->key = torsh_rule_key(ip, RULE_OF_CALL);
	return true;
}

#define WALK_AGAIN UINT32_MAX

/*
 * Fill fresh[] with the frames from at outwards, up to one that is cached and proved, or to the end.
 * Returns how many of the cached frames, from the outermost, are still true, or WALK_AGAIN.
 */
static inline uint32_t walk(struct stack *s, struct step_frame at)
{
	uint32_t n_left = s->depth; /* cached frames that may still be met */

	s->n_fresh = 0;
	for (;;) {
		struct frame *cached;
		enum step_result result;
		uint64_t rule;

		while (n_left && s->frames[n_left - 1].sp < at.sp)
			n_left--;
		cached = &s->frames[n_left - 1];
		if (n_left && cached->sp == at.sp && cached->key == at.key &&
		    (cached->bp == at.bp || !cached->needs_bp)) {
			uint32_t differing = torsh_checks_compare(s->checks, cached->checks);

			if (is_likely(differing == CHECKS_SAME)) {
				cached->bp = at.bp;
				return n_left;
			}
			n_left = find_owner(s, n_left, differing);
		}

		rule = torsh_rules_find(at.key);
		if (!is_likely(rule)) {
			rule = torsh_rules_learn(at.key, &s->stepper.scratch);
			if (atomic_load_explicit(&torsh_rules_generation, memory_order_acquire) != s->generation)
				return WALK_AGAIN;
		}
		if (!is_likely(s->n_fresh < STACK_MAX_FRAMES - 1)) {
			finish_deep_walk(s);
			return 0;
		}
		s->fresh[s->n_fresh] = (struct fresh_frame){.at = at, .rule = rule};
		s->n_fresh++;
		if (is_likely(!s->stepper.is_guessing) && is_likely(step_simply(&at, rule)))
			continue;
		{
			struct step_frame next = at;

			result = torsh_step(&s->stepper, &next, &s->fresh[s->n_fresh - 1].rule);
			if (result != STEP_NEXT) {
				finish_walk(s, result, &next);
				return 0;
			}
			at = next;
		}
	}
}

/* ---- caching what was found ---- */

/* Entries for the slots that the step out of f has read; those that it read first come last. */
static void add_checks(struct stack *s, const struct frame *f, const struct frame *outer, uint64_t rule, uint32_t *at)
{
	uintptr_t ip = torsh_rule_ip(outer->key);
	bool is_bp_used = outer->needs_bp;

	if (rule & RULE_UNPROVABLE) {
		torsh_checks_add(s->checks, at, (uintptr_t)&s->never, 1);
		return;
	}
	if (outer->sp == NO_FRAME)
		return;
	switch (torsh_rule_kind(rule)) {
	case RULE_DEREF_RBP:
		torsh_checks_add(s->checks, at, outer->sp - 8, ip);
		if (is_bp_used && rule & RULE_RESTORES_BP)
			torsh_checks_add(s->checks, at, f->bp + (uintptr_t)torsh_rule_bp_where(rule), outer->bp);
		torsh_checks_add(s->checks, at, f->bp + (uintptr_t)torsh_rule_offset(rule), outer->sp);
		break;
	case RULE_SIGNAL:
		torsh_checks_add(s->checks, at, f->sp + CHAIN_GREG_RIP, ip);
		torsh_checks_add(s->checks, at, f->sp + CHAIN_GREG_RSP, outer->sp);
		if (is_bp_used)
			torsh_checks_add(s->checks, at, f->sp + CHAIN_GREG_RBP, outer->bp);
		break;
	case RULE_NO_INFO:
		torsh_checks_add(s->checks, at, outer->sp - 8, ip);
		if (is_bp_used)
			torsh_checks_add(s->checks, at, outer->sp - 16, outer->bp);
		break;
	default:
		torsh_checks_add(s->checks, at, outer->sp - 8, ip);
		if (is_bp_used && rule & RULE_RESTORES_BP)
			torsh_checks_add(s->checks, at, outer->sp + (uintptr_t)torsh_rule_bp_where(rule), outer->bp);
	}
}

static bool is_bp_needed(const struct frame *outer, uint64_t rule)
{
	switch (torsh_rule_kind(rule)) {
	case RULE_RSP:
		return outer->needs_bp && !(rule & RULE_RESTORES_BP);
	case RULE_SIGNAL:
	case RULE_STOP:
		return false;
	default:
		return true;
	}
}

/* Put the fresh frames in place of the cached ones from n_kept on. */
static inline void cache_fresh(struct stack *s, uint32_t n_kept)
{
	const struct frame *outer = n_kept ? &s->frames[n_kept - 1] : &s->end;
	uint32_t depth = n_kept, checks = outer->checks;

	for (uint32_t i = s->n_fresh; i-- > 0;) {
		const struct fresh_frame *fresh = &s->fresh[i];
		struct frame *f = &s->frames[depth];
		uint64_t rule = fresh->rule;

		f->sp = fresh->at.sp;
		f->key = fresh->at.key;
		f->bp = fresh->at.bp;
		f->needs_bp = is_bp_needed(outer, rule);
		add_checks(s, f, outer, rule, &checks);
		f->checks = checks;
		s->ids[depth++] = torsh_rule_id(rule);
		outer = f;
	}
	s->depth = depth;
}

/* ---- the arbiter ---- */

int torsh_stack_check_every(uint32_t n)
{
	int err = n ? torsh_arbiter_open() : 0;

	atomic_store(&check_every, err ? 0 : n);
	return err;
}

/* Beyond a frame that nothing describes both sides guess, each in its own way. */
static bool is_known(uint64_t key)
{
	enum rule_variety variety = torsh_rule_variety(key);

	return (variety == RULE_OF_CALL || variety == RULE_OF_INTERRUPTED) &&
	       torsh_rule_kind(torsh_rules_find(key)) != RULE_NO_INFO;
}

static void check(struct stack *s)
{
	uint32_t n = 0, i = s->depth, n_arbiters;

	s->n_unchecked = 0;
	while (i > 0 && is_known(s->frames[i - 1].key))
		s->ours[n++] = torsh_rule_ip(s->frames[--i].key);
	n_arbiters = torsh_arbiter_walk(s->stepper.hook_sp, s->arbiters);
	torsh_arbiter_compare(s->ours, n, s->arbiters, n_arbiters, i > 0);
}

/* ---- the capture ---- */

void torsh_stack_forget_code(void)
{
	torsh_modules_recheck();
}

/* Whether the cache has room, and a stack that is too deep still shows enough. */
static inline bool is_fitting(const struct stack *s, uint32_t n_kept)
{
	uint32_t depth = n_kept + s->n_fresh;

	return depth <= STACK_MAX_FRAMES && !(s->is_too_deep && n_kept && depth < DEEP_FEWEST);
}

void torsh_stack_capture(struct stack *s, const void *frame, struct stack_delta *delta)
{
	struct cpu_caller caller = torsh_cpu_caller(frame);
	struct step_frame at = {.sp = caller.sp, .key = torsh_rule_key(caller.ip, RULE_OF_CALL), .bp = caller.bp};
	/* Pairs with the release in torsh_rules_forget. */
	uint32_t generation = atomic_load_explicit(&torsh_rules_generation, memory_order_acquire);
	uint32_t n_kept, every;

	s->stepper.is_guessing = false;
	s->stepper.has_cursor = false;
	s->stepper.hook_sp = caller.sp;
	if (!is_likely(generation == s->generation)) {
		s->generation = generation;
		torsh_stack_reset(s);
	}
	while (n_kept = walk(s, at), !is_likely(n_kept != WALK_AGAIN && is_fitting(s, n_kept))) {
		s->generation = atomic_load_explicit(&torsh_rules_generation, memory_order_acquire);
		s->stepper.is_guessing = false;
		s->stepper.has_cursor = false;
		torsh_stack_reset(s);
	}

	delta->pop = s->is_anew ? STACK_POP_ALL : s->depth - n_kept;
	delta->n_push = s->n_fresh;
	delta->push = &s->ids[n_kept];
	s->is_anew = false;
	cache_fresh(s, n_kept);

	every = atomic_load_explicit(&check_every, memory_order_relaxed);
	if (!is_likely(!every) && ++s->n_unchecked >= every)
		check(s);
}
