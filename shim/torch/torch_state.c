/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * at::set_record_function_tls_, by which a thread adopts another thread's observers: autograd calls
 * it twice for each node of a graph. As soon as there is any observer for all threads, each call
 * makes libtorch rebuild its lists of observers for every scope, with eleven allocations each,
 * although they hardly ever change. Calls that change nothing are skipped: otherwise they would be
 * the larger part of an observer's cost in a small model.
 */
#include "shim/torch/torch_state.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/loader/objects.h"

#define SET "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE"
#define GET "_ZN2at24get_record_function_tls_Ev"
#define ENABLE "_ZN2at20enableRecordFunctionEb"
#define IS_ENABLED "_ZN2at23isRecordFunctionEnabledEv"

/* at::RecordFunctionTLS: a vector of the thread's own observers, and whether any is called. */
struct state {
	const void *begin, *end, *capacity;
	bool is_enabled;
};

static void (*_Atomic next_set)(const struct state *state);
static const struct state *(*get_state)(void);
static _Atomic bool is_known; /* struct state matches this libtorch: get_state can be called */

static bool has_no_observers(const struct state *state)
{
	return state->begin == state->end;
}

/* A thread's own observers are left to libtorch. */
static bool is_the_same(const struct state *state, const struct state *now)
{
	return has_no_observers(state) && has_no_observers(now) &&
	       state->is_enabled == now->is_enabled;
}

EXPORT void torsh_torch_set_state(const struct state *state) __asm__(SET);
void torsh_torch_set_state(const struct state *state)
{
	void (*set)(const struct state *) = atomic_load_explicit(&next_set, memory_order_relaxed);

	/* Pairs with the release in torsh_torch_state_cache. */
	if (atomic_load_explicit(&is_known, memory_order_acquire) &&
	    is_the_same(state, get_state()))
		return;
	if (!set) {
		*(void **)&set = torsh_objects_find(SET);
		atomic_store_explicit(&next_set, set, memory_order_relaxed);
	}
	if (set)
		set(state);
}

/*
 * Whether switching observers off and on changes this byte of the calling thread's state, and
 * nothing else.
 */
static bool is_as_expected(void (*enable)(bool is_enabled))
{
	const struct state *now = get_state();
	unsigned char before[offsetof(struct state, is_enabled) + 1], off[sizeof(before)],
		after[sizeof(before)];

	memcpy(before, now, sizeof(before));
	enable(false);
	memcpy(off, now, sizeof(off));
	enable(true);
	memcpy(after, now, sizeof(after));
	return has_no_observers(now) && before[sizeof(before) - 1] == 1 &&
	       off[sizeof(off) - 1] == 0 && !memcmp(before, after, sizeof(before)) &&
	       !memcmp(before, off, sizeof(before) - 1);
}

void torsh_torch_state_cache(void)
{
	void (*enable)(bool is_enabled);
	bool (*is_enabled)(void);

	*(void **)&get_state = torsh_objects_find(GET);
	*(void **)&enable = torsh_objects_find(ENABLE);
	*(void **)&is_enabled = torsh_objects_find(IS_ENABLED);
	if (get_state && enable && is_enabled && is_enabled() && is_as_expected(enable))
		atomic_store_explicit(&is_known, true, memory_order_release);
}
