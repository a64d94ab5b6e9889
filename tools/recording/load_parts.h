/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions that load chunks into a recording's tables, one for each message. */
#ifndef TORSH_RECORDING_LOAD_PARTS_H
#define TORSH_RECORDING_LOAD_PARTS_H

#include "tools/recording/recording.h"
#include "tools/store/packed_columns.h"

/* A file with larger numbers is rejected: a few bytes of it could require huge tables. */
#define STACKS_MAX (1u << 27)
#define MODULES_MAX (1u << 20)
#define FUNCTIONS_MAX (1u << 22)
#define GAPS_MAX_BYTES (UINT64_C(64) << 20)
#define FRAMES_ANYWAY (UINT64_C(1) << 28) /* of all rows' stacks, each walked separately */
#define FRAMES_A_BYTE 1024u
#define MOVES_MAX_BYTES (UINT64_C(1) << 30)

/*
 * Returns the process with that number, created if it is new: its tables may come before its own
 * row. NULL: the number is invalid.
 */
struct recorded_process *torsh_load_process_of(struct recording *recording, uint32_t number);

/* Replace a text by a copy; NULL keeps the old one. */
void torsh_load_text(char **text, const char *value);

/* Load the losses from the process's row; its counters and sums are loaded before. */
void torsh_load_losses(struct recorded_process *process, const Torsh__Process *row);

/* Free the losses of a process. */
void torsh_load_forget_losses(struct recorded_process *process);

/*
 * Returns true if a table of n rows may get one at `first`. The rows between were in damaged
 * chunks: their memory, over all tables, is limited by GAPS_MAX_BYTES. Counts a bad row if not.
 */
bool torsh_load_can_reach(struct recording *recording, size_t n, size_t first, size_t item_bytes);

/*
 * Returns true if another row may refer to that stack: a few bytes could stand for many rows of
 * deep stacks. Counts a bad row if not.
 */
bool torsh_load_can_walk(struct recording *recording, const struct recorded_process *process,
			 uint32_t stack);

/* Returns empty tables with one user. */
struct recorded_tables *torsh_tables_new(void);

/* A process uses the tables no more: free them after the last one. */
void torsh_tables_leave(struct recorded_tables *tables);

/* The process shares the tables of the process with that number; its own must be empty. */
void torsh_load_tables_of(struct recording *recording, struct recorded_process *process,
			  uint32_t number);

/*
 * Load a Modules row into the tables of its process. As in all functions below, the row stays the
 * caller's, and invalid entries are counted as bad rows.
 */
void torsh_load_modules(struct recording *recording, const Torsh__Modules *row);

/* Load a Placements row. */
void torsh_load_placements(struct recording *recording, const Torsh__Placements *row);

/* Load a Functions row. */
void torsh_load_functions(struct recording *recording, const Torsh__Functions *row);

/* Load an Addresses row. */
void torsh_load_addresses(struct recording *recording, const Torsh__Addresses *row);

/* Load a Symbols row. */
void torsh_load_symbols(struct recording *recording, const Torsh__Symbols *row);

/* Load a Stacks row, and a packed one. */
void torsh_load_stacks(struct recording *recording, const Torsh__Stacks *row);
void torsh_load_packed_stacks(struct recording *recording, const struct packed_message *row);

/*
 * Returns the row of that stack, and creates it, with all but its stack zero, if it is new. NULL:
 * the number is out of range.
 */
void *torsh_load_row(struct recording *recording, const struct recorded_process *process,
		     struct recorded_rows *rows, uint32_t stack, size_t item_bytes);

/* Remove all rows. */
void torsh_load_clear_rows(struct recorded_rows *rows);

/* Load a StackTotals row, and a packed one. */
void torsh_load_totals(struct recording *recording, const Torsh__StackTotals *row);
void torsh_load_packed_totals(struct recording *recording, const struct packed_message *row);

/* Load a Heap row. */
void torsh_load_heap(struct recording *recording, const Torsh__Heap *row);

/* Load a Live row. */
void torsh_load_live(struct recording *recording, const Torsh__Live *row);

/* Load a Verdicts row. */
void torsh_load_verdicts(struct recording *recording, const Torsh__Verdicts *row);

/* Free what was loaded. */
void torsh_load_forget_verdicts(struct recorded_verdicts *verdicts);

/* Load a DeviceUse row, and free what was loaded. */
void torsh_load_device_use(struct recording *recording, const Torsh__DeviceUse *row);
void torsh_load_forget_device_uses(struct recording *recording);

/* Load a MemoryTraffic row, and free what was loaded. */
void torsh_load_memory_traffic(struct recording *recording, const Torsh__MemoryTraffic *row);
void torsh_load_forget_memory_traffic(struct recording *recording);

/* Load a Residency row. */
void torsh_load_residency(struct recording *recording, const Torsh__Residency *row);

/* Free what was loaded. */
void torsh_load_forget_accounts(struct recorded_process *process);

/* Load a Census row. */
void torsh_load_census(struct recording *recording, const Torsh__Census *row);

/* Free what was loaded. */
void torsh_load_forget_census(struct recorded_census *census);

/* Load a Waits row, and a ShorterWaits row. */
void torsh_load_waits(struct recording *recording, const Torsh__Waits *row);
void torsh_load_shorter_waits(struct recording *recording, const Torsh__ShorterWaits *row);

/* Free what was loaded. */
void torsh_load_forget_waits(struct recorded_waits *waits);

/* Load a Tasks row, and a TaskNames row. */
void torsh_load_tasks(struct recording *recording, const Torsh__Tasks *row);
void torsh_load_task_names(struct recording *recording, const Torsh__TaskNames *row);

/* Free what was loaded. */
void torsh_load_forget_tasks(struct recorded_tasks *tasks);

/* Load a LibraryCalls row, and free what was loaded. */
void torsh_load_library_calls(struct recording *recording, const Torsh__LibraryCalls *row);
void torsh_load_forget_library(struct recorded_library *library);

/* Load a Growth row. */
void torsh_load_growth(struct recording *recording, const Torsh__Growth *row);

/* Load a Mappings row. */
void torsh_load_mappings(struct recording *recording, const Torsh__Mappings *row);

/* Load a Moments row. */
void torsh_load_moments(struct recording *recording, const Torsh__Moments *row);
void torsh_load_window_peak(struct recording *recording, const Torsh__WindowPeak *row);

/* Load a Threads row. */
void torsh_load_threads(struct recording *recording, const Torsh__Threads *row);

/* Load a CpuTime row. */
void torsh_load_cpu_time(struct recording *recording, const Torsh__CpuTime *row);

/* Load a CpuSupply row. */
void torsh_load_cpu_supply(struct recording *recording, const Torsh__CpuSupply *row);

/* Load a Series row. */
void torsh_load_series(struct recording *recording, const Torsh__Series *row);

/* Load a Joint row. */
void torsh_load_joint(struct recording *recording, const Torsh__Joint *row);

#endif
