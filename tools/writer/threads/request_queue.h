/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests on their way between the control thread, which has the callers, and the drain thread, which has what they
 * ask for.
 */
#ifndef TORSH_WRITER_JOBS_H
#define TORSH_WRITER_JOBS_H

#include <pthread.h>

#include "agent/wire/request.h"

/* A verb that nobody sends: the drain thread has seen that the first process waits at its exit. */
#define JOB_FAREWELL 0u

/* From a request's receipt to its answer. */
struct job {
	struct request request;
	struct request_answer answer;
	int fds[2]; /* the answer's descriptors; -1: none */
	void *asker; /* the control thread's own */
	char *text; /* FAREWELL: the summary; NULL: none was wanted */
	struct job *next;
};

struct jobs {
	pthread_mutex_t lock; /* guards what follows */
	struct job *asked, *answered;
	int answer_fd; /* an eventfd: written to with each answer */
};

void torsh_jobs_create(struct jobs *jobs, int answer_fd);
void torsh_jobs_destroy(struct jobs *jobs); /* with the jobs in it */

/* A job for a request; torsh_job_destroy closes its descriptors. */
struct job *torsh_job_create(const struct request *request, void *asker);
void torsh_job_destroy(struct job *job);

/* The control thread's: hand a job over; take the next that was answered, or NULL. */
void torsh_jobs_ask(struct jobs *jobs, struct job *job);
struct job *torsh_jobs_answered(struct jobs *jobs);

/* The drain thread's: take the oldest that was asked, or NULL; hand it back with the result, 0 or -errno. */
struct job *torsh_jobs_take(struct jobs *jobs);
void torsh_jobs_answer(struct jobs *jobs, struct job *job, int result);

#endif
