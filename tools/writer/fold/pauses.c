/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/pauses.h"

#include <stdlib.h>

#include "tools/base/memory.h"

static void tell(struct target *target, int is_paused)
{
	atomic_store_explicit(&target->view.header->is_paused, (uint32_t)is_paused,
			      memory_order_relaxed);
}

static void tell_all(struct target *const *targets, uint32_t n_targets, int is_paused)
{
	for (uint32_t i = 0; i < n_targets; i++)
		tell(targets[i], is_paused);
}

static void add_turn(struct target *target, const struct ticks_moment *turn)
{
	if (target->is_clock_foreign)
		torsh_process_state_note(
			&target->process_state,
			"its clock is not the writer's: where a pause began and ended is not "
			"known exactly");
	else
		torsh_process_state_turn(&target->process_state,
					 torsh_ticks_stamp(&target->process_state.clock, turn));
}

void torsh_pauses_turn(struct pauses *pauses, struct target *const *targets, uint32_t n_targets)
{
	int is_end = torsh_pauses_lasts(pauses);
	struct ticks_moment now;

	/*
	 * What agents leave out lies between the two moments: the first is taken before they are
	 * told, the last after.
	 */
	if (is_end)
		tell_all(targets, n_targets, 0);
	/* The stores are seen everywhere before the counter is read. */
	atomic_thread_fence(memory_order_seq_cst);
	now = torsh_ticks_moment();
	pauses->turns = torsh_memory_grow(pauses->turns, &pauses->capacity, pauses->n_turns,
					  sizeof(*pauses->turns));
	pauses->turns[pauses->n_turns++] = now;
	for (uint32_t i = 0; i < n_targets; i++)
		add_turn(targets[i], &now);
	if (!is_end)
		tell_all(targets, n_targets, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

void torsh_pauses_tell(const struct pauses *pauses, struct target *target)
{
	for (uint32_t i = 0; i < pauses->n_turns; i++)
		add_turn(target, &pauses->turns[i]);
	tell(target, torsh_pauses_lasts(pauses));
}

void torsh_pauses_put(const struct pauses *pauses, uint64_t zero_ns, struct rows_session *session)
{
	session->n_paused = (pauses->n_turns + 1) / 2;
	session->n_resumed = pauses->n_turns / 2;
	session->paused_ns = torsh_memory_new(session->n_paused, sizeof(*session->paused_ns));
	session->resumed_ns = torsh_memory_new(session->n_resumed, sizeof(*session->resumed_ns));
	for (uint32_t i = 0; i < pauses->n_turns; i++) {
		uint64_t at_ns = pauses->turns[i].ns > zero_ns ? pauses->turns[i].ns - zero_ns : 0;

		if (i & 1)
			session->resumed_ns[i / 2] = at_ns;
		else
			session->paused_ns[i / 2] = at_ns;
	}
}

void torsh_pauses_release(struct rows_session *session)
{
	free(session->paused_ns);
	free(session->resumed_ns);
}

void torsh_pauses_destroy(struct pauses *pauses)
{
	free(pauses->turns);
}
