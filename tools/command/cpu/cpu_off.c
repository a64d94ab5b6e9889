/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/cpu/cpu_off.h"

#include <stdlib.h>

#include "tools/base/die.h"

static void find_parts(struct cpu_off_view *view)
{
	view->parts = torsh_need_items(NULL, 0, view->prepass.n, sizeof(*view->parts));
	for (size_t i = 0; i < view->prepass.n; i++) {
		const struct prepass_process *of = &view->prepass.items[i];

		if (!torsh_process_attributes_find(&of->facts, "waits"))
			continue;
		view->is_recorded = true;
		if (!of->steps.n)
			continue;
		view->parts[i] = torsh_step_parts_find(view->reading->recording,
						       view->reading->processes[i], &view->prepass);
		view->n_steps += of->steps.n;
	}
}

void torsh_cpu_off(struct reading *reading, const struct read_options *options, bool is_gil)
{
	struct cpu_off_view view = {.reading = reading, .options = options, .is_gil = is_gil};
	uint32_t kinds = is_gil ? UINT32_C(1) << THREAD_WAIT_GIL : UINT32_MAX;

	torsh_reading_prepass(&view.prepass, reading, options);
	torsh_waits_collect(&view.waits, reading->processes, reading->n_processes, kinds);
	torsh_wait_wakers_collect(&view.wakers, reading->recording, reading->processes,
				  reading->n_processes, kinds);
	find_parts(&view);
	if (options->is_json)
		torsh_cpu_off_json(&view);
	else
		torsh_cpu_off_text(&view);
	for (size_t i = 0; i < view.prepass.n; i++)
		free(view.parts[i]);
	free(view.parts);
	torsh_wait_wakers_free(&view.wakers);
	torsh_waits_free(&view.waits);
	torsh_prepass_free(&view.prepass);
}
