/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes the rows of targets in the messages of recording.proto: new rows of tables, changed rows
 * of totals. Each call appends some chunks; what doesn't fit any more is left out, and the
 * recording has the reason.
 */
#ifndef TORSH_WRITER_OUTPUT_ROWS_ROWS_H
#define TORSH_WRITER_OUTPUT_ROWS_ROWS_H

#include <stdbool.h>

#include "tools/store/recording_write.h"
#include "tools/writer/budget/cost.h"
#include "tools/writer/input/target.h"
#include "tools/writer/output/symbol_book.h"

struct unfollowed;

/* What was written of a target so far. */
struct rows_state {
	uint32_t n_modules, n_functions, n_addresses, n_stacks;
	uint32_t n_named; /* addresses whose functions' names were looked for */
	bool has_missed; /* totals could not be written */

	/*
	 * Where totals stand that a later checkpoint replaces: one of all rows, then those of what
	 * changed.
	 */
	struct extent *extents;
	uint32_t n_extents, extent_capacity, n_base;
};

struct rows_session {
	uint64_t start_realtime_ns; /* the zero of all times */
	bool is_full, without_flops;
	/* the writer is killed when the session's first process ends, which is process 1 */
	bool ends_with_process_1;
	uint64_t *paused_ns, *resumed_ns; /* when pauses began and ended */
	uint32_t n_paused, n_resumed;
	const char *recording; /* NULL; in a snapshot the path of the recording that goes on */
	uint64_t taken_ns; /* there: its moment */
};

/* The session's row; again whenever it has changed. */
void torsh_rows_session(struct recording_file *file, const struct rows_session *session);

/* The process's row alone, as soon as it is known. */
void torsh_rows_process(struct recording_file *file, const struct target *target);

void torsh_rows_state_destroy(struct rows_state *state); /* NULL: nothing */

/*
 * A checkpoint of the whole session is written, as of that session time. *extent: of the one
 * before, or none.
 */
void torsh_rows_checkpoint(struct recording_file *file, uint64_t at_ns, const struct cost *cost,
			   struct extent *extent);

/* Everything that changed since the last time; worth RECORDING_LAST: for good. */
void torsh_rows_target(struct recording_file *file, struct target *target,
		       enum recording_priority priority);

/*
 * Into another file, which is read after the target's recording: what that one lacks so far.
 * Returns 0, or -EIO when not all could be written.
 */
int torsh_rows_target_snapshot(struct recording_file *file, struct target *target);

/*
 * Write everything of a target into a file of its own. Returns 0, or -EIO when not all could be
 * written.
 */
int torsh_rows_target_alone(struct recording_file *file, struct target *target);

/*
 * Into a file of its own: the process with its heap, and at most n_most stacks of one frame: the
 * attributed frames (attributed_frame.h) with most live bytes. Numbers of stacks, addresses,
 * modules and functions are valid in this file only. Returns 0 or -errno.
 */
int torsh_rows_allocation_sites(struct recording_file *file, struct target *target,
				uint32_t n_most);

/* The kept events, if there are at least n_least of them. Returns how many could not be written. */
uint32_t torsh_rows_events(struct recording_file *file, struct target *target, uint32_t n_least);

/* The same of the timeline. */
uint32_t torsh_rows_timeline(struct recording_file *file, struct target *target, uint32_t n_least);

/*
 * Names of functions for its addresses, from the files of its modules; once it has ended, or is
 * about to.
 */
void torsh_rows_symbols(struct recording_file *file, const struct target *target,
			struct symbol_book *book);

/* Where chunks are that later ones replace. items is the owner's to free. */
struct rows_extents {
	struct extent *items;
	uint32_t n, capacity;
};

/*
 * The session's peak so far, in place of the rows that were written last, which are at *extents;
 * clock is that of the sum's stamps.
 */
void torsh_rows_session_peak(struct recording_file *file, struct session_heap *session_heap,
			     const struct clock_conversion *clock, enum recording_priority priority,
			     struct rows_extents *extents);

/* The row of a program that can't be followed, as it is known now. */
void torsh_rows_unfollowed(struct recording_file *file, const struct unfollowed *unfollowed);

struct rows_end {
	bool is_complete;
	uint64_t at_ns;
	char **reasons;
	uint32_t n_reasons;
	const struct cost *cost; /* NULL: no Writer row is written */
};

/* Write the End row: the last chunk. */
void torsh_rows_end(struct recording_file *file, const struct rows_end *end);

#endif
