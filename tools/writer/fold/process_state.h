/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The state of one process image, folded from its events in time order. merge.h fills it and rows.h
 * writes it; it does not depend on channels or files. process_timeline.h has the events of the
 * timeline. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PROCESS_STATE_H
#define TORSH_WRITER_FOLD_PROCESS_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/base/containers/key_index.h"
#include "tools/store/events_columns.h"
#include "tools/store/timeline_columns.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/mappings.h"
#include "tools/writer/fold/resident_peak.h"
#include "tools/writer/fold/program/process_code.h"
#include "tools/writer/fold/program/program_tables.h"
#include "tools/writer/fold/session_heap.h"
#include "tools/writer/fold/step_marks.h"
#include "tools/writer/fold/tables/step_pace.h"
#include "tools/writer/fold/tables/device_sum.h"
#include "tools/writer/fold/calls/paused_events.h"
#include "tools/writer/fold/calls/library_calls.h"
#include "tools/writer/fold/tables/series.h"
#include "tools/writer/fold/tables/tensor_reads.h"
#include "tools/writer/fold/tasks/tasks.h"
#include "tools/writer/fold/calls/thread_waits.h"
#include "tools/writer/input/clock_conversion.h"
#include "tools/writer/input/ring_consumer.h"

#define PROCESS_STATE_NOTES_MAX 64u
#define PROCESS_STATE_NOTE_BYTES 1024u /* what is longer is cut */

/*
 * One use of a slot: a thread, or the signal handlers that interrupt its hooks. The number in
 * state.threads identifies it in the recording, because thread ids are reused. Times have the clock
 * rate of their moment.
 */
struct folded_thread {
	uint32_t tid;
	bool is_interrupt;
	bool is_changed; /* since the last checkpoint */
	char name[16];
	uint64_t start_ns; /* as in events of that moment: fixed when the thread starts */
	uint64_t end_stamp; /* of its last event */
	uint64_t allocs, alloc_bytes, frees;
	uint64_t dropped;
};

/* The heap at a fork: what the child inherits. */
struct folded_fork {
	uint32_t child; /* pid in the process's own namespace */
	uint64_t blocks, bytes; /* of its own */
	uint64_t n_unknown_frees; /* so far; in a forked child, of inherited blocks */
};

/* A program event that waits for torsh_unfollowed_take. */
struct folded_program {
	uint64_t stamp;
	uint64_t begin_monotonic_ns; /* before the child could run; 0: the stamp's */
	uint32_t child, problem, text, length;
};

/* An out-of-memory error of a framework allocator. */
struct folded_out_of_memory {
	uint64_t stamp;
	uint32_t operator, module; /* labels of the thread's current scope; 0: none */
	struct event_out_of_memory event;
};

/* What a flight recorder (output/flight.h) has let pass of a timeline. */
struct timeline_passed {
	uint64_t n_events; /* that are no longer in the recording */
	uint64_t from_ns; /* session time of the first one that is */
};

enum writer_loss {
#define LOSS(name, kind, text) WRITER_LOSS_##name,
#include "tools/writer/output/losses.def"
#undef LOSS
	N_WRITER_LOSSES
};

struct process_state {
	const struct channel_view *view;
	struct clock_conversion clock;
	struct program_tables *tables;
	struct process_code code;
	struct heap heap;
	struct mappings mappings;
	struct series series;
	struct resident_peak resident;
	uint64_t next_due_stamp; /* of a point of the series, or of the resident set's moment */
	struct folded_thread *threads;
	uint32_t n_threads;
	size_t thread_capacity;
	struct key_index threads_by_tid; /* that began last; without interrupts */
	struct folded_fork *forks;
	uint32_t n_forks;
	size_t fork_capacity;
	struct folded_program *programs; /* that wait for torsh_unfollowed_take, in order */
	uint32_t n_programs;
	size_t program_capacity;
	char *notes[PROCESS_STATE_NOTES_MAX];
	uint32_t n_notes;

	uint64_t *pause_edges; /* stamps at which pauses begin, end, begin, ... */
	uint32_t n_pause_edges;
	size_t pause_edge_capacity;
	uint32_t n_edges_passed; /* edges before the last folded event; odd: in a pause */
	uint64_t next_pause_edge; /* first edge after the last folded event */
	struct paused_events paused; /* what began in pauses and has not ended */

	uint64_t last_stamp;
	uint64_t n_folded, late_events;
	uint64_t lost_allocs, lost_frees, lost_others;
	uint64_t losses[N_WRITER_LOSSES]; /* except those that target.c computes from rings */
	uint64_t rss_bytes; /* as last sampled; goes into the series */
	bool has_exited; /* an EXIT event was seen */
	uint32_t exit_how; /* enum exit_how, from the EXIT event */
	int32_t exit_status;
	uint64_t exit_stamp;
	bool has_executed; /* an EXEC event that has not failed was seen */
	uint64_t exec_stamp; /* of that EXEC event */
	uint64_t exec_own_stamp; /* the same, on its thread's clock */
	uint32_t exec_thread; /* its thread */

	/* joined by the heap when the process forks or earlier; NULL: none */
	struct session_heap *session_heap;
	uint32_t process; /* number in the session */
	struct columns_writer *columns; /* NULL: events are not kept */
	int columns_failed; /* -errno: from then on no event is stored */
	struct step_marks steps;
	struct step_pace pace;
	bool has_hung; /* no step began for too long: since then none has */
	uint64_t first_edge_stamp; /* of the first mark, region or step; 0: none */
	struct scopes scopes;
	struct tensor_reads reads;
	struct thread_waits waits;
	struct library_calls library_calls;
	struct tasks tasks;
	struct folded_out_of_memory out_of_memory; /* the latest one */
	bool has_refusals; /* of the driver: noted once */
	bool is_out_of_memory; /* nothing is folded until torsh_out_of_memory_keep has cleared it */
	struct timeline_writer *timeline; /* NULL: not created yet, or not stored any more */
	int timeline_failed; /* -errno, as columns_failed */
	/* of a flight recorder: what the rest of the timeline refers to. NULL: part of the rest */
	struct timeline_writer *definitions;
	struct timeline_passed passed;
	uint64_t timeline_first_ns, timeline_last_ns; /* of the events in timeline */
	uint64_t timeline_steps, timeline_events; /* before the first of these: begun; written */
	/* device memory changes are in the timeline, with marks of the heap between them */
	bool has_device_memory;
	struct device_sum devices;
	bool has_operators, has_devices; /* it ran operators, it launched work of devices */
	bool has_asked_driver; /* for a device's memory, since the drain cleared it */
	bool has_cpu_counters; /* its threads have counters of the CPU, or would have */
	uint32_t device_thread; /* of the latest change */
	/* of torch.distributed's default group, else of MPI_COMM_WORLD; rank + 1, 0: none */
	uint32_t world_rank, world_size;
	bool has_c10d_world; /* they are torch.distributed's */
};

/*
 * Create the state of the process with that number in the session, as a user of the tables. view
 * and clock stay the caller's; view must outlive the state.
 */
void torsh_process_state_create(struct process_state *state, const struct channel_view *view,
				const struct clock_conversion *clock, struct program_tables *tables,
				uint32_t process);

/* The resident set was sampled at the stamp. */
void torsh_process_state_sample(struct process_state *state, uint64_t stamp, uint64_t rss_bytes);

/* All events are folded: a sample has its moment even if none came after it. */
void torsh_process_state_end_samples(struct process_state *state);

/* No event is folded any more: free what only looks up stacks, sites and addresses. */
void torsh_process_state_end_folding(struct process_state *state);

/*
 * After its last rows were written: free its moments and, if no other process has them, its stacks,
 * which nothing else reads.
 */
void torsh_process_state_free_tables(struct process_state *state);

/* Free the state. */
void torsh_process_state_destroy(struct process_state *state);

/* The session has a second process: add the heap to the session-wide sum, if there is one. */
void torsh_process_state_join(struct process_state *state);

/* Add a sentence to the report; each sentence is stored once. */
void torsh_process_state_note(struct process_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Remove the first sentence with that beginning. Returns false if there is none. */
bool torsh_process_state_forget_note(struct process_state *state, const char *beginning);

/* Begin a pause at this stamp, or end the current one. Stamps of edges never decrease. */
void torsh_process_state_add_pause_edge(struct process_state *state, uint64_t stamp);

/* Add a thread; none of its events is before that stamp. Returns its number, which is unique. */
uint32_t torsh_process_state_add_thread(struct process_state *state, uint32_t tid, const char *name,
					bool is_interrupt, uint64_t stamp);

/* Returns the thread with that tid that was added last, without interrupts; UINT32_MAX: none. */
uint32_t torsh_process_state_thread(const struct process_state *state, uint32_t tid);

/* Fold the ring consumer's event number i. */
void torsh_process_state_fold(struct process_state *state, struct ring_consumer *consumer,
			      uint32_t i);

/*
 * Returns true if the last event of a thread is an exec that has not failed. If more events follow,
 * a signal handler jumped out of the call before it could fail. Valid as of the last time that the
 * thread's counts were added.
 */
bool torsh_process_state_is_executing(const struct process_state *state);

/* Add the counts of a finished ring consumer; a pending realloc is cancelled. */
void torsh_process_state_end_consumer(struct process_state *state, struct ring_consumer *consumer);

#endif
