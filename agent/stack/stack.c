/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The capture: walk out from the hook to the first frame of the previous capture that is
 * still valid, and prove by the slots read then that all frames outside of it are unchanged. See
 * stack.h.
 *
 * Why that is exact: a step depends only on the frame's address, sp, bp if its rule or an outer
 * one uses it, and the slots it reads. If a cached frame has the same ones, its step reads the same
 * slots; if these have the same values, it leads to the same outer frame; and so on to the end.
 */
#include "agent/stack/stack.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/modules/module_watch.h"
#include "agent/stack/capture/cached_stack.h"
#include "shim/hot.h"
#include "shim/sys.h"

/* In both ways to capture: a call of its own would take more of the stack. */
#define INLINE inline __attribute__((always_inline))

/* A stack that was too deep is walked in full again when fewer of its frames than this are left. */
#define DEEP_FEWEST 384u

/* A thread starts with small caches and gets large ones after this many evictions. */
#define EVICTED_MAX 256u

static HOT _Atomic uint32_t check_every;

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

	torsh_suffixes_use(&s->suffixes, s->first_suffixes, N_FIRST_SUFFIXES, N_FIRST_SUFFIXES,
			   s->first_index, FIRST_SUFFIX_PAIR_BITS);
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
	torsh_suffixes_use(&s->suffixes, s->grown->suffixes, N_SUFFIXES, 0, s->grown->index,
			   SUFFIX_PAIR_BITS);
	s->rules = s->grown->rules;
	s->rule_shift = 64 - RULE_CACHE_BITS;
}

void torsh_stack_view(const struct stack *s, struct stack_view *view)
{
	*view = (struct stack_view){.depth = s->depth, .ids = s->ids, .frames = s->frames};
}

void torsh_stack_reset(struct stack *s)
{
	s->depth = 0;
	s->top.sp = NO_FRAME;
	s->is_anew = true;
	s->is_too_deep = false;
	s->stepper.low = s->stepper.high = 0;
}

void torsh_stack_invalidate(struct stack *s)
{
	torsh_suffixes_clear(&s->suffixes);
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

/* ---- cached suffixes ---- */

/* Store the cached frames from n_kept on, which were found by common steps, as a suffix. */
static void keep_suffix(struct stack *s, uint32_t n_kept)
{
	uint32_t last = s->depth - 1, number;
	struct suffix *suffix;

	if (s->depth - n_kept > SUFFIX_FRAMES)
		return;
	number = torsh_suffixes_add(&s->suffixes,
				    torsh_suffixes_pair(&s->suffixes, s->top.sp, s->top.tagged_ip,
							s->frames[last - 1].tagged_ip),
				    s->generation, &s->n_evicted);
	suffix = &s->suffixes.entries[number];
	suffix->n_kept = (uint16_t)n_kept;
	suffix->first_check = (uint16_t)s->frames[n_kept - 1].n_checks;
	suffix->n_frames = (uint8_t)(s->depth - n_kept);
	suffix->needs_bp = s->top.needs_bp;
	suffix->sp = s->top.sp;
	suffix->tagged_ip = s->top.tagged_ip;
	for (uint32_t i = n_kept - 1; i <= last; i++) {
		struct suffix_frame *f = &suffix->frames[i - (n_kept - 1)];
		const struct stack_frame *cached = &s->frames[i];

		*f = (struct suffix_frame){.sp = cached->sp,
					   .tagged_ip = cached->tagged_ip,
					   .bp = cached->bp,
					   .id = s->ids[i],
					   .needs_bp = cached->needs_bp};
		/* The first check is that of the return address. */
		if (i < n_kept)
			continue;
		f->reads_bp = cached->n_checks - cached[-1].n_checks == 2;
		if (!torsh_suffix_set_slots(f, cached[-1].sp, s->list[cached[-1].n_checks].slot,
					    s->list[cached->n_checks - 1].slot)) {
			suffix->generation = 0;
			return;
		}
	}
	torsh_suffixes_follow(&s->suffixes, number);
}

/* The slots that the step out of f, the frame after outer, has read. */
static inline struct check ip_check(const struct suffix_frame *f, const struct suffix_frame *outer)
{
	uintptr_t slot = torsh_suffix_ip_slot(f, outer);

	/* A tagged return address equals the address. */
	return (struct check){.slot = slot, .value = torsh_unwind_saved_ip(slot, outer->tagged_ip)};
}

static inline struct check bp_check(const struct suffix_frame *f, const struct suffix_frame *outer)
{
	return (struct check){.slot = torsh_suffix_bp_slot(f, outer), .value = outer->bp};
}

/* Whether the frame of a cached suffix equals the one that is cached. */
static inline bool is_same_frame(const struct stack_frame *cached, const struct suffix_frame *f)
{
	return cached->sp == f->sp && cached->tagged_ip == f->tagged_ip &&
	       cached->needs_bp == f->needs_bp && (!f->needs_bp || cached->bp == f->bp);
}

/* Whether the suffix is where the cached frames end that the capture keeps. */
static inline bool is_parent_cached(const struct stack *s, const struct suffix *suffix)
{
	uint32_t i = suffix->n_kept - 1u;

	return i < s->depth && is_same_frame(&s->frames[i], suffix->frames) &&
	       s->frames[i].n_checks == suffix->first_check;
}

/* Whether a walk from at would go through the suffix, to its parent among the cached frames. */
static inline bool is_suffix_at(const struct stack *s, const struct suffix *suffix,
				const struct step_frame *at)
{
	if (suffix->sp != at->sp || suffix->tagged_ip != at->tagged_ip ||
	    suffix->generation != s->generation)
		return false;
	if ((suffix->needs_bp && suffix->frames[suffix->n_frames].bp != at->bp) ||
	    !is_parent_cached(s, suffix))
		return false;
	/* From the innermost out: nothing beyond a difference is read, as in a walk. */
	for (const struct suffix_frame *f = &suffix->frames[suffix->n_frames]; f > suffix->frames;
	     f--) {
		struct check bp = bp_check(f, f - 1);

		if (!torsh_unwind_holds_ip(torsh_suffix_ip_slot(f, f - 1), f[-1].tagged_ip) ||
		    (f->reads_bp && !torsh_check_holds(&bp)))
			return false;
	}
	return true;
}

/* Replace the cached frames by those of the suffix, but for its first n, which are equal. */
static inline void copy_suffix(struct stack *s, const struct suffix *suffix, uint32_t n)
{
	uint32_t at = suffix->n_kept + n;
	struct stack_frame inner = s->frames[at - 1];

	for (const struct suffix_frame *f = &suffix->frames[n + 1];
	     f <= &suffix->frames[suffix->n_frames]; f++, at++) {
		s->list[inner.n_checks++] = ip_check(f, f - 1);
		if (f->reads_bp)
			s->list[inner.n_checks++] = bp_check(f, f - 1);
		inner.sp = f->sp;
		inner.tagged_ip = f->tagged_ip;
		inner.bp = f->bp;
		inner.needs_bp = f->needs_bp;
		s->frames[at] = inner;
		s->ids[at] = f->id;
	}
	s->depth = at;
	s->top = inner;
}

/* Capture by a cached suffix that is_suffix_at. Returns false if frames outside of it changed. */
static inline bool use_suffix(struct stack *s, uint32_t number, struct stack_delta *delta)
{
	const struct suffix *suffix = &s->suffixes.entries[number];
	uint32_t n_kept = suffix->n_kept, n = 0;

	if (n_kept + suffix->n_frames > STACK_MAX_FRAMES || s->is_too_deep ||
	    torsh_checks_compare(s->list, suffix->first_check) != CHECKS_HOLD)
		return false;
	while (n < suffix->n_frames && n_kept + n < s->depth &&
	       is_same_frame(&s->frames[n_kept + n], &suffix->frames[n + 1]))
		n++;
	delta->pop = s->depth - (n_kept + n);
	delta->n_push = suffix->n_frames - n;
	delta->push = &s->ids[n_kept + n];
	copy_suffix(s, suffix, n);
	torsh_suffixes_follow(&s->suffixes, number);
	return true;
}

/* Capture by a suffix that followed the last one. Returns false if none fits. */
static inline bool capture_by_next(struct stack *s, const struct step_frame *at,
				   struct stack_delta *delta)
{
	const struct suffix *entries = s->suffixes.entries;
	const uint16_t *next = s->suffixes.next;

	if (is_likely(is_suffix_at(s, &entries[next[0]], at)))
		return use_suffix(s, next[0], delta);
	return is_suffix_at(s, &entries[next[1]], at) && use_suffix(s, next[1], delta);
}

/* Capture by a suffix that the index has. Returns false if none fits. */
static INLINE bool capture_by_index(struct stack *s, const struct step_frame *at,
				    struct stack_delta *delta)
{
	const struct suffix *entries = s->suffixes.entries;
	struct step_frame outer = *at;
	uint64_t rule = find_rule(s, at->tagged_ip);
	const uint16_t *pair;

	if (!rule || !step_simply(&s->stepper, &outer, rule))
		return false;
	pair = s->suffixes.index[torsh_suffixes_pair(&s->suffixes, at->sp, at->tagged_ip,
						     outer.tagged_ip)];
	if (is_suffix_at(s, &entries[pair[0]], at))
		return use_suffix(s, pair[0], delta);
	return is_suffix_at(s, &entries[pair[1]], at) && use_suffix(s, pair[1], delta);
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

static INLINE void check(struct stack *s)
{
	uint32_t n = 0, i = s->depth, n_reference;

	s->n_unchecked = 0;
	while (i > 0 && has_unwind_info(s->frames[i - 1].tagged_ip))
		s->ours[n++] = torsh_untagged_ip(s->frames[--i].tagged_ip);
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

static inline bool is_unchanged(const struct stack *s, const struct step_frame *at,
				struct stack_delta *delta)
{
	*delta = (struct stack_delta){.push = s->ids};
	return is_frame(&s->top, at) &&
	       torsh_checks_compare(s->list, s->top.n_checks) == CHECKS_HOLD;
}

/* Capture by walking, as far as needed. */
static __attribute__((noinline)) void capture_by_walk(struct stack *s, struct step_frame at,
						      struct stack_delta *delta)
{
	uint32_t n_kept;

	if (s->n_evicted > EVICTED_MAX)
		grow(s);
	while (n_kept = torsh_stack_walk(s, at),
	       !is_likely(n_kept != WALK_AGAIN && is_fitting(s, n_kept))) {
		start_anew(s, atomic_load_explicit(&torsh_unwind_rules_generation,
						   memory_order_acquire));
		torsh_step_start(&s->stepper, s->stepper.hook_sp);
	}

	delta->pop = s->is_anew ? STACK_POP_ALL : s->depth - n_kept;
	delta->n_push = s->n_fresh;
	delta->push = &s->ids[n_kept];
	s->is_anew = false;
	if (torsh_stack_cache_fresh(s, n_kept))
		keep_suffix(s, n_kept);
}

static INLINE void capture(struct stack *s, struct step_frame at, struct stack_delta *delta)
{
	/* Pairs with the release in torsh_unwind_rules_flush. */
	uint32_t generation =
		atomic_load_explicit(&torsh_unwind_rules_generation, memory_order_acquire);
	uint32_t every;

	s->stepper.hook_sp = at.sp;
	if (!is_likely(generation == s->generation))
		start_anew(s, generation);
	if (!is_unchanged(s, &at, delta) && !capture_by_next(s, &at, delta)) {
		torsh_step_start(&s->stepper, at.sp);
		if (!capture_by_index(s, &at, delta))
			capture_by_walk(s, at, delta);
	}

	every = atomic_load_explicit(&check_every, memory_order_relaxed);
	if (!is_likely(!every) && ++s->n_unchecked >= every)
		check(s);
}

void torsh_stack_capture(struct stack *s, const void *frame, struct stack_delta *delta)
{
	struct cpu_caller caller = torsh_unwind_hook_caller(frame, &s->stepper.recent);

	capture(s,
		(struct step_frame){.sp = caller.sp,
				    .tagged_ip = torsh_tagged_ip(caller.ip, IP_TAG_CALL),
				    .bp = caller.bp},
		delta);
}

void torsh_stack_capture_interrupted(struct stack *s, const struct cpu_caller *at,
				     struct stack_delta *delta)
{
	capture(s,
		(struct step_frame){.sp = at->sp,
				    .tagged_ip = torsh_tagged_ip(at->ip, IP_TAG_INTERRUPTED),
				    .bp = at->bp},
		delta);
}
