/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/judge_job.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tools/writer/threads/drain/sleep.h"

/*
 * One is made and the others wait for that. Each has a copy of a process, and its blocks: fewer
 * would take less memory, and processes that end at once would wait longer in their exits.
 */
#define JOBS_MAX 4u
#define JOB_NICE 10

/* Held while a judgement is made. */
static pthread_mutex_t memory = PTHREAD_MUTEX_INITIALIZER;
/* Jobs that were started and are not done. */
static _Atomic uint32_t n_jobs;

bool torsh_judge_jobs_have_room(void)
{
	return atomic_load_explicit(&n_jobs, memory_order_relaxed) < JOBS_MAX;
}

static void make(struct judge_job *job, void (*go_on)(void *context), void *context)
{
	const struct judge_job *before = job->before;
	const struct judging_options options = {
		.before = before && !before->judgement.error ? &before->judgement : NULL,
		.is_begin = job->is_begin,
		.go_on = go_on,
		.context = context,
	};

	torsh_judgement_make(&job->judgement, &job->moment, &options);
}

static void do_nothing(void *context)
{
	(void)context;
}

static void end(struct judge_job *job)
{
	torsh_judged_moment_free(&job->moment);
	/* Pairs with the acquire in torsh_judge_job_is_done. */
	atomic_store_explicit(&job->is_done, true, memory_order_release);
}

static void *run(void *argument)
{
	struct judge_job *job = argument;
	_Atomic uint32_t *wake_word = job->wake_word;

	/* Nobody waits: the program comes first. On Linux this is about the calling thread. */
	setpriority(PRIO_PROCESS, 0, JOB_NICE);
	if (job->before && job->before->has_thread) {
		pthread_join(job->before->thread, NULL);
		job->before->has_thread = false;
	}
	pthread_mutex_lock(&memory);
	make(job, do_nothing, NULL);
	pthread_mutex_unlock(&memory);
	if (!job->judgement.error && !torsh_process_copy_is_there(&job->copy))
		job->judgement.error = ESRCH;
	job->judgement.is_of_copy = true;
	torsh_process_copy_end(&job->copy);
	atomic_fetch_sub_explicit(&n_jobs, 1, memory_order_relaxed);
	end(job);
	torsh_sleep_wake(wake_word);
	return NULL;
}

int torsh_judge_job_start(struct judge_job *job)
{
	int error;

	atomic_fetch_add_explicit(&n_jobs, 1, memory_order_relaxed);
	job->has_thread = true;
	error = pthread_create(&job->thread, NULL, run, job);
	if (!error)
		return 0;
	job->has_thread = false;
	atomic_fetch_sub_explicit(&n_jobs, 1, memory_order_relaxed);
	return -error;
}

void torsh_judge_job_run(struct judge_job *job, void (*go_on)(void *context), void *context)
{
	make(job, go_on, context);
	end(job);
}

bool torsh_judge_job_is_done(const struct judge_job *job)
{
	return !job || atomic_load_explicit(&job->is_done, memory_order_acquire);
}

void torsh_judge_job_destroy(struct judge_job *job)
{
	if (!job)
		return;
	if (job->has_thread)
		pthread_join(job->thread, NULL);
	torsh_judgement_free(&job->judgement);
	free(job);
}
