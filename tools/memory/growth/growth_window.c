/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/growth/growth_window.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/memory/growth/growth.h"

#define PARTS_MAX 64u /* bits of a mask */
#define STEPS_MIN 3u

struct chosen {
	const struct steps *steps;
	const struct time_window *window;
	uint32_t n_parts;
};

/* As the writer counts them for all steps (rows_growth.c). */
static void add_group(struct recorded_survivors *survivors, const struct chosen *chosen,
		      const struct recorded_live_group *group)
{
	const struct steps *steps = chosen->steps;
	size_t step = torsh_steps_at(steps, group->first_ns);

	if (step == STEP_NONE || !torsh_window_has(chosen->window, group->first_ns))
		return;
	survivors->parts |= UINT64_C(1) << (step * chosen->n_parts / steps->n);
	if (step < (steps->n + 3) / 4)
		return;
	survivors->late_blocks += group->blocks;
	survivors->late_bytes += group->bytes;
	if (step < (steps->n + 1) / 2)
		survivors->early_blocks += group->blocks;
	if (step >= (3 * steps->n + 3) / 4)
		survivors->last_blocks += group->blocks;
}

static struct recorded_survivors survivors_of(const struct recorded_process *process,
					      const struct recorded_live *live,
					      const struct chosen *chosen)
{
	const struct recorded_survivors *of_all =
		torsh_recording_row(&process->survivors, live->stack, sizeof(*of_all));
	const struct recorded_live_group whole = {.first_ns = live->first_ns,
						  .last_ns = live->last_ns,
						  .blocks = live->blocks,
						  .bytes = live->bytes};
	struct recorded_survivors survivors = {.stack = live->stack,
					       .is_tensor = of_all && of_all->is_tensor};

	for (size_t i = 0; i < live->n_groups; i++)
		add_group(&survivors, chosen, &process->live_groups[live->group + i]);
	if (!live->n_groups)
		add_group(&survivors, chosen, &whole);
	return survivors;
}

static void choose_steps(struct steps *steps, const struct time_window *window)
{
	size_t n = 0;

	for (size_t i = 0; i < steps->n; i++) {
		if (torsh_window_overlaps(window, steps->items[i].start_ns, steps->items[i].end_ns))
			steps->items[n++] = steps->items[i];
	}
	steps->n = n;
}

void torsh_growth_restrict(struct recorded_process *process, struct steps *steps,
			   const struct time_window *window)
{
	struct chosen chosen = {.steps = steps, .window = window};
	const struct recorded_live *live = process->live.items;
	struct recorded_rows rows = {0};

	choose_steps(steps, window);
	if (steps->n >= STEPS_MIN)
		chosen.n_parts = steps->n < PARTS_MAX ? (uint32_t)steps->n : PARTS_MAX;
	for (size_t i = 0; chosen.n_parts && i < process->live.n; i++) {
		struct recorded_survivors survivors = survivors_of(process, &live[i], &chosen);

		if (!survivors.late_blocks)
			continue;
		rows.items =
			torsh_array_reserve(rows.items, rows.n, &rows.n_room, sizeof(survivors));
		((struct recorded_survivors *)rows.items)[rows.n] = survivors;
		torsh_row_index_add(&rows.row_of, survivors.stack, (uint32_t)rows.n++);
	}
	free(process->survivors.items);
	torsh_row_index_destroy(&process->survivors.row_of);
	process->survivors = rows;
	process->steps.n_steps = steps->n;
	process->steps.n_parts = chosen.n_parts;
	process->steps.late_steps = steps->n - (steps->n + 3) / 4;
}
