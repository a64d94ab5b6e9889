/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a thread keeps between captures: the frames of the last one with the slots that
 * prove them, recently used unwind rules and cached suffixes (suffixes.h). The capture itself is in
 * agent/stack/stack.c; the files of this folder are its parts.
 */
#ifndef TORSH_AGENT_STACK_CAPTURE_CACHED_STACK_H
#define TORSH_AGENT_STACK_CAPTURE_CACHED_STACK_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/checks.h"
#include "agent/stack/capture/suffixes.h"
#include "agent/stack/reference_unwinder.h"
#include "agent/stack/stack.h"
#include "agent/stack/step.h"
#include "agent/stack/unwind_rules.h"

#define is_likely(x) __builtin_expect(!!(x), 1)

#define NO_FRAME UINTPTR_MAX /* sp of an entry that isn't a frame */
#define MOST_CHECKS_PER_FRAME 3u

/*
 * Recently used unwind rules of this stack. The shared table has an entry for each return address
 * of the process, far apart in memory: a look-up there is a cache miss.
 */
#define RULE_CACHE_BITS 11
#define FIRST_RULE_CACHE_BITS 6

struct cached_rule {
	uint64_t tagged_ip, rule; /* 0: none */
};

/* A frame of this capture, and the rule of the step out of it. */
struct fresh_frame {
	uintptr_t sp;
	uint64_t tagged_ip;
	uintptr_t bp;
	uint64_t rule;
};

/* The large caches. */
struct grown {
	struct suffix suffixes[N_SUFFIXES];
	uint16_t index[1u << SUFFIX_PAIR_BITS][2];
	struct cached_rule rules[1u << RULE_CACHE_BITS];
};

/*
 * First what every capture reads: one cache line, which is enough to find the checks of the same
 * stack as before, or the suffix that is likely next.
 */
struct stack {
	uint32_t depth;
	uint32_t generation; /* of the unwind rules that found the frames */
	struct stack_frame top; /* the innermost frame again; without any its sp is NO_FRAME */
	struct suffix_cache suffixes;
	uint32_t n_fresh;
	uint32_t n_unchecked; /* captures since the last comparison with the reference unwinder */
	/* evictions from the small caches */
	uint32_t n_evicted;
	uint32_t rule_shift; /* for hashes: 64 less the bits of an index */
	struct cached_rule *rules;
	struct grown *grown; /* the large caches; NULL: the first ones are used */
	bool is_anew; /* the next delta starts over */
	bool is_too_deep; /* the outermost frame is the pseudo-address for that */
	uintptr_t never; /* 0, for a check that expects another value and so never holds */
	struct step_frame at; /* the result of an uncommon step */
	/*
	 * beyond the outermost frame; sp is NO_FRAME unless an address of 0 in memory ended the
	 * stack
	 */
	struct step_frame end;
	struct stepper stepper;

	/* The last capture's, outermost first. */
	alignas(64) struct stack_frame frames[STACK_MAX_FRAMES];
	uint32_t ids[STACK_MAX_FRAMES + STACK_READABLE];
	alignas(64) struct check list[STACK_MAX_FRAMES * MOST_CHECKS_PER_FRAME];
	struct suffix first_suffixes[N_FIRST_SUFFIXES];
	uint16_t first_index[1u << FIRST_SUFFIX_PAIR_BITS][2];
	alignas(64) struct cached_rule first_rules[1u << FIRST_RULE_CACHE_BITS];

	/* New frames of this capture, innermost first. */
	struct fresh_frame fresh[STACK_MAX_FRAMES];

	uintptr_t ours[STACK_MAX_FRAMES], reference[REFERENCE_MAX_FRAMES];
};

_Static_assert(sizeof(struct stack_frame) == 32 && sizeof(struct fresh_frame) == 32,
	       "two frames are a cache line");
_Static_assert(offsetof(struct stack, suffixes.index) < 64, "what every capture reads");

static inline struct step_frame cached_at(const struct stack *s, uint32_t i)
{
	return (struct step_frame){
		.sp = s->frames[i].sp, .tagged_ip = s->frames[i].tagged_ip, .bp = s->frames[i].bp};
}

static inline struct step_frame fresh_at(const struct stack *s, uint32_t i)
{
	return (struct step_frame){
		.sp = s->fresh[i].sp, .tagged_ip = s->fresh[i].tagged_ip, .bp = s->fresh[i].bp};
}

/* Like torsh_unwind_rules_find, with a cache. */
static inline uint64_t find_rule(struct stack *s, uint64_t tagged_ip)
{
	struct cached_rule *known =
		&s->rules[tagged_ip * UINT64_C(0x9e3779b97f4a7c15) >> s->rule_shift];
	uint64_t rule;

	if (is_likely(known->tagged_ip == tagged_ip))
		return known->rule;
	rule = torsh_unwind_rules_find(tagged_ip);
	if (!rule)
		return 0;
	s->n_evicted += known->tagged_ip != 0;
	*known = (struct cached_rule){.tagged_ip = tagged_ip, .rule = rule};
	return rule;
}

/*
 * The common step, to a nearby frame; false: another kind. Damaged rules can point anywhere: only
 * memory that is certainly readable is read.
 */
static inline bool step_simply(const struct stepper *stepper, struct step_frame *at, uint64_t rule)
{
	uintptr_t base = torsh_unwind_rule_kind(rule) == RULE_SP ? at->sp : at->bp;
	uintptr_t cfa = base + (uintptr_t)torsh_unwind_rule_offset(rule), ip;
	uintptr_t ip_slot = cfa + (uintptr_t)torsh_unwind_rule_ip_where(rule);
	uintptr_t bp_slot = cfa + (uintptr_t)torsh_unwind_rule_bp_where(rule);

	if (torsh_unwind_rule_kind(rule) > RULE_FP || ip_slot - at->sp >= STEP_NEAR_BYTES ||
	    cfa % 8 || !torsh_step_is_readable(stepper, ip_slot))
		return false;
	if (rule & RULE_RESTORES_BP && !torsh_step_is_readable(stepper, bp_slot))
		return false;
	ip = torsh_cpu_code_address(*(const uintptr_t *)ip_slot);
	if (!ip || !torsh_unwind_rule_can_be_ip(ip))
		return false;
	if (rule & RULE_RESTORES_BP)
		at->bp = *(const uintptr_t *)bp_slot;
	at->sp = cfa;
	at->tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL);
	return true;
}

/* Whether step_simply handles the rule. */
static inline bool is_simple(uint64_t rule)
{
	return (rule & (RULE_UNPROVABLE | RULE_LAST | 7)) <= RULE_FP;
}

/*
 * The cached frame that added this entry to the list of checks, as the number of frames outside of
 * it.
 */
static inline uint32_t find_owner(const struct stack *s, uint32_t n_frames, uint32_t position)
{
	do
		n_frames--;
	while (n_frames && s->frames[n_frames - 1].n_checks > position);
	return n_frames;
}

/* Whether *at is the cached frame: as far as it affects outer steps. */
static inline bool is_frame(const struct stack_frame *cached, const struct step_frame *at)
{
	return cached->sp == at->sp && cached->tagged_ip == at->tagged_ip &&
	       (cached->bp == at->bp || !cached->needs_bp);
}

/*
 * Whether the n-th cached frame is the one at *at, and all outside of it is unchanged; else lowers
 * *n_left.
 */
static inline bool matches_cached(const struct stack *s, const struct step_frame *at,
				  uint32_t *n_left)
{
	const struct stack_frame *cached = &s->frames[*n_left - 1];
	uint32_t differing;

	if (!is_frame(cached, at))
		return false;
	differing = torsh_checks_compare(s->list, cached->n_checks);
	if (is_likely(differing == CHECKS_HOLD))
		return true;
	*n_left = find_owner(s, *n_left, differing);
	return false;
}

#define WALK_AGAIN UINT32_MAX

/*
 * Fill fresh with the frames from at outwards, up to a cached frame that is proved, or to the end.
 * Returns how many cached frames, from the outermost, are still valid, or WALK_AGAIN: rules were
 * flushed meanwhile.
 */
uint32_t torsh_stack_walk(struct stack *s, struct step_frame at);

/*
 * Replace the cached frames from n_kept on by the fresh ones, if there are any. Returns whether
 * these can be a suffix: the steps between them are all common ones.
 */
bool torsh_stack_cache_fresh(struct stack *s, uint32_t n_kept);

#endif
