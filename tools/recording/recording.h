/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/recording is a recording in memory; every report and exporter starts from it.
 *
 * The contents of its chunks are in tables per process. The recording owns all that it points to.
 * Rows are loaded as tools/store/recording.proto describes them: a later one replaces an earlier
 * one with the same key, so that chunks can be loaded during a run.
 *
 * The file is untrusted: numbers out of range are dropped and counted (n_bad_rows).
 */
#ifndef TORSH_RECORDING_RECORDING_H
#define TORSH_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"
#include "tools/base/containers/row_index.h"
#include "tools/base/containers/usage_list.h"
#include "tools/recording/clocks/recorded_clocks.h"
#include "tools/recording/estimate.h"
#include "tools/recording/identity/identity.h"
#include "tools/recording/memory/recorded_account.h"
#include "tools/recording/library/recorded_library.h"
#include "tools/recording/memory/recorded_census.h"
#include "tools/recording/memory/recorded_device_use.h"
#include "tools/recording/memory/recorded_memory_traffic.h"
#include "tools/recording/memory/recorded_holders.h"
#include "tools/recording/memory/recorded_verdict.h"
#include "tools/recording/stacks/recorded_stacks.h"
#include "tools/recording/totals.h"
#include "tools/recording/tasks/recorded_tasks.h"
#include "tools/recording/waits/recorded_waits.h"

#define PROFILE_NO_ROW UINT32_MAX
#define PROFILE_NO_ADDRESS ((1u << 23) - 1) /* above CHANNEL_ADDRESSES */
#define PROFILE_SEVERAL UINT32_MAX /* in place of a label: the blocks have several */
#define PROFILE_SIZE_CLASSES 65

struct recorded_module {
	uint64_t bias, start, end;
	char *path; /* "": memory without a file. NULL: the row is missing */
	uint8_t *build_id;
	size_t n_build_id;
};

/* A function of an interpreted language. */
struct recorded_function {
	char *name, *file; /* NULL: the row is missing */
	uint32_t first_line;
};

struct recorded_address {
	uint64_t ip; /* with ADDRESS_PYTHON: the line, 0: none */
	uint32_t flags; /* enum channel_address_flag */
	uint32_t module; /* CHANNEL_NO_MODULE: none. With ADDRESS_PYTHON: number of a function */
	uint32_t symbol; /* index into the process's symbols; PROFILE_NO_ROW: none */
	uint64_t symbol_offset;
};

/* Packed: a program that imports PyTorch has four million. */
struct recorded_stack {
	/* always lower than the stack's own number; 0: this is the outermost frame */
	uint64_t parent : 28;
	uint64_t address : 23; /* PROFILE_NO_ADDRESS: one that no recording can have */
	uint64_t depth : 13; /* frames of the stack; 0: the row is missing */
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
	uint32_t first_step, last_step; /* likewise */
	uint64_t inherited_blocks, inherited_bytes;
	struct estimate_variance variance;
	size_t group, n_groups; /* in the process's live_groups; 0: none are known */
};

/* What was mapped, as bits: see Mappings. */
enum mapped_kind {
	MAPPED_ANONYMOUS = 1,
	MAPPED_ANONYMOUS_SHARED = 2,
	MAPPED_FILE_PRIVATE = 4,
	MAPPED_FILE_SHARED = 8,
	MAPPED_BY_SYSTEM_V = 16
};

#define MAPPED_SEVERAL UINT32_MAX

struct recorded_mapping {
	uint32_t stack;
	uint32_t seen;
	int64_t base_pieces, base_bytes;
	int64_t delta_pieces, delta_bytes;
	uint64_t total_bytes;
	uint32_t kinds; /* enum mapped_kind, as bits; 0: not known */
	uint32_t path; /* index into mapped_paths + 1; 0: not known, MAPPED_SEVERAL */
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

/* Indexed by its number in the process, because tids are reused. */
struct recorded_thread {
	bool is_known; /* false: its rows are missing */
	uint32_t tid;
	char *name;
	uint64_t start_ns, end_ns;
	uint64_t allocs, alloc_bytes, frees, dropped;
};

struct recorded_sample {
	uint64_t at_ns, heap_bytes, mapped_bytes, rss_bytes;
};

/* Two sums of a process until some moments; either may be unknown, and is 0 then. */
struct recorded_sums {
	struct recorded_sum_point {
		uint64_t at_ns, sums[2];
	} * points;
	size_t n;
	bool is_known[2];
};

enum { CPU_TIME_RAN, CPU_TIME_WAITED }; /* of its threads; waited: runnable, and did not run */
enum { CPU_SUPPLY_THROTTLED, CPU_SUPPLY_STOLEN };

struct recorded_counter {
	char *name;
	uint64_t value;
};

/* Something that the recording lacks for a process. */
struct recorded_loss {
	char *cause, *text; /* text: a plural phrase that follows a number */
	bool is_of_events; /* they are among the dropped events */
	uint64_t count;
};

struct recorded_heap {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t current_bytes, current_blocks, current_usable_bytes;
	uint64_t allocs, frees, alloc_bytes, reallocs, temporary;
	uint64_t unknown_frees, pause_frees, implicit_frees, late_events;
	bool has_inherited_blocks, has_inherited_bytes; /* of a fork, if its parent reported them */
	uint64_t inherited_blocks, inherited_bytes;
	uint64_t inherited_frees; /* frees of inherited blocks */
	uint64_t size_blocks[PROFILE_SIZE_CLASSES];
	/* freed blocks by lifetime; see Heap */
	size_t n_lifetimes; /* 0: not recorded, or none ended */
	/*
	 * Bytes per sample: allocs, frees, alloc_bytes and sizes are exact, all others estimates.
	 * 0: every block was recorded.
	 */
	uint64_t sampled_every;
	uint64_t size_bytes[PROFILE_SIZE_CLASSES]; /* of a sampled heap */
	struct recorded_lifetime {
		uint64_t from_ns, blocks, bytes;
	} lifetimes[PROFILE_SIZE_CLASSES];
};

/* The highest moment of the sum of all processes' heaps; if more than one process was recorded. */
struct recorded_session {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t late_changes;
};

/* The usage of a process's stack at that moment. */
struct recorded_session_usage {
	uint32_t stack;
	uint64_t blocks, bytes;
	uint32_t first_step, last_step; /* likewise */
};

/* As in the message Moments. */
enum recorded_moment_kind {
	RECORDED_MOMENT_BY_TIME,
	RECORDED_MOMENT_BY_STEP,
	RECORDED_MOMENT_BY_MARK,
	N_RECORDED_MOMENT_KINDS
};

/* The heap at one time of the run. */
struct recorded_moment {
	uint32_t number;
	enum recorded_moment_kind kind;
	uint32_t name; /* number + 1 of the step that ended; the mark's label; 0: none */
	uint64_t n_steps; /* that had begun, at the end of a step; 0: not known */
	uint64_t joint_bytes; /* of the heap and devices, at their peak; else 0 */
	bool has_highest;
	/* of the heap since the moment before; valid if has_highest */
	uint64_t highest_bytes, highest_ns;
	uint64_t resident_bytes; /* as sampled, at a moment when most was resident; else 0 */
	uint64_t at_ns, bytes, blocks;
	/* By stack, from this moment on: of the stacks that changed since the previous one. */
	struct usage_list usages;
};

struct recorded_vm {
	bool is_there;
	uint32_t peak_number;
	uint64_t peak_bytes, peak_ns, current_bytes;
	uint64_t maps, unmaps, advised_bytes;
};

/* Items in a growing array, which torsh_recording_row looks up by stack. */
struct recorded_rows {
	void *items;
	size_t n, n_room;
	struct row_index row_of; /* by stack */
};

/* What was found out about live blocks when the process ended. */
struct recorded_verdicts {
	bool is_tried, is_judged;
	bool has_begin; /* what was live when its exit began was judged then */
	char *reason; /* why it was not judged, or NULL */
	uint64_t at_ns, stopped_ns, read_bytes;
	uint32_t n_threads;
	struct recorded_rows rows; /* struct recorded_verdict, each stack's first */
	struct recorded_verdict *further; /* of stacks with several classes */
	size_t n_further, further_room;
	struct recorded_holder *holders;
	size_t n_holders;
	struct recorded_python_heap python;
};

struct stack_views;
struct packed_messages; /* of tools/store/chunk_members.h */

/* A backward pass, up to the optimizer's call. */
struct profile_pass {
	uint64_t start_ns, end_ns;
};

/* See Usage. */
struct recorded_usage {
	bool is_there;
	uint64_t minor_faults, major_faults, swap_peak_bytes;
	uint32_t n_cpus;
	uint64_t sampled_ns, oversubscribed_ns, runnable_ns;
	bool has_cpu_wait, has_throttling, has_cpu_stolen;
	uint64_t cpu_wait_ns, cpu_stolen_ns, cpu_throttled_ns, cpu_throttled_periods, cpu_periods;
};

/*
 * What processes of one program share. A number of an address is at the bias that the modules have
 * here: torsh_recording_ip has it as in a process.
 */
struct recorded_tables {
	size_t n_users; /* processes */
	struct recorded_module *modules;
	size_t n_modules;
	struct recorded_function *functions;
	size_t n_functions, functions_room;
	struct recorded_address *addresses;
	size_t n_addresses, addresses_room;
	char **symbols; /* mangled */
	size_t n_symbols, symbols_room;
	bool has_python; /* some address is a Python line */
	/* [0] is no stack; stacks of views follow the recorded ones */
	struct recorded_stack *stacks;
	struct stack_views *views; /* of tools/symbols/stack_view.h; NULL: none */
	void (*free_views)(struct stack_views *views);
	size_t n_stacks, stacks_room;
	/* By stack: see tools/recording/agent_stacks.h; NULL: no stack is the agent's. */
	bool *is_agents;
	size_t n_is_agents;
};

struct recorded_process {
	uint32_t number, pid, parent_pid;
	uint32_t forked_from, executed_from; /* numbers of processes; 0: none */
	char *program;
	char **arguments;
	size_t n_arguments;
	uint64_t start_ns, end_ns;
	Torsh__Process__EndKind end;
	bool has_end_ns, has_end_code;
	bool ran_exit_handlers, ended_by__exit; /* both false: not known, or by a signal */
	int32_t end_code;
	char *allocator, *clock;
	char *lsan_suppressions; /* rules that the program defines; NULL: none */
	char *rank; /* NULL: neither a launcher nor torch.distributed set one */
	struct recorded_identity identity;
	/*
	 * why it was not recorded: then only its identity, its times and its end are known; else
	 * NULL
	 */
	char *not_followed;
	char **notes;
	size_t n_notes;
	struct recorded_counter *counters;
	size_t n_counters;
	/* that was requested; memory is all, that of devices too */
	bool has_memory_left_out, has_heap_left_out;
	bool has_counts; /* its row has these */
	uint64_t produced, delivered, dropped, uncommitted;
	struct recorded_loss *losses;
	size_t n_losses;
	bool has_rss_peak;
	uint64_t rss_peak_bytes;
	char *rss_peak_source;
	uint64_t ring_bytes_read, waited_ns;
	/*
	 * of a flight recorder, after torsh_timeline_visit: events that the file no longer has, and
	 * steps begun before the others
	 */
	uint64_t timeline_passed, timeline_passed_steps;
	bool has_timeline_begin;
	struct recorded_usage usage;

	struct recorded_tables
		*tables; /* never NULL; of other processes, too, if they are shared */
	/* of modules that it shares and had elsewhere: by number, what to add to the bias */
	uint64_t *shifts;
	size_t n_shifts;
	/*
	 * Start of its first module or batch, or of what a backward pass uses; 0: none, or not
	 * looked up yet.
	 */
	uint64_t setup_end_ns;
	struct profile_pass *passes; /* in time order; see tools/timeline/prepass/passes.h */
	size_t n_passes;
	/* it loads batches for another process: see tools/timeline/prepass/data_workers.h */
	bool is_data_worker;
	struct recorded_heap heap;
	struct recorded_totals totals;
	struct recorded_rows session_usages; /* struct recorded_session_usage */
	bool has_live, usable_is_known;
	bool has_exact_times; /* times of blocks compare exactly with those of events */
	uint64_t live_ns;
	struct recorded_rows live; /* struct recorded_live */
	struct recorded_live_group *live_groups;
	size_t n_live_groups, live_groups_room;
	struct recorded_verdicts verdicts;
	struct recorded_account accounts[N_RECORDED_ACCOUNTS];
	struct recorded_census census;
	struct recorded_waits waits;
	struct recorded_tasks tasks;
	struct recorded_library library; /* calls of BLAS and LAPACK */
	char *account_problem; /* why there is no later account; NULL: none is known */
	struct profile_steps steps;
	struct recorded_rows survivors; /* struct recorded_survivors */
	struct recorded_vm vm;
	struct recorded_rows mappings; /* struct recorded_mapping */
	char **mapped_paths;
	size_t n_mapped_paths;
	struct recorded_moment *moments; /* in the order of their numbers */
	size_t n_moments, moments_room;
	/* the program's windows at their highest; each has all its stacks */
	struct recorded_moment *window_peaks;
	size_t n_window_peaks, window_peaks_room;
	struct recorded_thread *threads;
	size_t n_threads, threads_room;
	struct recorded_sample *series;
	size_t n_series, series_room;
	struct recorded_sums cpu_time, cpu_supply;
};

/* A time in which new blocks were not recorded. */
struct recorded_pause {
	uint64_t from_ns, until_ns;
	bool lasts; /* it has not ended yet */
};

struct recording {
	char *path; /* of the recording */
	bool has_session;
	uint32_t format;
	char *agent_version, *host, *record;
	uint64_t start_realtime_ns;
	uint32_t writer_pid;
	struct recorded_clocks clocks;
	struct recorded_pause *pauses;
	size_t n_pauses;
	bool without_flops; /* reports don't contain FLOPs */
	/* the first process was process 1 of its PID namespace, which ends with the writer */
	bool ends_with_process_1;
	char *snapshot_of; /* in a snapshot: path of the running recording; else NULL */
	uint64_t snapshot_ns; /* in a snapshot: its time */

	struct recorded_process **processes; /* in the order of their numbers */
	size_t n_processes;
	struct recorded_session joint;
	struct recorded_process **unfollowed; /* likewise; programs that could not be followed */
	size_t n_unfollowed;
	struct recorded_device_use *device_uses; /* by the order of time for each device */
	size_t n_device_uses, device_uses_room;
	struct recorded_memory_traffic memory_traffic;
	struct recorded_thread_stacks thread_stacks; /* of threads, when it was kept */

	bool has_known; /* a writer that ended early stored how far it had read: known_ns */
	uint64_t known_ns; /* all earlier events are in the recording */
	struct profile_writer {
		bool is_known, has_resident;
		uint64_t resident_bytes, live_blocks, live_bytes, stacks;
	} writer; /* the writer's own memory at its maximum */
	bool has_end, is_complete;
	uint64_t end_ns;
	char **reasons;
	size_t n_reasons;

	/* Set by the reader of the file. */
	bool is_being_written, is_truncated;
	uint64_t n_bad_rows;
	uint64_t gap_bytes; /* bytes of missing rows between existing ones */
	uint64_t size_bytes; /* of the file */
	uint64_t n_frames; /* of the stacks of all rows */
	uint64_t moved_bytes; /* in lists, for processes that came out of order */
};

/* Returns an empty recording named path; the caller destroys it. */
struct recording *torsh_recording_new(const char *path);

/* Free the recording. */
void torsh_recording_destroy(struct recording *recording);

/*
 * Load a chunk, and what stayed packed of it. Returns 0, or -EPROTO if the session's format is
 * unknown.
 */
int torsh_recording_load_packed(struct recording *recording, const Torsh__Chunk *chunk,
				const struct packed_messages *packed);

/* Load a chunk of which nothing stayed packed. */
int torsh_recording_load(struct recording *recording, const Torsh__Chunk *chunk);

/* Returns the process with that number, or NULL. */
struct recorded_process *torsh_recording_process(const struct recording *recording,
						 uint32_t number);

/*
 * Get the addresses of a stack, innermost first, at most n_max. Returns the number of all frames.
 */
size_t torsh_recording_walk(const struct recorded_process *process, uint32_t stack,
			    uint32_t *addresses, size_t n_max);

/* Returns the row of a stack, or NULL. */
void *torsh_recording_row(const struct recorded_rows *rows, uint32_t stack, size_t item_bytes);

/*
 * Get "exit 0", "signal 9", "exec", "running", "vanished", or "exit"/"signal" if the code is
 * unknown.
 */
void torsh_recording_end_name(const struct recorded_process *process, char *out, size_t n_out);

/* Get the number of a process's rank. Returns false if there is none. */
bool torsh_recording_rank(const char *rank, uint32_t *number);

/* Returns why the heap was not recorded, e.g. "it was not requested"; NULL: it was recorded. */
const char *torsh_recording_heap_problem(const struct recorded_process *process);

/* Returns whether its heap was recorded. */
bool torsh_recording_has_heap(const struct recorded_process *process);

/* Returns whether the heap of at least one of these n processes was recorded. */
bool torsh_recording_has_heaps(struct recorded_process *const *processes, size_t n);

/*
 * Returns after how many bytes on average a block of these n processes was sampled, the most of
 * them; 0: every block was recorded.
 */
uint64_t torsh_recording_sampled_every(struct recorded_process *const *processes, size_t n);

/* Returns the last component of the program's path. */
const char *torsh_recording_program_name(const struct recorded_process *process);

/*
 * Returns the recorded name of an address, mangled, or NULL; stacks have recorded names for their
 * leaf frames only.
 */
const char *torsh_recording_symbol(const struct recorded_process *process, uint32_t address);

/*
 * Returns the function of an address in Python; NULL for native code, or if the recording does not
 * have it.
 */
const struct recorded_function *torsh_recording_function(const struct recorded_process *process,
							 uint32_t address);

/* Returns true if the processes share their tables and had each module at the same place. */
bool torsh_recording_has_same_code(const struct recorded_process *a,
				   const struct recorded_process *b);

/* Returns where the process had an address, which must be in its tables; a line of Python. */
uint64_t torsh_recording_ip(const struct recorded_process *process, uint32_t address);

/* Returns the module of an address; NULL if there is none or it has no path. */
const struct recorded_module *torsh_recording_module(const struct recorded_process *process,
						     uint32_t address);

#endif
