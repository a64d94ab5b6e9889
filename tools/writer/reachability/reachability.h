/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Judges which live blocks of a process can still be reached, at a moment at which it waits for
 * that: its threads are stopped, everything that they have sent is folded, and its memory is read
 * from outside. Owned by the drain thread, which is the tracer.
 */
#ifndef TORSH_WRITER_REACHABILITY_REACHABILITY_H
#define TORSH_WRITER_REACHABILITY_REACHABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"
#include "tools/writer/reachability/holders.h"
#include "tools/writer/reachability/image/stopped_threads.h"
#include "tools/writer/reachability/python/python_account.h"
#include "tools/writer/reachability/verdicts.h"

struct target;

/* Of the sums: an enum verdict, or this. */
#define VERDICT_FREED_AT_EXIT N_VERDICTS /* was there when the exit began, and is not any more */
#define N_VERDICT_SUMS (N_VERDICTS + 1)

/* Live blocks of a site by verdict. */
struct verdict_sum {
	uint32_t site;
	uint64_t blocks[N_VERDICT_SUMS], bytes[N_VERDICT_SUMS];
};

struct reachability {
	struct stopped_threads threads;
	bool is_held; /* the threads are stopped, or the only one waits */
	uint64_t waiting_at; /* where that one waited then; 0: it did not */
	uint64_t stopped_ns, retry_ns; /* when; CLOCK_MONOTONIC */
	uint32_t n_tries;
	uint32_t n_python_max; /* blocks of CPython's allocator, for which there is memory */
	uint32_t judged_for; /* number of the last request that was judged for */
	uint64_t bound; /* when it was last looked at: the fold goes on */
	uint64_t bound_ns;
	bool is_done; /* judged at the end, or given up */

	/* What was live when the exit began, and its verdicts; NULL: not judged then. */
	struct block_index *before;
	struct verdicts verdicts_before;
	uint64_t before_stamp; /* blocks from then on are younger */

	/* The results, from the last moment. */
	bool is_judged;
	bool has_begin; /* blocks from before the exit have the verdicts of then */
	char reason[128]; /* why it is not */
	uint64_t at_ns, took_ns, read_bytes; /* session time; threads were stopped for so long */
	uint32_t n_threads;
	struct verdict_sum *sums; /* in the order of sites */
	uint32_t n_sums;
	/* Of what was kept, first of what was when the exit began. */
	struct holders holders;
	struct python_account python; /* of then, if it is known; else of the last moment */
};

enum judging {
	JUDGING_WAITS, /* call again soon */
	JUDGING_IS_DONE, /* with or without a result */
};

struct judging_request {
	bool is_begin; /* its exit begins: what it frees from now on is counted apart later */
	uint64_t left_bytes; /* memory that the writer may still take */
	/* called once its threads are stopped and all is folded; NULL: nothing else is due */
	void (*held)(void *context, struct target *target);
	void *context;
};

/* The process waits for its verdicts: call in each pass until it is done. */
enum judging torsh_reachability_judge(struct target *target, const struct judging_request *request);

/* Let stopped threads go on, and free everything. reachability may be NULL. */
void torsh_reachability_destroy(struct reachability *reachability);

#endif
