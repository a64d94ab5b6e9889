/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/pace.h"

#include <errno.h>

#include "tools/writer/input/order.h"
#include "tools/writer/threads/drain/sleep.h"

#define ENDED_MANY 8u
/* while no producer can wake the thread */
#define NAP_BUSY_NS 500000u
#define NAP_FLOWING_NS 1000000u
#define NAP_IDLE_NS 5000000u
#define SLEEP_FLOWING_NS 10000000u
#define IDLE_BEFORE_DEEP_NS 50000000u
#define FILLED_PERCENT 20u /* less, and it was not for its ring that a producer woke the thread */

/* Returns true if a target needs a pass before the sleep. */
typedef bool needs_pass(struct target *target);

static bool any_needs(struct target *const *targets, uint32_t n, needs_pass *needs)
{
	for (uint32_t i = 0; i < n; i++) {
		if (needs(targets[i]))
			return true;
	}
	return false;
}

static void set_sleeping(struct target *const *targets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		atomic_store_explicit(&targets[i]->view.header->writer_sleeps, 1,
				      memory_order_seq_cst);
}

/* Returns true if a producer has woken the thread. */
static bool end_sleeping(struct target *const *targets, uint32_t n)
{
	bool was_woken = false;

	for (uint32_t i = 0; i < n; i++)
		was_woken |= !atomic_exchange_explicit(&targets[i]->view.header->writer_sleeps, 0,
						       memory_order_seq_cst);
	return was_woken;
}

/*
 * Rest until a producer's ring is a quarter full, something else happens, or the time is over.
 * Returns 0, or a negative number without a rest: a target needs a pass, or the kernel cannot wait
 * for so many words.
 */
static int sleep_until_woken(struct pace *pace, uint32_t seen, struct target *const *targets,
			     uint32_t n, needs_pass *needs, uint64_t at_most_ns)
{
	struct sleep_word words[SLEEP_WORDS_MAX] = {{0}};
	int result = -EAGAIN;

	if (n > SLEEP_WORDS_MAX)
		return -ENOSYS;
	for (uint32_t i = 0; i < n; i++)
		words[i] = (struct sleep_word){&targets[i]->view.header->writer_sleeps, 1};
	set_sleeping(targets, n);
	/*
	 * A producer publishes, then reads writer_sleeps; this thread does it in the opposite
	 * order, so that at least one of them sees the other.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!any_needs(targets, n, needs))
		result = torsh_sleep_deeply(pace->wake_word, seen, words, n, at_most_ns);
	pace->was_woken = end_sleeping(targets, n);
	return result;
}

static uint64_t nap_ns(const struct target_pass *pass, uint64_t idle_ns)
{
	if (pass->fill_percent > 10)
		return NAP_BUSY_NS;
	return idle_ns < NAP_IDLE_NS ? NAP_FLOWING_NS : NAP_IDLE_NS;
}

void torsh_pace_rest(struct pace *pace, const struct target_pass *pass, uint32_t seen,
		     bool has_request, struct target *const *targets, uint32_t n_targets)
{
	uint64_t now = torsh_clock_monotonic_ns(), idle_ns, at_most_ns = SLEEP_FLOWING_NS;
	needs_pass *needs = torsh_target_is_filling;

	if (pass->n_copied || pass->n_folded)
		pace->last_active_ns = now;
	/* Threads begin and end, and each wakes this one: naps for a while, which costs less. */
	if (pace->was_woken && pass->fill_percent < FILLED_PERCENT)
		pace->naps_until_ns = now + SLEEP_FLOWING_NS;
	pace->was_woken = false;
	/* When threads come and go that fast, the next ones need the slots. */
	if (pass->n_folded >= PACE_BUDGET || pass->fill_percent > 40 || pass->n_ended >= ENDED_MANY)
		return;
	if (has_request) {
		torsh_sleep_lightly(pace->wake_word, seen, ORDER_SLACK_NS);
		return;
	}
	idle_ns = now - pace->last_active_ns;
	if (idle_ns >= IDLE_BEFORE_DEEP_NS) {
		needs = torsh_target_has_work;
		at_most_ns = pace->next_watch_ns > now ? pace->next_watch_ns - now : 1;
	}
	if (now < pace->naps_until_ns ||
	    sleep_until_woken(pace, seen, targets, n_targets, needs, at_most_ns))
		torsh_sleep_lightly(pace->wake_word, seen, nap_ns(pass, idle_ns));
}
