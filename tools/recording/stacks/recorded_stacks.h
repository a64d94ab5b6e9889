/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks of threads at one moment: of a hang, or of a snapshot with them. */
#ifndef TORSH_RECORDING_STACKS_RECORDED_STACKS_H
#define TORSH_RECORDING_STACKS_RECORDED_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"

struct recorded_thread_frame {
	char *function, *place; /* function "": not known */
	bool is_python;
};

/* Innermost frames first. */
struct recorded_thread_stack {
	uint32_t pid, tid;
	uint64_t at_ns;
	char *name, *state;
	char *reason; /* why there are no frames, or not all; NULL: all are there */
	struct recorded_thread_frame *frames;
	size_t n_frames;
};

struct recorded_thread_stacks {
	struct recorded_thread_stack *items;
	size_t n, n_room;
};

/* Take a row. Returns false if it is no whole one. */
bool torsh_recorded_stacks_take(struct recorded_thread_stacks *stacks,
				const Torsh__ThreadStack *row);

/* Free them. */
void torsh_recorded_stacks_free(struct recorded_thread_stacks *stacks);

#endif
