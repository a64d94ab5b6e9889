/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The capture on x86-64: walk out from the hook to the first frame of the previous capture that is
 * still valid, and prove by the slots read then that all frames outside of it are unchanged. See
 * stack.h.
 *
 * Why that is exact: a step depends only on the frame's address, sp, rbp if its rule or an outer
 * one uses it, and the slots it reads. If a cached frame has the same ones, its step reads the same
 * slots; if these have the same values, it leads to the same outer frame; and so on to the end.
 */
#include "agent/stack/stack.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/modules/module_watch.h"
#include "agent/process/checks.h"
#include "agent/producer/counter.h"
#include "agent/stack/chain.h"
#include "agent/stack/reference_unwinder.h"
#include "agent/stack/step.h"
#include "agent/stack/unwind_rules.h"
#include "shim/loader/unloading.h"
#include "shim/sys.h"

#define is_likely(x) __builtin_expect(!!(x), 1)

/*
 * Of deeper stacks this many inner frames are kept, so that they can grow and shrink for a while
 * before they are walked in full again.
 */
#define DEEP_KEPT 768u
#define DEEP_FEWEST 384u

#define NO_FRAME UINTPTR_MAX /* sp of an entry that isn't a frame */
#define MOST_CHECKS_PER_FRAME 3u

/*
 * Cached suffixes: the innermost frames of earlier captures, by the hook's call site. A program
 * runs through the same few functions again and again; while the slots that the walk read keep
 * their values it takes the same path.
 */
#define SUFFIX_FRAMES 8u
#define SUFFIX_CHECKS 20u
#define SUFFIX_FEW_CHECKS 8u
#define N_SUFFIX_BITS 10
#define N_SUFFIXES (1u << N_SUFFIX_BITS)
#define N_FIRST_SUFFIX_BITS 4

/*
 * Recently used unwind rules of this stack. The shared table has an entry for each return address
 * of the process, far apart in memory: a look-up there is a cache miss.
 */
#define RULE_CACHE_BITS 11
#define FIRST_RULE_CACHE_BITS 6

/* A thread starts with small caches and gets large ones after this many evictions. */
#define EVICTED_MAX 256u

struct cached_rule {
	uint64_t tagged_ip, rule; /* 0: none */
};

/* Frames by field: the walk compares stack pointers more often than anything else. */
struct frames {
	uintptr_t sp[STACK_MAX_FRAMES];
	uint64_t tagged_ip[STACK_MAX_FRAMES];
	uintptr_t bp[STACK_MAX_FRAMES];
};

/* Outermost first. Entries past n_frames may be copied, but are meaningless. */
struct suffix {
	uint32_t generation; /* of the unwind rules; 0: none */
	uint32_t n_frames, n_checks;
	uint32_t first_check; /* earlier checks prove everything outside of the parent */
	uint32_t n_kept; /* frames outside of it; the innermost is the parent */
	struct step_frame parent;
	bool parent_needs_bp;
	bool needs_bp[SUFFIX_FRAMES];
	uint32_t checks[SUFFIX_FRAMES];
	uint32_t ids[SUFFIX_FRAMES];
	uintptr_t sp[SUFFIX_FRAMES];
	uint64_t tagged_ip[SUFFIX_FRAMES];
	uintptr_t bp[SUFFIX_FRAMES];
	struct check list[SUFFIX_CHECKS];
};

/* The large caches. */
struct grown {
	struct suffix suffixes[N_SUFFIXES];
	struct cached_rule rules[1u << RULE_CACHE_BITS];
};

struct stack {
	uint32_t depth;
	uint32_t n_fresh;
	uint32_t generation; /* of the unwind rules that found the frames */
	uint32_t n_unchecked; /* captures since the last comparison with the reference unwinder */
	/* evictions from the small caches */
	uint32_t n_evicted;
	uint32_t suffix_shift, rule_shift; /* for hashes: 64 less the bits of an index */
	struct suffix *suffixes;
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
	uint32_t ids[STACK_MAX_FRAMES + STACK_READABLE];
	struct frames frames;
	/* number of checks that prove everything outside of this frame */
	uint32_t checks[STACK_MAX_FRAMES];
	/* bp affects this frame's step, or an outer one */
	bool needs_bp[STACK_MAX_FRAMES];
	struct check list[STACK_MAX_FRAMES * MOST_CHECKS_PER_FRAME];
	struct suffix first_suffixes[1u << N_FIRST_SUFFIX_BITS];
	struct cached_rule first_rules[1u << FIRST_RULE_CACHE_BITS];

	/* New frames of this capture, innermost first. */
	struct frames fresh;
	uint64_t fresh_rule[STACK_MAX_FRAMES];

	uintptr_t ours[STACK_MAX_FRAMES], reference[REFERENCE_MAX_FRAMES];
};

static _Atomic uint32_t check_every;

void torsh_stack_start(void)
{
	torsh_unwind_rules_start(true);
}

size_t torsh_stack_bytes(void)
{
	return (sizeof(struct stack) + 4095) & ~(size_t)4095;
}

struct stack *torsh_stack_create(void *pages)
{
	struct stack *s = pages;

	s->suffixes = s->first_suffixes;
	s->suffix_shift = 64 - N_FIRST_SUFFIX_BITS;
	s->rules = s->first_rules;
	s->rule_shift = 64 - FIRST_RULE_CACHE_BITS;
	torsh_stack_reset(s);
	return s;
}

void torsh_stack_destroy(struct stack *s)
{
	if (s->grown)
		torsh_sys_munmap(s->grown, sizeof(*s->grown));
}

/* Replace the small caches by large, empty ones. Without memory they stay. */
static __attribute__((noinline)) void grow(struct stack *s)
{
	s->n_evicted = 0;
	if (s->grown)
		return;
	s->grown = torsh_sys_pages(sizeof(*s->grown));
	if (!s->grown)
		return;
	s->suffixes = s->grown->suffixes;
	s->suffix_shift = 64 - N_SUFFIX_BITS;
	s->rules = s->grown->rules;
	s->rule_shift = 64 - RULE_CACHE_BITS;
}

void torsh_stack_view(const struct stack *s, struct stack_view *view)
{
	*view = (struct stack_view){
		.depth = s->depth, .ids = s->ids, .sp = s->frames.sp, .ip = s->frames.tagged_ip};
}

void torsh_stack_reset(struct stack *s)
{
	s->depth = 0;
	s->is_anew = true;
	s->is_too_deep = false;
	s->stepper.low = s->stepper.high = 0;
}

void torsh_stack_invalidate(struct stack *s)
{
	for (uint32_t i = 0; i < 1u << (64 - s->suffix_shift); i++)
		s->suffixes[i].generation = 0;
	s->generation = 0;
	torsh_stack_reset(s);
}

/* Start with an empty cache: frames found by flushed rules are invalid. */
static void start_anew(struct stack *s, uint32_t generation)
{
	if (generation != s->generation) {
		memset(s->rules, 0, sizeof(*s->rules) << (64 - s->rule_shift));
		torsh_recent_functions_clear(&s->stepper.recent);
	}
	s->generation = generation;
	torsh_stack_reset(s);
}

/* ---- walking ---- */

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

static inline struct step_frame frame_at(const struct frames *frames, uint32_t i)
{
	return (struct step_frame){
		.sp = frames->sp[i], .tagged_ip = frames->tagged_ip[i], .bp = frames->bp[i]};
}

/*
 * The cached frame that added this entry to the list of checks, as the number of frames outside of
 * it.
 */
static uint32_t find_owner(const struct stack *s, uint32_t n_frames, uint32_t position)
{
	do
		n_frames--;
	while (n_frames && s->checks[n_frames - 1] > position);
	return n_frames;
}

static void append_cut(struct stack *s, uintptr_t ip, enum ip_tag variety)
{
	uint64_t tagged_ip = torsh_tagged_ip(ip, variety),
		 rule = torsh_unwind_rules_find(tagged_ip);

	s->fresh.sp[s->n_fresh] = NO_FRAME;
	s->fresh.tagged_ip[s->n_fresh] = tagged_ip;
	s->fresh.bp[s->n_fresh] = 0;
	s->fresh_rule[s->n_fresh++] =
		rule ? rule : torsh_unwind_rules_compile(tagged_ip, &s->stepper.recent);
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
		s->fresh_rule[--s->n_fresh - 1] |= RULE_UNPROVABLE;
	append_cut(s, torsh_untagged_ip(s->fresh.tagged_ip[s->n_fresh - 1]),
		   result == STEP_CUT_UNKNOWN ? IP_TAG_CUT_UNKNOWN : IP_TAG_CUT_BAD);
}

static void finish_deep_walk(struct stack *s)
{
	s->is_too_deep = true;
	s->end = (struct step_frame){.sp = NO_FRAME};
	s->n_fresh = DEEP_KEPT;
	s->fresh_rule[DEEP_KEPT - 1] |= RULE_LAST;
	append_cut(s, 0, IP_TAG_CUT_DEEP);
}

/*
 * The common step, to a nearby frame; false: another kind. Damaged rules can point anywhere: only
 * memory that is certainly readable is read.
 */
static inline bool step_simply(const struct stepper *stepper, struct step_frame *at, uint64_t rule)
{
	uintptr_t base = torsh_unwind_rule_kind(rule) == RULE_RSP ? at->sp : at->bp;
	uintptr_t cfa = base + (uintptr_t)torsh_unwind_rule_offset(rule), ip;
	uintptr_t bp_slot = cfa + (uintptr_t)torsh_unwind_rule_bp_where(rule);

	if (torsh_unwind_rule_kind(rule) > RULE_RBP || cfa - 8 - at->sp >= STEP_NEAR_BYTES ||
	    cfa % 8 || !torsh_step_is_readable(stepper, cfa - 8))
		return false;
	if (rule & RULE_RESTORES_BP && !torsh_step_is_readable(stepper, bp_slot))
		return false;
	ip = *(const uintptr_t *)(cfa - 8);
	if (!ip || !torsh_unwind_rule_can_be_ip(ip))
		return false;
	if (rule & RULE_RESTORES_BP)
		at->bp = *(const uintptr_t *)bp_slot;
	at->sp = cfa;
	at->tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL);
	return true;
}

/*
 * The same for all other kinds, from the last fresh frame to s->at; false: the walk is over. Not
 * inlined: it is rare.
 */
static __attribute__((noinline)) bool step_otherwise(struct stack *s, uint32_t n_fresh)
{
	enum step_result result;

	s->n_fresh = n_fresh;
	s->at = frame_at(&s->fresh, n_fresh - 1);
	result = torsh_step(&s->stepper, &s->at, &s->fresh_rule[n_fresh - 1]);
	if (result != STEP_NEXT)
		finish_walk(s, result, &s->at);
	return result == STEP_NEXT;
}

/*
 * Whether the n-th cached frame is the one at *at, and all outside of it is unchanged; else lowers
 * *n_left.
 */
static inline bool matches_cached(struct stack *s, const struct step_frame *at, uint32_t *n_left)
{
	uint32_t i = *n_left - 1, differing;

	if (s->frames.sp[i] != at->sp || s->frames.tagged_ip[i] != at->tagged_ip ||
	    (s->frames.bp[i] != at->bp && s->needs_bp[i]))
		return false;
	differing = torsh_checks_compare(s->list, s->checks[i]);
	if (is_likely(differing == CHECKS_HOLD)) {
		s->frames.bp[i] = at->bp;
		return true;
	}
	*n_left = find_owner(s, *n_left, differing);
	return false;
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

#define WALK_AGAIN UINT32_MAX

/*
 * Fill fresh with the frames from at outwards, up to a cached frame that is proved, or to the end.
 * Returns how many cached frames, from the outermost, are still valid, or WALK_AGAIN.
 */
static inline uint32_t walk(struct stack *s, struct step_frame at)
{
	uint32_t n_left = s->depth; /* cached frames that may still be reached */

	s->n_fresh = 0;
	for (uint32_t n = 0;;) {
		uint64_t rule;

		while (n_left && s->frames.sp[n_left - 1] < at.sp)
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
		s->fresh.sp[n] = at.sp;
		s->fresh.tagged_ip[n] = at.tagged_ip;
		s->fresh.bp[n] = at.bp;
		s->fresh_rule[n++] = rule;
		if (!is_likely(!s->stepper.is_guessing && step_simply(&s->stepper, &at, rule))) {
			if (!step_otherwise(s, n))
				return 0;
			at = s->at;
		}
	}
}

/* ---- caching ------------------- */

static inline void add_check(struct stack *s, uint32_t *at, uintptr_t slot, uintptr_t value)
{
	s->list[(*at)++] = (struct check){.slot = slot, .value = value};
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
	case RULE_DEREF_RBP:
		add_check(s, &at, outer.sp - 8, ip);
		if (restores_bp)
			add_check(s, &at, f.bp + (uintptr_t)torsh_unwind_rule_bp_where(rule),
				  outer.bp);
		add_check(s, &at, f.bp + (uintptr_t)torsh_unwind_rule_offset(rule), outer.sp);
		break;
	case RULE_SIGNAL:
		add_check(s, &at, f.sp + CHAIN_GREG_RIP, ip);
		add_check(s, &at, f.sp + CHAIN_GREG_RSP, outer.sp);
		if (is_bp_used)
			add_check(s, &at, f.sp + CHAIN_GREG_RBP, outer.bp);
		break;
	case RULE_NO_INFO:
		add_check(s, &at, outer.sp - 8, ip);
		if (is_bp_used)
			add_check(s, &at, outer.sp - 16, outer.bp);
		break;
	default:
		add_check(s, &at, outer.sp - 8, ip);
		if (restores_bp)
			add_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_bp_where(rule),
				  outer.bp);
	}
	return at;
}

/* Whether step_simply handles the rule. */
static inline bool is_simple(uint64_t rule)
{
	return (rule & (RULE_UNPROVABLE | RULE_LAST | 7)) <= RULE_RBP;
}

static inline uint32_t add_checks(struct stack *s, struct step_frame f, struct step_frame outer,
				  bool is_bp_used, uint64_t rule, uint32_t at)
{
	if (!is_likely(is_simple(rule)))
		return add_other_checks(s, f, outer, is_bp_used, rule, at);
	/* A tagged return address equals the address. */
	add_check(s, &at, outer.sp - 8, outer.tagged_ip);
	if (is_bp_used && rule & RULE_RESTORES_BP)
		add_check(s, &at, outer.sp + (uintptr_t)torsh_unwind_rule_bp_where(rule), outer.bp);
	return at;
}

static inline bool is_bp_needed(bool outer_needs_bp, uint64_t rule)
{
	if (torsh_unwind_rule_kind(rule) == RULE_RSP)
		return outer_needs_bp && !(rule & RULE_RESTORES_BP);
	return torsh_unwind_rule_kind(rule) != RULE_SIGNAL &&
	       torsh_unwind_rule_kind(rule) != RULE_STOP;
}

/*
 * outer_tagged_ip is that of the next outer frame: functions like operator new are called from many
 * places, but call from few.
 */
static inline struct suffix *suffix_of(struct stack *s, uintptr_t sp, uint64_t tagged_ip,
				       uint64_t outer_tagged_ip)
{
	return &s->suffixes[(sp + tagged_ip * 5 + outer_tagged_ip * 9) *
				    UINT64_C(0x9e3779b97f4a7c15) >>
			    s->suffix_shift];
}

/* Store the cached frames from n_kept on as a cached suffix. */
static void keep_suffix(struct stack *s, uint32_t n_kept)
{
	uint32_t n = s->depth - n_kept, base = s->checks[n_kept - 1],
		 n_checks = s->checks[s->depth - 1] - base;
	struct suffix *suffix;

	if (n > SUFFIX_FRAMES || n_checks > SUFFIX_CHECKS)
		return;
	suffix = suffix_of(s, s->frames.sp[s->depth - 1], s->frames.tagged_ip[s->depth - 1],
			   s->frames.tagged_ip[s->depth - 2]);
	s->n_evicted += suffix->generation == s->generation;
	suffix->generation = s->generation;
	suffix->n_frames = n;
	suffix->n_checks = n_checks;
	suffix->first_check = base;
	suffix->n_kept = n_kept;
	suffix->parent = frame_at(&s->frames, n_kept - 1);
	suffix->parent_needs_bp = s->needs_bp[n_kept - 1];
	for (uint32_t i = 0; i < n; i++) {
		suffix->sp[i] = s->frames.sp[n_kept + i];
		suffix->tagged_ip[i] = s->frames.tagged_ip[n_kept + i];
		suffix->bp[i] = s->frames.bp[n_kept + i];
		suffix->ids[i] = s->ids[n_kept + i];
		suffix->checks[i] = s->checks[n_kept + i];
		suffix->needs_bp[i] = s->needs_bp[n_kept + i];
	}
	for (uint32_t i = 0; i < n_checks; i++)
		suffix->list[i] = s->list[base + i];
}

/*
 * Replace the cached frames from n_kept on by the fresh ones. Not inlined: it needs all registers.
 */
static __attribute__((noinline)) void cache_fresh(struct stack *s, uint32_t n_kept)
{
	struct step_frame outer = n_kept ? frame_at(&s->frames, n_kept - 1) : s->end;
	bool needs_bp = n_kept && s->needs_bp[n_kept - 1],
	     are_simple = n_kept && !s->stepper.is_guessing;
	uint32_t depth = n_kept, checks = n_kept ? s->checks[n_kept - 1] : 0;

	for (uint32_t i = s->n_fresh; i-- > 0; depth++) {
		struct step_frame f = frame_at(&s->fresh, i);
		uint64_t rule = s->fresh_rule[i];

		are_simple = are_simple && is_simple(rule);
		checks = add_checks(s, f, outer, needs_bp, rule, checks);
		needs_bp = is_bp_needed(needs_bp, rule);
		s->frames.sp[depth] = f.sp;
		s->frames.tagged_ip[depth] = f.tagged_ip;
		s->frames.bp[depth] = f.bp;
		s->checks[depth] = checks;
		s->needs_bp[depth] = needs_bp;
		s->ids[depth] = torsh_unwind_rule_id(rule);
		outer = f;
	}
	s->depth = depth;
	if (are_simple)
		keep_suffix(s, n_kept);
}

/* Whether the cached suffix belongs to this capture, by everything that isn't in memory. */
static inline bool is_suffix_at(const struct stack *s, const struct suffix *suffix,
				const struct step_frame *at)
{
	uint32_t last = suffix->n_frames - 1, parent = suffix->n_kept - 1;

	if (suffix->generation != s->generation || suffix->sp[last] != at->sp ||
	    suffix->tagged_ip[last] != at->tagged_ip)
		return false;
	if (suffix->needs_bp[last] && suffix->bp[last] != at->bp)
		return false;
	if (parent >= s->depth || s->frames.sp[parent] != suffix->parent.sp ||
	    s->frames.tagged_ip[parent] != suffix->parent.tagged_ip)
		return false;
	if (s->checks[parent] != suffix->first_check ||
	    s->needs_bp[parent] != suffix->parent_needs_bp)
		return false;
	return !suffix->parent_needs_bp || s->frames.bp[parent] == suffix->parent.bp;
}

/* Whether the frame of the cached suffix equals the one that is cached at i. */
static inline bool is_cached(const struct stack *s, uint32_t i, const struct suffix *suffix,
			     uint32_t n)
{
	return i < s->depth && s->frames.sp[i] == suffix->sp[n] &&
	       s->frames.tagged_ip[i] == suffix->tagged_ip[n] &&
	       s->needs_bp[i] == suffix->needs_bp[n] &&
	       (!suffix->needs_bp[n] || s->frames.bp[i] == suffix->bp[n]);
}

/*
 * Copy the cached suffix after its parent, in constant sizes; there is room for the meaningless
 * excess.
 */
static inline void copy_suffix(struct stack *s, const struct suffix *suffix)
{
	uint32_t at = suffix->n_kept;

	memcpy(&s->frames.sp[at], suffix->sp, sizeof(suffix->sp));
	memcpy(&s->frames.tagged_ip[at], suffix->tagged_ip, sizeof(suffix->tagged_ip));
	memcpy(&s->frames.bp[at], suffix->bp, sizeof(suffix->bp));
	memcpy(&s->ids[at], suffix->ids, sizeof(suffix->ids));
	memcpy(&s->checks[at], suffix->checks, sizeof(suffix->checks));
	memcpy(&s->needs_bp[at], suffix->needs_bp, sizeof(suffix->needs_bp));
	memcpy(&s->list[suffix->first_check], suffix->list,
	       SUFFIX_FEW_CHECKS * sizeof(suffix->list[0]));
	for (uint32_t i = SUFFIX_FEW_CHECKS; i < suffix->n_checks; i++)
		s->list[suffix->first_check + i] = suffix->list[i];
}

/* Capture by a cached suffix that is still valid. Returns false if there is none. */
static inline bool capture_by_suffix(struct stack *s, const struct step_frame *at,
				     struct stack_delta *delta)
{
	struct step_frame outer = *at;
	uint64_t rule = find_rule(s, at->tagged_ip);
	const struct suffix *suffix;
	uint32_t n_kept, depth, n = 0;

	if (!rule || !step_simply(&s->stepper, &outer, rule))
		return false;
	suffix = suffix_of(s, at->sp, at->tagged_ip, outer.tagged_ip);
	n_kept = suffix->n_kept;
	depth = n_kept + suffix->n_frames;
	if (!is_suffix_at(s, suffix, at) || depth > STACK_MAX_FRAMES - SUFFIX_FRAMES ||
	    s->is_too_deep)
		return false;
	if (torsh_checks_compare(suffix->list, suffix->n_checks) != CHECKS_HOLD ||
	    torsh_checks_compare(s->list, suffix->first_check) != CHECKS_HOLD)
		return false;
	while (n < suffix->n_frames && is_cached(s, n_kept + n, suffix, n))
		n++;
	delta->pop = s->depth - (n_kept + n);
	delta->n_push = suffix->n_frames - n;
	delta->push = &s->ids[n_kept + n];
	copy_suffix(s, suffix);
	s->depth = depth;
	return true;
}

/* ---- the reference unwinder ---- */

int torsh_stack_check_every(uint32_t n)
{
	int err = n ? torsh_reference_open() : 0;

	atomic_store(&check_every, err ? 0 : n);
	return err;
}

/* Whether unwind information describes the frame: without it both unwinders guess, differently. */
static bool has_unwind_info(uint64_t tagged_ip)
{
	enum ip_tag variety = torsh_ip_tag(tagged_ip);

	return (variety == IP_TAG_CALL || variety == IP_TAG_INTERRUPTED) &&
	       torsh_unwind_rule_kind(torsh_unwind_rules_find(tagged_ip)) != RULE_NO_INFO;
}

static void check(struct stack *s)
{
	uint32_t n = 0, i = s->depth, n_reference;

	s->n_unchecked = 0;
	while (i > 0 && has_unwind_info(s->frames.tagged_ip[i - 1]))
		s->ours[n++] = torsh_untagged_ip(s->frames.tagged_ip[--i]);
	n_reference = torsh_reference_walk(s->stepper.hook_sp, s->reference);
	torsh_reference_compare(s->ours, n, s->reference, n_reference, i > 0);
}

/* ---- the capture ---- */

void torsh_stack_invalidate_code(void)
{
	torsh_modules_recheck();
}

/* Whether the cache has room, and a stack that is too deep still has enough frames. */
static inline bool is_fitting(const struct stack *s, uint32_t n_kept)
{
	uint32_t depth = n_kept + s->n_fresh;

	return depth <= STACK_MAX_FRAMES && !(s->is_too_deep && n_kept && depth < DEEP_FEWEST);
}

static inline bool is_unchanged(struct stack *s, const struct step_frame *at,
				struct stack_delta *delta)
{
	uint32_t n = s->depth;

	*delta = (struct stack_delta){.push = s->ids};
	return n && matches_cached(s, at, &n);
}

/* Capture by walking, as far as needed. */
static __attribute__((noinline)) void capture_by_walk(struct stack *s, struct step_frame at,
						      struct stack_delta *delta)
{
	uint32_t n_kept;

	if (s->n_evicted > EVICTED_MAX)
		grow(s);
	while (n_kept = walk(s, at), !is_likely(n_kept != WALK_AGAIN && is_fitting(s, n_kept))) {
		start_anew(s, atomic_load_explicit(&torsh_unwind_rules_generation,
						   memory_order_acquire));
		torsh_step_start(&s->stepper, s->stepper.hook_sp);
	}

	delta->pop = s->is_anew ? STACK_POP_ALL : s->depth - n_kept;
	delta->n_push = s->n_fresh;
	delta->push = &s->ids[n_kept];
	s->is_anew = false;
	s->depth = n_kept;
	if (s->n_fresh)
		cache_fresh(s, n_kept);
}

void torsh_stack_capture(struct stack *s, const void *frame, struct stack_delta *delta)
{
	struct cpu_caller caller = torsh_cpu_caller(frame);
	struct step_frame at = {.sp = caller.sp,
				.tagged_ip = torsh_tagged_ip(caller.ip, IP_TAG_CALL),
				.bp = caller.bp};
	/* Pairs with the release in torsh_unwind_rules_flush. */
	uint32_t generation =
		atomic_load_explicit(&torsh_unwind_rules_generation, memory_order_acquire);
	uint32_t every;

	s->stepper.hook_sp = caller.sp;
	if (!is_likely(generation == s->generation))
		start_anew(s, generation);
	if (!is_unchanged(s, &at, delta)) {
		torsh_step_start(&s->stepper, caller.sp);
		if (!capture_by_suffix(s, &at, delta))
			capture_by_walk(s, at, delta);
	}

	every = atomic_load_explicit(&check_every, memory_order_relaxed);
	if (!is_likely(!every) && ++s->n_unchecked >= every)
		check(s);
}
