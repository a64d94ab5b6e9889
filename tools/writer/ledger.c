/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/writer/memory.h"

#define FIRST_CHECKPOINT_NS 250000000u
#define CHECKPOINT_NS 2000000000u
#define CHECKPOINT_COST 33u /* at most one part in so many of the time */
#define CHECKPOINT_AGE 64u /* at most so many while the session's age doubles, or so */
#define CHECKPOINT_BYTES_A_SECOND (32u << 10)
#define CHECKPOINT_SMALL_BYTES (64u << 10)
#define CHECKPOINT_SMALL_NS UINT64_C(60000000000)
#define CHECKPOINT_LARGE_NS UINT64_C(1800000000000)

int torsh_ledger_open(struct ledger *ledger, int fd, const struct recording_limits *limits, int is_full)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	*ledger = (struct ledger){
		.file = torsh_recording_create(fd, limits,
					       (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec),
		.is_full = is_full,
		.next_checkpoint_ns = torsh_ticks_monotonic_ns() + FIRST_CHECKPOINT_NS,
		.step_ns = FIRST_CHECKPOINT_NS,
	};
	return ledger->file ? 0 : -ENOMEM;
}

void torsh_ledger_destroy(struct ledger *ledger)
{
	for (uint32_t i = 0; i < ledger->n_reasons; i++)
		free(ledger->reasons[i]);
}

static void give_reason(struct ledger *ledger, const char *format, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), format, why);
	for (uint32_t i = 0; i < ledger->n_reasons; i++) {
		if (!strcmp(ledger->reasons[i], text))
			return;
	}
	if (ledger->n_reasons == LEDGER_REASONS_MAX)
		return;
	ledger->reasons[ledger->n_reasons++] = torsh_memory_text(text);
	fprintf(stderr, "torsh: %s\n", text);
}

void torsh_ledger_close(struct ledger *ledger, int is_complete, uint64_t at_ns)
{
	const char *missed = torsh_recording_missed(ledger->file);
	struct rows_end end;

	if (missed)
		give_reason(ledger, "some of what was known at the end is not in the recording: %s", missed);
	end = (struct rows_end){
		.is_complete = is_complete && !missed,
		.at_ns = at_ns,
		.reasons = ledger->reasons,
		.n_reasons = ledger->n_reasons,
	};
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
		give_reason(ledger, "the recording stopped: %s", last);
	else if (checkpoint)
		give_reason(ledger, "stopped writing until the end: %s", checkpoint);
	else if (events && ledger->is_full)
		give_reason(ledger, "stopped keeping events, all else goes on: %s", events);
}

void torsh_ledger_events(struct ledger *ledger, struct target *target, uint32_t n_least)
{
	struct tally *tally = &target->tally;
	uint32_t n_lost = torsh_rows_events(ledger->file, target, n_least);

	if (!n_lost && !tally->columns_failed)
		return;
	if (tally->columns_failed)
		give_reason(ledger, "stopped keeping events, all else goes on: %s", strerror(-tally->columns_failed));
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

uint64_t torsh_ledger_checkpoint(struct ledger *ledger, struct target *target)
{
	uint64_t n_before = torsh_recording_written(ledger->file), n_events;

	if (target->n_written == target->tally.n_folded)
		return 0;
	target->n_written = target->tally.n_folded;
	torsh_ledger_events(ledger, target, 1);
	torsh_ledger_timeline(ledger, target, 1);
	n_events = torsh_recording_written(ledger->file) - n_before;
	torsh_rows_target(ledger->file, target, RECORDING_CHECKPOINT);
	return n_events;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Until the next checkpoint: seconds while they are cheap, for the time they take and for the room. A run of days whose
 * checkpoints are megabytes gets fewer and fewer of them, so that the file grows with the logarithm of its length.
 */
void torsh_ledger_pace(struct ledger *ledger, uint64_t begin_ns, uint64_t n_bytes, uint64_t age_ns)
{
	uint64_t age = age_ns / CHECKPOINT_AGE;
	uint64_t most = n_bytes > CHECKPOINT_SMALL_BYTES ? CHECKPOINT_LARGE_NS : CHECKPOINT_SMALL_NS;
	uint64_t pause = larger(ledger->step_ns, (torsh_ticks_monotonic_ns() - begin_ns) * CHECKPOINT_COST);

	if (ledger->step_ns < CHECKPOINT_NS)
		ledger->step_ns *= 2;
	pause = larger(pause, n_bytes * (1000000000u / CHECKPOINT_BYTES_A_SECOND));
	ledger->next_checkpoint_ns = begin_ns + larger(pause, age < most ? age : most);
}
