/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When it is judged which live blocks of a process can still be reached: its threads are stopped,
 * and everything that they have sent is folded. At its exit the process then copies itself, and
 * goes on while the copy is judged on another thread (judge_job.h); else it waits until its own
 * memory was read. Owned by the drain thread, which is the tracer.
 */
#ifndef TORSH_WRITER_REACHABILITY_REACHABILITY_H
#define TORSH_WRITER_REACHABILITY_REACHABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/image/stopped_threads.h"
#include "tools/writer/reachability/judge_job.h"
#include "tools/writer/reachability/judgement.h"

struct target;

enum judging_phase {
	JUDGING_BEGINS, /* the process is not held */
	JUDGING_FOLDS, /* what it did before it was stopped */
	JUDGING_COPIES, /* it copies itself */
	JUDGING_READS, /* its own memory is read */
};

enum judge_when {
	JUDGE_IN_RUN,
	JUDGE_AT_EXIT_BEGIN, /* what it frees from now on is counted apart later */
	JUDGE_AT_EXIT,
};

struct reachability {
	struct stopped_threads threads;
	enum judging_phase phase;
	enum judge_when when; /* for which request it is held; others wait */
	uint64_t waiting_at; /* where a thread waited when the others were stopped; 0: none did */
	uint32_t disturbed; /* how often handlers had run in that wait then */
	bool has_filters; /* of system calls */
	uint64_t stopped_ns, retry_ns, copy_ns; /* when; CLOCK_MONOTONIC */
	uint32_t n_tries;
	uint32_t n_python_max; /* blocks of CPython's allocator, for which there is memory */
	uint32_t judged_for; /* number of the last request that was judged for */
	uint64_t bound; /* when it was last looked at: the fold goes on */
	uint64_t bound_ns;
	uint64_t exit_stamp; /* younger blocks are from after its exit's begin; 0: not known */
	bool is_done; /* judged at the end, or given up */

	struct judge_job *next; /* its moment is taken, and it is not started */
	struct judge_job *begin, *last; /* of where the exit began, and later; NULL: none */

	char reason
		[128]; /* why there is no last judgement; "": there is, or there was no attempt */
	uint64_t took_ns; /* threads were stopped for so long */
};

enum judging {
	JUDGING_WAITS, /* call again soon */
	JUDGING_IS_DONE, /* the process may go on; there are results, or will be, or a reason */
};

struct judging_request {
	enum judge_when when;
	uint64_t left_bytes; /* memory that the writer may still take */
	/* called once its threads are stopped and all is folded; NULL: nothing else is due */
	void (*held)(void *context, struct target *target);
	void *context;
	_Atomic uint32_t *wake_word; /* of the thread that waits for results */
};

/* The process waits for its verdicts: call in each pass until it is done. */
enum judging torsh_reachability_judge(struct target *target, const struct judging_request *request);

/* Returns whether there are results to come. reachability may be NULL. */
bool torsh_reachability_is_busy(const struct reachability *reachability);

/* Returns what was judged where the exit began; NULL: nothing, or it is not there yet. */
const struct judgement *torsh_reachability_begin(const struct reachability *reachability);

/* Returns what was judged last, with sums; NULL likewise. */
const struct judgement *torsh_reachability_last(const struct reachability *reachability);

/* Returns why there is no last judgement, or "". */
const char *torsh_reachability_reason(struct reachability *reachability);

/* Nothing is busy and no more is judged: free what only that needs. reachability may be NULL. */
void torsh_reachability_end(struct reachability *reachability);

/* Let stopped threads go on, wait for what was started, and free everything. May be NULL. */
void torsh_reachability_destroy(struct reachability *reachability);

#endif
