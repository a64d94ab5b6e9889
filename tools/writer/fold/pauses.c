/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/pauses.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

static void set_paused(struct target *target, bool is_paused)
{
	uint32_t word = !is_paused;

	/* A process that rests is left alone. */
	atomic_compare_exchange_strong_explicit(&target->view.header->is_paused, &word,
						(uint32_t)is_paused, memory_order_relaxed,
						memory_order_relaxed);
}

static void set_all_paused(struct target *const *targets, uint32_t n_targets, bool is_paused)
{
	for (uint32_t i = 0; i < n_targets; i++)
		set_paused(targets[i], is_paused);
}

static void add_edge(struct target *target, const struct clock_instant *edge)
{
	if (target->is_clock_foreign)
		torsh_process_state_note(
			&target->state,
			"its clock is not the writer's: where a pause began and ended is not "
			"known exactly");
	else
		torsh_process_state_add_pause_edge(
			&target->state, torsh_clock_instant_to_stamp(&target->state.clock, edge));
}

void torsh_pauses_toggle(struct pauses *pauses, struct target *const *targets, uint32_t n_targets)
{
	bool is_end = torsh_pauses_is_paused(pauses);
	struct clock_instant now;

	/*
	 * The begin edge is taken before the flags are set and the end edge after they are cleared,
	 * so everything that agents leave out lies between the two.
	 */
	if (is_end)
		set_all_paused(targets, n_targets, 0);
	/* Makes the stores visible everywhere before the counter is read. */
	atomic_thread_fence(memory_order_seq_cst);
	now = torsh_clock_instant();
	pauses->edges = torsh_array_reserve(pauses->edges, pauses->n_edges, &pauses->capacity,
					    sizeof(*pauses->edges));
	pauses->edges[pauses->n_edges++] = now;
	for (uint32_t i = 0; i < n_targets; i++)
		add_edge(targets[i], &now);
	if (!is_end)
		set_all_paused(targets, n_targets, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

void torsh_pauses_publish(const struct pauses *pauses, struct target *target)
{
	for (uint32_t i = 0; i < pauses->n_edges; i++)
		add_edge(target, &pauses->edges[i]);
	set_paused(target, torsh_pauses_is_paused(pauses));
}

void torsh_pauses_put(const struct pauses *pauses, uint64_t zero_ns, struct rows_session *session)
{
	session->n_paused = (pauses->n_edges + 1) / 2;
	session->n_resumed = pauses->n_edges / 2;
	session->paused_ns = torsh_memory_new(session->n_paused, sizeof(*session->paused_ns));
	session->resumed_ns = torsh_memory_new(session->n_resumed, sizeof(*session->resumed_ns));
	for (uint32_t i = 0; i < pauses->n_edges; i++) {
		uint64_t at_ns = pauses->edges[i].ns > zero_ns ? pauses->edges[i].ns - zero_ns : 0;

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
	free(pauses->edges);
}
