/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An unfollowed process: a program of the session into which nothing can be preloaded. The process
 * that starts it sends an event. If a process executes such a program itself, it becomes the
 * unfollowed process; a separate one is watched through its pidfd, if that could be opened before
 * it ended: then how and when it ended is known.
 *
 * Created and written by the drain thread. The control thread receives the ones to watch, and hands
 * each back by storing its fate.
 */
#ifndef TORSH_WRITER_INPUT_UNFOLLOWED_H
#define TORSH_WRITER_INPUT_UNFOLLOWED_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/store/recording_write.h"
#include "tools/writer/input/fork_ancestry.h"

struct unfollowed {
	uint32_t number; /* of unfollowed processes in the session: 1, 2, ... */
	uint32_t pid, parent_pid;
	uint32_t child; /* its pid in its starter's namespace */
	uint32_t starter; /* number of the process image that started it */
	bool is_image; /* the starter became it by exec */
	enum program_problem problem;
	char *text; /* strings: program, culprit, arguments */
	size_t n_text;
	uint64_t start_ns; /* on the session's clock */
	int pidfd, stat_fd; /* each may be -1 */

	uint64_t taken_monotonic_ns; /* when the writer received the event */
	bool is_written;

	/* enum target_fate. Stored last by the thread that watches it, after the next two fields */
	_Atomic int fate;
	uint64_t end_monotonic_ns;
	int wait_status; /* -1: unknown */
	bool has_executed; /* it has executed a program that can be followed */
	bool has_end_ns;
	uint64_t end_ns; /* on the session's clock */
	bool is_withdrawn; /* the start failed */
};

struct unfollowed_list {
	struct unfollowed **items;
	uint32_t n;
	size_t capacity;
	uint32_t n_ever;
	uint64_t zero_ns; /* monotonic time of the session's clock */
};

/*
 * Take the program events from the target's process state. watch is called with each new entry that
 * has a pidfd; its fate must be stored later.
 */
void torsh_unfollowed_take(struct unfollowed_list *unfollowed_list, struct target *target,
			   void (*watch)(void *context, struct unfollowed *), void *context);

/* The target has ended: so has the unfollowed process that it may have become. */
void torsh_unfollowed_leave(struct unfollowed_list *unfollowed_list, const struct target *target);

/* For a checkpoint: write and drop the rows of ended processes; running ones are written once. */
void torsh_unfollowed_write(struct unfollowed_list *unfollowed_list,
			    const struct fork_ancestry *ancestry, struct recording_file *file);

/* Write the rows of all, and free them. None may still be watched. */
void torsh_unfollowed_end(struct unfollowed_list *unfollowed_list,
			  const struct fork_ancestry *ancestry, struct recording_file *file);

#endif
