/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A judgement that is made on a thread of its own, of the copy that a process left of itself. One
 * is made at a time, because each takes memory.
 */
#ifndef TORSH_WRITER_REACHABILITY_JUDGE_JOB_H
#define TORSH_WRITER_REACHABILITY_JUDGE_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tools/writer/reachability/image/process_copy.h"
#include "tools/writer/reachability/judgement.h"

struct judge_job {
	struct judged_moment moment;
	struct judgement judgement; /* valid once it is done */
	struct judge_job *before; /* of where the exit began; NULL: none, or this one */
	bool is_begin;
	struct process_copy copy;
	pthread_t thread;
	bool has_thread;
	_Atomic bool is_done;
	_Atomic uint32_t *wake_word; /* of the thread that waits for it */
};

/* Returns whether there is room for another job with a copy: the copies keep memory, too. */
bool torsh_judge_jobs_have_room(void);

/*
 * Start the job, whose moment and copy it owns from now on. The job before must be started, and
 * stays until this one is done. Returns 0, or -errno with nothing started.
 */
int torsh_judge_job_start(struct judge_job *job);

/*
 * Make the judgement now, on this thread; go_on is called with the context now and then. The job
 * before is done.
 */
void torsh_judge_job_run(struct judge_job *job, void (*go_on)(void *context), void *context);

/* Returns whether the judgement is there. NULL is done. */
bool torsh_judge_job_is_done(const struct judge_job *job);

/* Wait until it is done, and free it. NULL is ignored. */
void torsh_judge_job_destroy(struct judge_job *job);

#endif
