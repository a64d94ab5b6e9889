/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/timeline.h"

#include <string.h>

#include "tools/base/die.h"
#include "tools/store/recording_format.h"
#include "tools/store/recording_read.h"

/* Of the first message of a process: what was before it. */
static void take_passed(const struct recording *recording, const Torsh__Timeline *message,
			const struct recorded_process *seen)
{
	for (size_t i = 0; i < recording->n_processes; i++) {
		struct recorded_process *process = recording->processes[i];

		if (process != seen)
			continue;
		if (!process->has_timeline_begin ||
		    message->events_before < process->timeline_passed) {
			process->timeline_passed = message->events_before;
			process->timeline_passed_steps = message->steps_before;
		}
		process->has_timeline_begin = true;
	}
}

static int walk_message(const struct recording *recording, const Torsh__Timeline *message,
			timeline_visit *visit, void *context)
{
	const struct recorded_process *process =
		torsh_recording_process(recording, message->process);
	struct timeline_reader *reader;
	struct timeline_event event;
	int rc, result = 0;

	if (!process)
		return 0;
	if (message->has_events_before)
		take_passed(recording, message, process);
	rc = torsh_timeline_open(&reader, message->n_events, message->columns.data,
				 message->columns.len);
	if (rc == 0) {
		while (!result && (rc = torsh_timeline_next(reader, &event)) == 1)
			result = visit(context, process, &event);
		torsh_timeline_close(reader);
	}
	if (rc < 0)
		torsh_warn(
			"part of the timeline of process %u is damaged: what could be read of it is used",
			process->pid);
	return result;
}

int torsh_timeline_visit(const struct recording *recording, timeline_visit *visit, void *context)
{
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	char why[256];
	int rc = torsh_recording_open(&reader, recording->path, why, sizeof(why)), result = 0;

	if (rc < 0)
		return rc;
	torsh_recording_skip(reader, CHUNK_TABLES | CHUNK_TOTALS | CHUNK_EVENTS | CHUNK_END);
	while (!result && (rc = torsh_recording_next(reader, &chunk)) == 1) {
		for (size_t i = 0; i < chunk->n_timeline && !result; i++)
			result = walk_message(recording, chunk->timeline[i], visit, context);
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	torsh_recording_close(reader);
	return result ? result : rc;
}

const char *torsh_timeline_label(const struct recorded_process *process, uint32_t label)
{
	if (!label || label > process->tables->n_functions)
		return NULL;
	return process->tables->functions[label - 1].name;
}
