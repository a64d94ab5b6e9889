/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/pace.h"

#include "tools/writer/input/order.h"
#include "tools/writer/threads/drain/sleep.h"

#define ENDED_MANY 8u
#define SLEEP_BUSY_NS 500000u
#define SLEEP_FLOWING_NS 1000000u
#define SLEEP_IDLE_NS 5000000u
#define IDLE_BEFORE_DEEP_NS 50000000u

static bool has_work(struct target *const *targets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (torsh_target_has_work(targets[i]))
			return true;
	}
	return false;
}

static void set_sleeping(struct target *const *targets, uint32_t n, uint32_t value)
{
	for (uint32_t i = 0; i < n; i++)
		atomic_store_explicit(&targets[i]->view.header->writer_sleeps, value,
				      memory_order_seq_cst);
}

/*
 * Rest until a producer's ring is a quarter full, something else happens, or memory is to be read.
 */
static void sleep_deeply(struct pace *pace, uint32_t seen, uint64_t now,
			 struct target *const *targets, uint32_t n)
{
	struct sleep_word words[SLEEP_WORDS_MAX] = {{0}};
	uint64_t at_most_ns = pace->next_watch_ns > now ? pace->next_watch_ns - now : 1;

	if (n > SLEEP_WORDS_MAX) {
		torsh_sleep_lightly(pace->wake_word, seen, SLEEP_IDLE_NS);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		words[i] = (struct sleep_word){&targets[i]->view.header->writer_sleeps, 1};
	set_sleeping(targets, n, 1);
	/*
	 * A producer publishes, then reads writer_sleeps; this thread does it in the opposite
	 * order, so that at least one of them sees the other.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (has_work(targets, n) || torsh_sleep_deeply(pace->wake_word, seen, words, n, at_most_ns))
		torsh_sleep_lightly(pace->wake_word, seen, SLEEP_FLOWING_NS);
	set_sleeping(targets, n, 0);
}

void torsh_pace_rest(struct pace *pace, const struct target_pass *pass, uint32_t seen,
		     bool has_request, struct target *const *targets, uint32_t n_targets)
{
	uint64_t now = torsh_clock_monotonic_ns();

	if (pass->n_copied || pass->n_folded)
		pace->last_active_ns = now;
	/* When threads come and go that fast, the next ones need the slots. */
	if (pass->n_folded >= PACE_BUDGET || pass->fill_percent > 40 || pass->n_ended >= ENDED_MANY)
		return;
	if (has_request) {
		torsh_sleep_lightly(pace->wake_word, seen, ORDER_SLACK_NS);
		return;
	}
	if (pass->fill_percent > 10)
		torsh_sleep_lightly(pace->wake_word, seen, SLEEP_BUSY_NS);
	else if (now - pace->last_active_ns < SLEEP_IDLE_NS)
		torsh_sleep_lightly(pace->wake_word, seen, SLEEP_FLOWING_NS);
	else if (now - pace->last_active_ns < IDLE_BEFORE_DEEP_NS)
		torsh_sleep_lightly(pace->wake_word, seen, SLEEP_IDLE_NS);
	else
		sleep_deeply(pace, seen, now, targets, n_targets);
}
