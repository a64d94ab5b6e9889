/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a process's rows lack, by cause: the agent's counters and the writer's own. */
#include "tools/writer/output/rows/rows_parts.h"

static const struct cause {
	const char *name, *text;
	enum counter_kind kind;
} agent_causes[] =
	{
#define COUNTER(name, kind, text) {#name, text, kind},
#include "agent/wire/counters.def"
#undef COUNTER
},
  own_causes[] = {
#define LOSS(name, kind, text) {#name, text, kind},
#include "tools/writer/output/losses.def"
#undef LOSS
};

static void add_loss(Torsh__Process *row, struct rows_memory *memory, const struct cause *cause,
		     uint64_t count)
{
	Torsh__Loss *loss;

	if (cause->kind == COUNTED || !count)
		return;
	loss = torsh_rows_memory(memory, 1, sizeof(*loss));
	torsh__loss__init(loss);
	loss->cause = (char *)(uintptr_t)cause->name;
	loss->text = (char *)(uintptr_t)cause->text;
	ROWS_SET(loss, count, count);
	ROWS_SET(loss, of_events, cause->kind == LOST_EVENTS);
	row->losses[row->n_losses++] = loss;
}

void torsh_rows_put_losses(Torsh__Process *row, struct rows_memory *memory,
			   const struct target *target)
{
	uint64_t own[N_WRITER_LOSSES];

	torsh_target_losses(target, own);
	ROWS_COLUMN(memory, row, losses, N_COUNTERS + N_WRITER_LOSSES);
	row->n_losses = 0;
	for (int i = 0; i < N_COUNTERS; i++)
		add_loss(row, memory, &agent_causes[i],
			 atomic_load_explicit(&target->view.header->counters[i],
					      memory_order_relaxed));
	for (int i = 0; i < N_WRITER_LOSSES; i++)
		add_loss(row, memory, &own_causes[i], own[i]);
}
