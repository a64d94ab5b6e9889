/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the parts of the exporter for SQLite share. */
#ifndef TORSH_EXPORT_SQLITE_SQLITE_H
#define TORSH_EXPORT_SQLITE_SQLITE_H

#include "tools/device/kernels/counters.h"
#include "tools/device/kernels/device_calls.h"
#include "tools/export/sqlite/sqlite_database.h"
#include "tools/export/trace.h"
#include "tools/memory/allocation_sites.h"
#include "tools/ops/operators.h"
#include "tools/timeline/call_window.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/collectives/nccl_spans.h"
#include "tools/timeline/prepass/process_groups.h"

/* What of a process has its rows. */
struct known {
	struct recorded_process *process;
	bool *stacks, *addresses; /* by number */
	bool *labels; /* those that rows have: their own rows come last */
	bool *kernels; /* by label */
	size_t n_stacks; /* there is room for; views add stacks */
};

/* What a process called and waited for. */
struct process_calls {
	struct device_calls all;
	struct call_window labels; /* the operators around calls of CUDA, for waits */
};

struct sqlite {
	struct trace *trace;
	struct flops_book *book;
	struct database database;
	struct known *known; /* in the order of the trace's processes */
	struct collectives collectives;
	struct process_calls *calls; /* likewise */
	struct counters counters;
	struct collective_calls calls_of_ranks;
	struct nccl_spans nccl;
};

/* What of a process of the trace has its rows. */
struct known *torsh_sqlite_known(struct sqlite *sqlite, const struct recorded_process *process);

/*
 * The number of a stack as it is shown, interpreters replaced by lines of Python; 0: none. It gets
 * its rows when it is first named: to be called before the row that names it is begun.
 */
uint32_t torsh_sqlite_stack(struct sqlite *sqlite, const struct recorded_process *process,
			    uint32_t stack);

/* Bind a label of the process; 0: none. */
void torsh_sqlite_label(struct sqlite *sqlite, const struct recorded_process *process,
			uint32_t label);

/* ---- spans and events: sqlite_spans.c -------------------------------------------------------- */

extern const struct span_visitor torsh_sqlite_span_visitor; /* its context is the sqlite */

/* ---- what devices did: sqlite_device.c ------------------------------------------------------- */

extern const struct device_visitor torsh_sqlite_device_visitor; /* its context is the sqlite */

/* Take any event of a process: sqlite_nccl.c. */
void torsh_sqlite_nccl_see(struct sqlite *sqlite, const struct recorded_process *process,
			   const struct timeline_event *event);

/* Insert what is left of NCCL at the end, and its communicators. */
void torsh_sqlite_nccl_insert(struct sqlite *sqlite);

/* Insert the peak of the heap, and who held it. */
void torsh_sqlite_insert_peak(struct sqlite *sqlite);

/* Insert a process's allocation sites, its moments, and what each site had at them. */
void torsh_sqlite_insert_heap(struct sqlite *sqlite, struct recorded_process *process);

/* Insert what leaked, and what the agent counted. */
void torsh_sqlite_insert_leaks(struct sqlite *sqlite);

/* ---- calls, waits and counters: sqlite_calls.c ----------------------------------------------- */

/* Begin without calls. */
void torsh_sqlite_calls_create(struct sqlite *sqlite);

/* Free them. */
void torsh_sqlite_calls_destroy(struct sqlite *sqlite);

/* Take any event of a process. */
void torsh_sqlite_calls_see(struct sqlite *sqlite, const struct recorded_process *process,
			    const struct timeline_event *event, const struct span *innermost);

/* Insert them, after all events. */
void torsh_sqlite_calls_insert(struct sqlite *sqlite);

/* Insert the collectives, after all events. */
void torsh_sqlite_collectives_insert(struct sqlite *sqlite);

/* Bind the function, file and line that a named site is attributed to, and whether it is own. */
void torsh_sqlite_line(struct sqlite *sqlite, const struct allocation_site *site);

#endif
