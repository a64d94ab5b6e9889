/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Makes a recording from a writer's answer to a snapshot request. */
#include <errno.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/live/live.h"
#include "tools/live/names.h"
#include "tools/store/recording_read.h"
#include "tools/store/recording_write.h"

/*
 * Copy all chunks except events from the recording behind fd, up to n_bytes, and collect their
 * names. Returns 0 or -errno.
 */
static int copy_chunks(int fd, uint64_t n_bytes, struct recording_file *to,
		       struct recording *recording)
{
	char *path = torsh_need_text("/proc/self/fd/%d", fd);
	struct recording_reader *from;
	Torsh__Chunk *chunk;
	int result = torsh_recording_open(&from, path, NULL, 0);

	free(path);
	if (result)
		return result;
	torsh_recording_end_at(from, n_bytes);
	/* The answer contains all totals: those of checkpoints are replaced during the read. */
	torsh_recording_skip(from, CHUNK_EVENTS | CHUNK_CHECKPOINT);
	while ((result = torsh_recording_next(from, &chunk)) == 1) {
		result = torsh_recording_append(to, chunk, RECORDING_LAST);
		if (!result)
			result = torsh_recording_load(recording, chunk);
		torsh__chunk__free_unpacked(chunk, NULL);
		if (result)
			break;
	}
	torsh_recording_close(from);
	return result;
}

static int append_stack(struct recording_file *file, const struct thread_stacks *stacks,
			const struct thread_stack *stack, uint64_t at_ns)
{
	Torsh__ThreadStack row = TORSH__THREAD_STACK__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	char state[] = {stack->state, '\0'};
	size_t n = stack->n_frames;
	int result;

	row.has_pid = row.has_tid = row.has_at_ns = true;
	row.pid = stacks->pid;
	row.tid = stack->tid;
	row.at_ns = at_ns;
	row.name = (char *)stack->name;
	row.state = state;
	row.reason = stack->reason;
	row.n_function = row.n_place = row.n_is_python = n;
	row.function = torsh_need_items(NULL, 0, n, sizeof(*row.function));
	row.place = torsh_need_items(NULL, 0, n, sizeof(*row.place));
	row.is_python = torsh_need_items(NULL, 0, n, sizeof(*row.is_python));
	for (size_t i = 0; i < n; i++) {
		row.function[i] = stack->frames[i].function ? stack->frames[i].function : "";
		row.place[i] = stack->frames[i].place;
		row.is_python[i] = stack->frames[i].is_python;
	}
	chunk.n_thread_stack = 1;
	chunk.thread_stack = &rows;
	result = torsh_recording_append(file, &chunk, RECORDING_LAST);
	free(row.function);
	free(row.place);
	free(row.is_python);
	return result;
}

int torsh_live_write_snapshot(const struct live_answer *answer, uint64_t start_realtime_ns,
			      const struct thread_stacks *stacks, int fd)
{
	const struct recording_limits none = {0};
	struct recording_file *file = torsh_recording_create(fd, &none, start_realtime_ns);
	struct recording *recording;
	int result;

	if (!file)
		return -ENOMEM;
	recording = torsh_recording_new("");
	result = copy_chunks(answer->fds[1], answer->reply.recording_bytes, file, recording);
	if (!result)
		result = copy_chunks(answer->fds[0], UINT64_MAX, file, recording);
	if (!result)
		result = torsh_live_append_names(file, recording);
	for (size_t i = 0; stacks && !result && i < stacks->n; i++)
		result = append_stack(file, stacks, &stacks->items[i], recording->snapshot_ns);
	torsh_recording_destroy(recording);
	torsh_recording_finish(file);
	return result;
}
