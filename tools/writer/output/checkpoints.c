/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/checkpoints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/base/memory.h"

#define FIRST_CHECKPOINT_NS UINT64_C(250000000)
#define CHECKPOINT_COST 100u /* at most one part in so many of the time */

int torsh_ledger_open(struct ledger *ledger, int fd, const struct recording_limits *limits, int is_full,
		      uint64_t interval_ns)
{
	uint64_t first_ns = interval_ns < FIRST_CHECKPOINT_NS ? interval_ns : FIRST_CHECKPOINT_NS;
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	*ledger = (struct ledger){
		.file = torsh_recording_create(fd, limits,
					       (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec),
		.is_full = is_full,
		.interval_ns = interval_ns,
		.next_checkpoint_ns = torsh_ticks_monotonic_ns() + first_ns,
		.step_ns = first_ns,
		.syncer = torsh_syncer_start(fd),
	};
	return ledger->file ? 0 : -ENOMEM;
}

void torsh_ledger_destroy(struct ledger *ledger)
{
	torsh_syncer_stop(ledger->syncer);
	for (uint32_t i = 0; i < ledger->n_reasons; i++)
		free(ledger->reasons[i]);
	free(ledger->reasons);
}

void torsh_ledger_give_reason(struct ledger *ledger, const char *format, const char *why)
{
	char text[LEDGER_REASON_BYTES];

	snprintf(text, sizeof(text), format, why);
	for (uint32_t i = 0; i < ledger->n_reasons; i++) {
		if (!strcmp(ledger->reasons[i], text))
			return;
	}
	ledger->reasons = torsh_memory_grow(ledger->reasons, &ledger->reason_capacity, ledger->n_reasons,
					    sizeof(*ledger->reasons));
	ledger->reasons[ledger->n_reasons++] = torsh_memory_text(text);
	fprintf(stderr, "torsh: %s\n", text);
}

void torsh_ledger_close(struct ledger *ledger, int is_complete, uint64_t at_ns)
{
	const char *missed = torsh_recording_missed(ledger->file);
	struct rows_end end;

	if (missed)
		torsh_ledger_give_reason(ledger, "some of what was known at the end is not in the recording: %s", missed);
	end = (struct rows_end){
		.is_complete = is_complete && !missed,
		.at_ns = at_ns,
		.reasons = ledger->reasons,
		.n_reasons = ledger->n_reasons,
		.cost = &ledger->cost,
	};
	torsh_recording_give_back(ledger->file, ledger->checkpoint);
	torsh_rows_end(ledger->file, &end);
	torsh_recording_finish(ledger->file);
	ledger->file = NULL;
}

void torsh_ledger_look(struct ledger *ledger)
{
	const char *events = torsh_recording_stopped(ledger->file, RECORDING_EVENTS);
	const char *last = torsh_recording_stopped(ledger->file, RECORDING_LAST);
	const char *checkpoint = torsh_recording_stopped(ledger->file, RECORDING_CHECKPOINT);

	if (last)
		torsh_ledger_give_reason(ledger, "the recording stopped: %s", last);
	else if (checkpoint)
		torsh_ledger_give_reason(ledger, "stopped writing until the end: %s", checkpoint);
	else if (events && ledger->is_full)
		torsh_ledger_give_reason(ledger, "stopped keeping events, all else goes on: %s", events);
}

void torsh_ledger_events(struct ledger *ledger, struct target *target, uint32_t n_least)
{
	struct tally *tally = &target->tally;
	uint32_t n_lost = torsh_rows_events(ledger->file, target, n_least);

	if (!n_lost && !tally->columns_failed)
		return;
	if (tally->columns_failed)
		torsh_ledger_give_reason(ledger, "stopped keeping events, all else goes on: %s", strerror(-tally->columns_failed));
	else
		tally->columns_failed = -ENOSPC;
	tally->losses[WRITER_LOSS_events_unkept] += n_lost + (tally->columns ? torsh_columns_count(tally->columns) : 0);
	torsh_tally_note(tally, "not all events were kept in the recording; the totals have them all");
	torsh_columns_destroy(tally->columns);
	tally->columns = NULL;
	torsh_ledger_look(ledger);
}

void torsh_ledger_timeline(struct ledger *ledger, struct target *target, uint32_t n_least)
{
	struct tally *tally = &target->tally;

	uint32_t n_lost = torsh_rows_timeline(ledger->file, target, n_least);

	if (!n_lost && !tally->timeline_failed)
		return;
	if (!tally->timeline_failed)
		tally->timeline_failed = -ENOSPC;
	tally->losses[WRITER_LOSS_timeline_unkept] += n_lost + (tally->timeline ? torsh_timeline_count(tally->timeline) : 0);
	torsh_tally_note(tally, "not all of the timeline was kept in the recording: %s", strerror(-tally->timeline_failed));
	torsh_timeline_destroy(tally->timeline);
	tally->timeline = NULL;
	torsh_ledger_look(ledger);
}

void torsh_ledger_checkpoint(struct ledger *ledger, struct target *target)
{
	if (target->n_written == target->tally.n_folded)
		return;
	target->n_written = target->tally.n_folded;
	torsh_ledger_events(ledger, target, 1);
	torsh_ledger_timeline(ledger, target, 1);
	torsh_rows_target(ledger->file, target, RECORDING_CHECKPOINT);
}

void torsh_ledger_end_checkpoint(struct ledger *ledger, uint64_t begin_ns, uint64_t at_ns)
{
	uint64_t took_ns, pause_ns;

	torsh_rows_checkpoint(ledger->file, at_ns, &ledger->cost, &ledger->checkpoint);
	if (ledger->syncer)
		torsh_syncer_request(ledger->syncer);
	took_ns = torsh_ticks_monotonic_ns() - begin_ns;
	pause_ns = took_ns * CHECKPOINT_COST;
	if (pause_ns < ledger->step_ns)
		pause_ns = ledger->step_ns;
	ledger->step_ns = ledger->step_ns * 2 < ledger->interval_ns ? ledger->step_ns * 2 : ledger->interval_ns;
	ledger->next_checkpoint_ns = begin_ns + pause_ns;
}
