/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/recording is a recording that was read; every report and exporter starts from it.
 *
 * A recording in memory: the contents of its chunks, put into tables per process. Reports and
 * exporters read it; it owns all that it points at. Rows are taken as tools/store/recording.proto
 * describes them: a later one replaces an earlier one with the same key, so that chunks can be
 * applied while a run goes on.
 *
 * The input is a file that anybody may have written: numbers out of range are dropped and counted
 * (n_bad_rows).
 */
#ifndef TORSH_RECORDING_RECORDING_H
#define TORSH_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"

#define PROFILE_NO_ROW UINT32_MAX
#define PROFILE_SEVERAL UINT32_MAX /* in place of a label: not always the same */
#define PROFILE_SIZE_CLASSES 65

struct recorded_module {
	uint64_t bias, start, end;
	char *path; /* "": memory without a file. NULL: the row never came */
	uint8_t *build_id;
	size_t n_build_id;
};

/* Of an interpreted language. */
struct recorded_function {
	char *name, *file; /* NULL: the row never came */
	uint32_t first_line;
};

struct recorded_address {
	uint64_t ip; /* with ADDRESS_PYTHON: the line, 0: none */
	uint32_t flags; /* enum channel_address_flag */
	uint32_t module; /* CHANNEL_NO_MODULE: none. With ADDRESS_PYTHON: number of a function */
	uint32_t symbol; /* index into the process's symbols, PROFILE_NO_ROW: none was found */
	uint64_t symbol_offset;
};

struct recorded_stack {
	uint32_t parent; /* always below the stack's own number; 0: this is the outermost frame */
	uint32_t address;
	uint32_t depth; /* frames of a recorded stack; 0: it was never sent, or a view made it */
};

/* What one stack allocated, and its shares; see StackTotals. */
struct recorded_total {
	uint32_t stack;
	uint32_t seen;
	uint64_t allocs, alloc_bytes;
	uint64_t temporary, temporary_bytes;
	uint64_t base_blocks, base_bytes;
	int64_t delta_blocks, delta_bytes;
	uint32_t operator, module; /* labels; 0: none, PROFILE_SEVERAL */
	/* numbers and 1; 0: in none */
	uint32_t first_step, last_step, base_first_step, base_last_step;
};

/* Some blocks of one stack: those that were allocated from the first to the last time. */
struct recorded_live_group {
	uint64_t first_ns, last_ns;
	uint64_t blocks, bytes;
};

/* Blocks of one stack that were live when the last Live was written. */
struct recorded_live {
	uint32_t stack;
	uint64_t blocks, bytes, usable_bytes;
	uint64_t first_ns, last_ns;
	uint32_t first_step, last_step; /* the same */
	uint64_t inherited_blocks, inherited_bytes;
	size_t group, n_groups; /* in the process's live_groups; 0: none are known */
};

struct recorded_mapping {
	uint32_t stack;
	uint32_t seen;
	int64_t base_pieces, base_bytes;
	int64_t delta_pieces, delta_bytes;
	uint64_t total_bytes;
};

/* See Growth. */
struct recorded_survivors {
	uint32_t stack;
	bool is_tensor;
	uint64_t parts, late_blocks, late_bytes;
	uint64_t early_blocks, last_blocks; /* 0: not counted, or none */
};

struct profile_steps {
	uint32_t rule; /* 0: no steps are known */
	uint32_t n_parts;
	uint64_t n_steps, late_steps;
};

/* At its number in the process: a tid comes back when its thread has ended. */
struct recorded_thread {
	bool is_known; /* false: its rows were lost */
	uint32_t tid;
	char *name;
	uint64_t start_ns, end_ns;
	uint64_t allocs, alloc_bytes, frees, dropped;
};

struct recorded_sample {
	uint64_t at_ns, heap_bytes, mapped_bytes, rss_bytes;
};

struct recorded_counter {
	char *name;
	uint64_t value;
};

/* Something that the recording lacks of a process. */
struct recorded_loss {
	char *cause, *text; /* text: a plural that a number can interpose */
	bool is_of_events; /* they are among those dropped */
	uint64_t count;
};

struct recorded_heap {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t current_bytes, current_blocks, current_usable_bytes;
	uint64_t allocs, frees, alloc_bytes, reallocs, temporary;
	uint64_t unknown_frees, pause_frees, implicit_frees, late_events;
	bool has_inherited_blocks,
		has_inherited_bytes; /* of a fork, where its parent could report */
	uint64_t inherited_blocks, inherited_bytes;
	uint64_t inherited_frees; /* ends of such blocks in the fork */
	uint64_t size_blocks[PROFILE_SIZE_CLASSES];
	/* ends of blocks by how long they lived; see Heap */
	size_t n_lifetimes; /* 0: not recorded, or none ended */
	struct recorded_lifetime {
		uint64_t from_ns, blocks, bytes;
	} lifetimes[PROFILE_SIZE_CLASSES];
};

/*
 * The sum of all processes' heaps at its highest moment; there where more than one process was
 * recorded.
 */
struct recorded_session {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t late_changes;
};

/* What a process's stack had of that. */
struct recorded_session_usage {
	uint32_t stack;
	uint64_t blocks, bytes;
	uint32_t first_step, last_step; /* the same */
};

/* Usage of a stack from a moment on. */
struct recorded_moment_usage {
	uint32_t stack;
	uint64_t bytes, blocks;
};

/* As in the message Moments. */
enum recorded_moment_kind {
	RECORDED_MOMENT_BY_TIME,
	RECORDED_MOMENT_BY_STEP,
	RECORDED_MOMENT_BY_MARK,
	N_RECORDED_MOMENT_KINDS
};

/* The heap at some time of the run. */
struct recorded_moment {
	uint32_t number;
	enum recorded_moment_kind kind;
	uint32_t name; /* the step that ended, and 1; the mark's label; 0: none */
	uint64_t at_ns, bytes, blocks;
	struct recorded_moment_usage *usages; /* that changed since the moment before */
	size_t n_usages, usages_room;
};

struct recorded_vm {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_ns, current_bytes;
	uint64_t maps, unmaps, advised_bytes;
};

/* Items in an array that grows; row_of finds one by its stack. */
struct recorded_rows {
	void *items;
	size_t n, n_room;
	uint32_t *row_of; /* by stack: index + 1, 0: none */
	size_t n_row_of;
};

struct stack_views;

/* A backward pass, with what follows until the optimizer is called. */
struct profile_pass {
	uint64_t start_ns, end_ns;
};

/* See Usage. */
struct recorded_usage {
	bool is_there;
	uint64_t minor_faults, major_faults, swap_peak_bytes;
	uint32_t n_cpus;
	uint64_t sampled_ns, oversubscribed_ns, runnable_ns;
};

struct recorded_process {
	uint32_t number, pid, parent_pid;
	uint32_t forked_from, executed_from; /* numbers of processes, 0: none */
	char *program;
	char **arguments;
	size_t n_arguments;
	uint64_t start_ns, end_ns;
	Torsh__Process__EndKind end;
	bool has_end_ns, has_end_code;
	bool ran_exit_handlers; /* false: not, or not known */
	int32_t end_code;
	char *allocator, *clock;
	char *lsan_suppressions; /* rules of the program's own, NULL: none */
	char *rank; /* NULL: no launcher gave it one */
	/*
	 * NULL, or why it was not recorded: then only its identity, its times and its end are known
	 */
	char *not_followed;
	char **notes;
	size_t n_notes;
	struct recorded_counter *counters;
	size_t n_counters;
	/* that was requested; memory is all, that of devices too */
	bool has_memory_left_out, has_heap_left_out;
	bool has_counts; /* its row reported these */
	uint64_t produced, delivered, dropped, uncommitted;
	struct recorded_loss *losses;
	size_t n_losses;
	bool has_rss_peak;
	uint64_t rss_peak_bytes;
	char *rss_peak_source;
	uint64_t ring_bytes_read, waited_ns;
	struct recorded_usage usage;

	struct recorded_module *modules;
	size_t n_modules;
	struct recorded_function *functions;
	size_t n_functions, functions_room;
	struct recorded_address *addresses;
	size_t n_addresses, addresses_room;
	char **symbols; /* mangled */
	size_t n_symbols, symbols_room;
	bool has_python; /* some address is a line of Python */
	/* [0] is no stack; after the recorded ones those that views made */
	struct recorded_stack *stacks;
	struct stack_views *views; /* what tools/symbols/stack_view.h made; NULL: nothing */
	void (*free_views)(struct stack_views *views);
	size_t n_stacks, stacks_room;
	/*
	 * Of its first module or batch, or what a backward pass goes through; 0: none, or not
	 * looked up yet.
	 */
	uint64_t setup_end_ns;
	struct profile_pass *passes; /* in the order of time; see tools/timeline/prepass/passes.h */
	size_t n_passes;
	/* it loads batches for another one: see tools/timeline/prepass/data_workers.h */
	bool is_data_worker;
	bool *is_agents; /* by stack: see tools/recording/agent_stacks.h; NULL: none is */
	size_t n_is_agents;

	struct recorded_heap heap;
	struct recorded_rows totals; /* struct recorded_total */
	struct recorded_rows session_usages; /* struct recorded_session_usage */
	bool has_live, usable_is_known;
	bool has_exact_times; /* times of blocks compare exactly with those of events */
	uint64_t live_ns;
	struct recorded_rows live; /* struct recorded_live */
	struct recorded_live_group *live_groups;
	size_t n_live_groups, live_groups_room;
	struct profile_steps steps;
	struct recorded_rows survivors; /* struct recorded_survivors */
	struct recorded_vm vm;
	struct recorded_rows mappings; /* struct recorded_mapping */
	struct recorded_moment *moments; /* in the order of their numbers */
	size_t n_moments, moments_room;
	/* the program's windows at their highest; each has all its stacks */
	struct recorded_moment *window_peaks;
	size_t n_window_peaks, window_peaks_room;
	struct recorded_thread *threads;
	size_t n_threads, threads_room;
	struct recorded_sample *series;
	size_t n_series, series_room;
};

/* A time in which new blocks were not recorded. */
struct recorded_pause {
	uint64_t from_ns, until_ns;
	bool lasts; /* it had no end yet */
};

struct recording {
	char *path; /* of the recording */
	bool has_session;
	uint32_t format;
	char *agent_version, *host, *record;
	uint64_t start_realtime_ns;
	uint32_t writer_pid;
	struct recorded_pause *pauses;
	size_t n_pauses;
	bool without_flops; /* none are wanted in its reports */
	/* the first process was process 1 of its PID namespace, which ends with the writer */
	bool ends_with_process_1;
	char *snapshot_of; /* in a snapshot: path of the recording that goes on; else NULL */
	uint64_t snapshot_ns; /* there: its moment */

	struct recorded_process **processes; /* in the order of their numbers */
	size_t n_processes;
	struct recorded_session joint;
	struct recorded_process **unfollowed; /* likewise; programs that could not be followed */
	size_t n_unfollowed;

	bool has_known; /* a writer that ended early wrote how far it had come: known_ns */
	uint64_t known_ns; /* all that processes did before is in here */
	struct profile_writer {
		bool is_known, has_resident;
		uint64_t resident_bytes, live_blocks, live_bytes, stacks;
	} writer; /* its own memory, when it was most */
	bool has_end, is_complete;
	uint64_t end_ns;
	char **reasons;
	size_t n_reasons;

	/* What reading it was like; set by whoever reads. */
	bool is_being_written, is_truncated;
	uint64_t n_bad_rows;
	uint64_t gap_bytes; /* of tables' rows that were never sent, between those that were */
	uint64_t size_bytes; /* of the file */
	uint64_t n_frames; /* of the stacks of all rows */
	uint64_t moved_bytes; /* in lists, for processes that came out of order */
};

/* An empty recording named path; the caller destroys it. */
struct recording *torsh_recording_new(const char *path);

/* Free the recording. */
void torsh_recording_destroy(struct recording *recording);

/* Load a chunk. Returns 0, or -EPROTO if the session's format is unknown. */
int torsh_recording_load(struct recording *recording, const Torsh__Chunk *chunk);

/* The process with that number, or NULL. */
struct recorded_process *torsh_recording_process(const struct recording *recording,
						 uint32_t number);

/* Get the addresses of a stack, innermost first, at most n_max; returns the number of all. */
size_t torsh_recording_walk(const struct recorded_process *process, uint32_t stack,
			    uint32_t *addresses, size_t n_max);

/* The row of a stack, or NULL. */
void *torsh_recording_row(const struct recorded_rows *rows, uint32_t stack, size_t item_bytes);

/*
 * "exit 0", "signal 9", "exec", "running", "vanished", or "exit"/"signal" if the code is unknown.
 */
void torsh_recording_end_name(const struct recorded_process *process, char *out, size_t n_out);

/* Get the number of a process's rank. Returns false if there is none. */
bool torsh_recording_rank(const char *rank, uint32_t *number);

/* Returns why the heap was not recorded: "it was not requested". NULL: it was recorded. */
const char *torsh_recording_heap_problem(const struct recorded_process *process);

/* Was its heap recorded? And that of any of n processes? */
bool torsh_recording_has_heap(const struct recorded_process *process);

/* Was the heap of one of these n processes recorded? */
bool torsh_recording_has_heaps(struct recorded_process *const *processes, size_t n);

/* The last component of the program's path. */
const char *torsh_recording_program_name(const struct recorded_process *process);

/*
 * Returns the recorded name of an address, mangled, or NULL; stacks have names for their leaf
 * frames only.
 */
const char *torsh_recording_symbol(const struct recorded_process *process, uint32_t address);

/*
 * Returns the function of an address in Python; NULL for native code, or if the recording does not
 * have it.
 */
const struct recorded_function *torsh_recording_function(const struct recorded_process *process,
							 uint32_t address);

/* Returns the module of an address; NULL if there is none or it has no path. */
const struct recorded_module *torsh_recording_module(const struct recorded_process *process,
						     uint32_t address);

#endif
