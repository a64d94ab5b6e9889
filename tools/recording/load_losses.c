/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what the recording lacks of a process. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/load_parts.h"

static void add_loss(struct recorded_process *process, const char *cause, const char *text,
		     bool is_of_events, uint64_t count)
{
	if (!count)
		return;
	process->losses = torsh_need_items(process->losses, process->n_losses,
					   process->n_losses + 1, sizeof(*process->losses));
	process->losses[process->n_losses++] = (struct recorded_loss){
		.cause = torsh_need(strdup(cause)),
		.text = torsh_need(strdup(text && *text ? text : cause)),
		.is_of_events = is_of_events,
		.count = count,
	};
}

void torsh_load_forget_losses(struct recorded_process *process)
{
	for (size_t i = 0; i < process->n_losses; i++) {
		free(process->losses[i].cause);
		free(process->losses[i].text);
	}
	free(process->losses);
	process->losses = NULL;
	process->n_losses = 0;
}

/*
 * Older recordings have no causes of losses. They counted events that a signal handler lost,
 * neither as produced nor as dropped.
 */
static void take_old(struct recorded_process *process)
{
	uint64_t n_interrupts = 0;

	for (size_t i = 0; i < process->n_counters; i++) {
		if (strcmp(process->counters[i].name, "interrupts_lost") == 0)
			n_interrupts = process->counters[i].value;
	}
	add_loss(process, "ring_full", "events that were dropped", true, process->dropped);
	add_loss(process, "interrupts_lost",
		 "events of signal handlers that interrupted the recording of another event", true,
		 n_interrupts);
	process->dropped += n_interrupts;
	process->produced += n_interrupts;
}

void torsh_load_losses(struct recorded_process *process, const Torsh__Process *row)
{
	torsh_load_forget_losses(process);
	for (size_t i = 0; i < row->n_losses; i++) {
		const Torsh__Loss *loss = row->losses[i];

		add_loss(process, loss->cause ? loss->cause : "", loss->text, loss->of_events,
			 loss->count);
	}
	if (!row->n_losses)
		take_old(process);
}
