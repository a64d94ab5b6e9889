/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes the rows of targets as messages of recording.proto: new rows of tables, changed rows of
 * totals. Each call appends some chunks; rows that do not fit are left out, and the recording
 * contains the reason.
 */
#ifndef TORSH_WRITER_OUTPUT_ROWS_ROWS_H
#define TORSH_WRITER_OUTPUT_ROWS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/store/recording_write.h"
#include "tools/writer/budget/cost.h"
#include "tools/writer/input/target.h"
#include "tools/writer/output/symbol_book.h"

struct flight;
struct nvml_use;
struct traffic_point;
struct traffic_state;
struct unfollowed;

/* How much of a target has been written. */
struct rows_state {
	uint32_t n_placed; /* of its process_code, when its placements were written */
	bool is_alone; /* it has its own tables in the file */
	bool has_missed; /* some totals could not be written */

	/*
	 * Extents of totals that a later checkpoint replaces: one with all rows, then those with
	 * changes.
	 */
	struct extent waits_extent; /* of the waits, in one chunk */
	uint64_t n_waits_written; /* thread_waits.n_taken then */
	struct extent tasks_extent; /* likewise, of the requests and tasks */
	uint64_t n_tasks_written;
	struct extent *extents;
	uint32_t n_extents, n_base;
	size_t extent_capacity;
};

struct rows_session {
	uint64_t start_realtime_ns; /* the zero of all times */
	const char *record; /* how much is kept: "folded", "full", "ring:60s"; NULL: not said */
	bool without_flops;
	uint64_t kernel_clock, start_monotonic_ns; /* kernel_clock 0: unknown */
	/* the writer is killed when the session's first process ends, because that is process 1 */
	bool ends_with_process_1;
	uint64_t *paused_ns, *resumed_ns; /* pauses of the recording */
	uint32_t n_paused, n_resumed;
	const char *recording; /* NULL; in a snapshot: the path of the session's recording */
	uint64_t taken_ns; /* in a snapshot: its time */
};

/* Write the session's row; repeated whenever it changes. */
void torsh_rows_session(struct recording_file *file, const struct rows_session *session);

/* Who used a device: a row that is added. Times in *use become those of the session. */
void torsh_rows_device_use(struct recording_file *file, const struct nvml_use *use,
			   uint64_t begin_ns, uint64_t end_ns);

/* What memory controllers moved: a row with further points; at_ns are times of the session. */
void torsh_rows_memory_traffic(struct recording_file *file, const struct traffic_state *state,
			       const struct traffic_point *points, size_t n);

/* Write only the process's row, as soon as it is known. */
void torsh_rows_process(struct recording_file *file, const struct target *target);

/* Free the state; NULL is ignored. */
void torsh_rows_state_destroy(struct rows_state *state);

/*
 * A complete checkpoint of the session is written, as of that session time. *extent: of the
 * previous one, or empty.
 */
void torsh_rows_checkpoint(struct recording_file *file, uint64_t at_ns, const struct cost *cost,
			   struct extent *extent);

/* Write everything that changed since the last call; worth RECORDING_LAST: the final rows. */
void torsh_rows_target(struct recording_file *file, struct target *target,
		       enum recording_priority priority);

/*
 * Write what the targets' recording lacks so far into another file, which is read after that
 * recording. Returns 0, or -EIO if something could not be written.
 */
int torsh_rows_snapshot(struct recording_file *file, struct target *const *targets, uint32_t n);

/*
 * Write everything of a target into a separate file. Returns 0, or -EIO if something could not be
 * written.
 */
int torsh_rows_target_alone(struct recording_file *file, struct target *target);

/*
 * Write into a separate file: the process with its heap, and at most n_most stacks of one frame:
 * the attributed frames (attributed_frame.h) with the most live bytes. Numbers of stacks,
 * addresses, modules and functions are valid only in this file. Returns 0 or -errno.
 */
int torsh_rows_allocation_sites(struct recording_file *file, struct target *target,
				uint32_t n_most);

/*
 * Write the stored events if there are at least n_least. Returns the number of events that could
 * not be written.
 */
uint32_t torsh_rows_events(struct recording_file *file, struct target *target, uint32_t n_least);

/*
 * Write the timeline if it has at least n_least events; flight decides how long the recording has
 * them. Returns the number of events that could not be written.
 */
uint32_t torsh_rows_timeline(struct recording_file *file, struct flight *flight,
			     struct target *target, uint32_t n_least);

/*
 * Write function names for the addresses that the target referred to, from the files of its
 * modules, unless another process's end brought them. Call when it has ended or is about to; the
 * last process that has the tables brings all.
 */
void torsh_rows_symbols(struct recording_file *file, const struct target *target,
			struct symbol_book *book);

/* List the chunks that later ones replace. The caller frees items. */
struct rows_extents {
	struct extent *items;
	uint32_t n;
	size_t capacity;
};

/*
 * Write the session's current peak, in place of the rows at *extents, which were written last;
 * clock converts the sum's stamps.
 */
void torsh_rows_session_peak(struct recording_file *file, struct session_heap *session_heap,
			     const struct clock_conversion *clock, enum recording_priority priority,
			     struct rows_extents *extents);

/* Write the current row of an unfollowed process. */
void torsh_rows_unfollowed(struct recording_file *file, const struct unfollowed *unfollowed);

struct clock_found;

/* Write what was found at place `peer` of TORSH_PROFILER_CLOCK_PEERS since the last time. */
void torsh_rows_clocks(struct recording_file *file, uint32_t peer, const struct clock_found *found,
		       bool is_last);

struct rows_end {
	bool is_complete;
	uint64_t at_ns;
	char **reasons;
	uint32_t n_reasons;
	const struct cost *cost; /* NULL: no Writer row is written */
};

/* Write the End row, which is the last chunk. */
void torsh_rows_end(struct recording_file *file, const struct rows_end *end);

#endif
