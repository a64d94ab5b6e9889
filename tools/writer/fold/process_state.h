/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The state of one process image, folded from its events in the order of time. It is filled by
 * merge.h and written down by rows.h, and independent of channels and files. Owned by the drain
 * thread.
 */
#ifndef TORSH_WRITER_FOLD_PROCESS_STATE_H
#define TORSH_WRITER_FOLD_PROCESS_STATE_H

#include <stdbool.h>

#include "tools/store/events_columns.h"
#include "tools/store/timeline_columns.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/mappings.h"
#include "tools/writer/fold/session_heap.h"
#include "tools/writer/fold/step_marks.h"
#include "tools/writer/fold/tables/code_table.h"
#include "tools/writer/fold/tables/series.h"
#include "tools/writer/input/clock_conversion.h"
#include "tools/writer/input/ring_consumer.h"

#define PROCESS_STATE_NOTES_MAX 64u

/*
 * One use of a slot: a thread, or its interrupted hooks. Its number in state.threads is its
 * identity in the recording: tids come back, and times are as exact as the clock's rate of their
 * moment.
 */
struct folded_thread {
	uint32_t tid;
	bool is_interrupt;
	bool is_changed; /* since the last checkpoint */
	char name[16];
	uint64_t start_ns; /* as events of that moment have it: written once and for all */
	uint64_t end_stamp; /* of its last event */
	uint64_t allocs, alloc_bytes, frees;
	uint64_t dropped;
};

/* The heap at the moment of a fork: what the child inherited. */
struct folded_fork {
	uint32_t child; /* pid as the process saw it */
	uint64_t blocks, bytes; /* of its own */
	uint64_t n_unknown_frees; /* so far: in a fork, of blocks that it had inherited */
};

/* A program event, until it is taken. */
struct folded_program {
	uint64_t stamp;
	uint32_t child, problem, text, length;
};

/* An allocator of the framework ran out of memory. */
struct folded_out_of_memory {
	uint64_t stamp;
	uint32_t operator, module; /* labels of what its thread was in, 0: none */
	struct event_out_of_memory event;
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
	struct code_table code;
	struct stack_table stacks;
	struct heap heap;
	struct mappings mappings;
	struct series series;
	struct folded_thread *threads;
	uint32_t n_threads, thread_capacity;
	struct folded_fork *forks;
	uint32_t n_forks, fork_capacity;
	struct folded_program *programs; /* not taken yet, in order */
	uint32_t n_programs, program_capacity;
	char *notes[PROCESS_STATE_NOTES_MAX];
	uint32_t n_notes;

	uint64_t *pause_edges; /* stamps at which a pause began, ended, began, ... */
	uint32_t n_pause_edges, pause_edge_capacity;
	uint32_t n_edges_passed; /* edges before what was folded; odd: in a pause */
	uint64_t next_pause_edge; /* the first one after it */

	uint64_t last_stamp;
	uint64_t n_folded, late_events;
	uint64_t lost_allocs, lost_frees, lost_others;
	uint64_t losses[N_WRITER_LOSSES]; /* but for those that target.c works out from rings */
	uint64_t rss_bytes; /* as last read, for the series */
	bool has_exited; /* an EXIT event was seen */
	uint32_t exit_how; /* enum exit_how, from the EXIT event */
	int32_t exit_status;
	uint64_t exit_stamp;
	bool has_executed; /* an EXEC event that hasn't failed was seen */
	uint64_t exec_stamp; /* of that */
	uint64_t exec_own_stamp; /* the same as its thread has it */
	uint32_t exec_thread; /* whose it was */

	/* that the heap joins when the process forks, unless it did before; NULL: none */
	struct session_heap *session_heap;
	uint32_t process; /* number in the session */
	struct columns_writer *columns; /* NULL: events are not kept */
	int columns_failed; /* -errno: an event could not be kept, and none is from there on */
	struct step_marks steps;
	struct scopes scopes;
	struct folded_out_of_memory out_of_memory; /* the last one */
	bool has_refusals; /* of the driver: noted once */
	bool is_out_of_memory; /* nothing is folded until torsh_out_of_memory_keep has cleared it */
	struct timeline_writer *timeline; /* NULL: it has none yet, or is not kept any more */
	int timeline_failed; /* the same */
	/* the timeline has changes of it, and marks of the heap beside these */
	bool has_device_memory;
	uint32_t device_thread; /* of the last one */
};

/* view and clock stay the caller's; view must outlive the process state. */
void torsh_process_state_create(struct process_state *state, const struct channel_view *view,
				const struct clock_conversion *clock);

/* Free the state. */
void torsh_process_state_destroy(struct process_state *state);

/*
 * The process is not the session's only one: its heap joins the session's sum, where there is one.
 */
void torsh_process_state_join(struct process_state *state);

/* A sentence for the report; each is kept once. */
void torsh_process_state_note(struct process_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A pause begins, or the one that lasts ends, at this stamp, which is not below that of any edge
 * before.
 */
void torsh_process_state_add_pause_edge(struct process_state *state, uint64_t stamp);

/*
 * A new thread, whose first event is not before that stamp. Returns its number, which no other
 * thread will have.
 */
uint32_t torsh_process_state_add_thread(struct process_state *state, uint32_t tid, const char *name,
					bool is_interrupt, uint64_t stamp);

/* Fold the ring consumer's event number i. */
void torsh_process_state_fold(struct process_state *state, struct ring_consumer *consumer,
			      uint32_t i);

/*
 * The timeline so far is going to be written: what the heap was since the last change of devices'
 * memory belongs to it.
 */
void torsh_process_state_mark_heap(struct process_state *state);

/*
 * Was an exec that hasn't failed the last event of its thread? Where more events follow, a signal
 * handler's jump has left the call before it could fail. As of the last time that the thread's
 * counts were taken over.
 */
bool torsh_process_state_is_executing(const struct process_state *state);

/* Take over the counts of a ring consumer that is done; a realloc under way is given up. */
void torsh_process_state_end_consumer(struct process_state *state, struct ring_consumer *consumer);

#endif
