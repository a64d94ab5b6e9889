/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The row of an unfollowed process: what its starter reported, and how it ended if that is known.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/writer/input/unfollowed.h"
#include "tools/writer/output/rows/rows_parts.h"

#define ARGUMENTS_MAX 512u /* strings: the event's text has no room for more */

static const char *const problems[N_PROGRAM_PROBLEMS] = {
	[PROGRAM_STATIC] = "is statically linked: there is no loader that would preload the agent",
	[PROGRAM_PRIVILEGED] =
		"gains privileges (setuid, setgid or capabilities): the loader drops the agent",
	[PROGRAM_FOREIGN] = "is of another architecture than the agent",
	[PROGRAM_OTHER_LIBC] =
		"runs on another C library than the GNU one, for which the agent is made",
	[PROGRAM_WITHOUT_AGENT] =
		"can't load the agent: its file is not in the program's root directory",
	[PROGRAM_UNDER_FILTER] =
		"runs under a filter of system calls (seccomp) that its process put on itself: the start of a "
		"recording might end it",
	[PROGRAM_SANITIZED] =
		"is built with a sanitizer, whose runtime ends a program in which another library is loaded first",
};

/* Returns the string after the one at text, before the end; NULL if there is none. */
static char *next_string(char *text, const char *end)
{
	if (!text)
		return NULL;
	text += strlen(text) + 1;
	return text < end ? text : NULL;
}

static void put_end(Torsh__Process *row, const struct unfollowed *unfollowed)
{
	int fate = atomic_load_explicit(&unfollowed->fate, memory_order_relaxed);

	row->has_end = true;
	row->end = TORSH__PROCESS__END_KIND__RUNNING;
	if ((fate == TARGET_LIVES || fate == TARGET_LEFT) && !unfollowed->has_executed)
		return;
	if (unfollowed->has_end_ns)
		ROWS_SET(row, end_ns, unfollowed->end_ns);
	if (fate == TARGET_EXECUTED || unfollowed->has_executed)
		row->end = TORSH__PROCESS__END_KIND__EXECUTED;
	else if (!torsh_rows_put_wait_status(row, unfollowed->wait_status))
		row->end = TORSH__PROCESS__END_KIND__VANISHED;
}

static void put_unfollowed(Torsh__Process *row, struct rows_memory *memory,
			   const struct unfollowed *unfollowed)
{
	const char *end = unfollowed->text + unfollowed->n_text;
	char *text = unfollowed->n_text ? unfollowed->text : NULL;

	ROWS_SET(row, process, unfollowed->number);
	ROWS_SET(row, pid, unfollowed->pid);
	ROWS_SET(row, parent_pid, unfollowed->parent_pid);
	if (unfollowed->is_image)
		ROWS_SET(row, executed_from, unfollowed->starter);
	ROWS_SET(row, start_ns, unfollowed->start_ns);
	row->program = text;
	text = next_string(next_string(text, end), end);
	ROWS_COLUMN(memory, row, arguments, ARGUMENTS_MAX);
	for (row->n_arguments = 0; text && row->n_arguments < ARGUMENTS_MAX;
	     text = next_string(text, end))
		row->arguments[row->n_arguments++] = text;
	put_end(row, unfollowed);
}

void torsh_rows_unfollowed(struct recording_file *file, const struct unfollowed *unfollowed)
{
	Torsh__Process process = TORSH__PROCESS__INIT;
	Torsh__Unfollowed row = TORSH__UNFOLLOWED__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	char reason[512];
	const char *end = unfollowed->text + unfollowed->n_text;
	const char *culprit = unfollowed->n_text ? next_string(unfollowed->text, end) : NULL;
	bool is_script = culprit && *culprit;

	snprintf(reason, sizeof(reason), "%s%s %s", is_script ? "its interpreter " : "it",
		 is_script ? culprit : "", problems[unfollowed->problem]);
	put_unfollowed(&process, &memory, unfollowed);
	row.process = &process;
	row.reason = reason;
	chunk.n_unfollowed = 1;
	chunk.unfollowed = &rows;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
	torsh_rows_free(&memory);
}
