/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/request_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

void torsh_jobs_create(struct jobs *jobs, int answer_fd)
{
	*jobs = (struct jobs){.answer_fd = answer_fd};
	pthread_mutex_init(&jobs->lock, NULL);
}

static struct job *pop(struct job **list)
{
	struct job *job = *list;

	if (job)
		*list = job->next;
	return job;
}

void torsh_jobs_destroy(struct jobs *jobs)
{
	struct job *job;

	while ((job = pop(&jobs->asked)) || (job = pop(&jobs->answered)))
		torsh_job_destroy(job);
	pthread_mutex_destroy(&jobs->lock);
}

struct job *torsh_job_create(const struct request *request, void *asker)
{
	struct job *job = torsh_memory_new(1, sizeof(*job));

	*job = (struct job){.request = *request, .fds = {-1, -1}, .asker = asker};
	job->answer.magic = REQUEST_MAGIC;
	job->answer.version = REQUEST_VERSION;
	job->answer.writer_pid = (uint32_t)getpid();
	return job;
}

void torsh_job_destroy(struct job *job)
{
	for (size_t i = 0; i < sizeof(job->fds) / sizeof(job->fds[0]); i++) {
		if (job->fds[i] >= 0)
			close(job->fds[i]);
	}
	free(job->text);
	free(job);
}

static void append(struct job **list, struct job *job)
{
	while (*list)
		list = &(*list)->next;
	job->next = NULL;
	*list = job;
}

void torsh_jobs_ask(struct jobs *jobs, struct job *job)
{
	pthread_mutex_lock(&jobs->lock);
	append(&jobs->asked, job);
	pthread_mutex_unlock(&jobs->lock);
}

struct job *torsh_jobs_answered(struct jobs *jobs)
{
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = pop(&jobs->answered);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

struct job *torsh_jobs_take(struct jobs *jobs)
{
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = pop(&jobs->asked);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

void torsh_jobs_answer(struct jobs *jobs, struct job *job, int result)
{
	job->answer.result = result;
	pthread_mutex_lock(&jobs->lock);
	append(&jobs->answered, job);
	pthread_mutex_unlock(&jobs->lock);
	if (write(jobs->answer_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		fprintf(stderr, "torsh: the writer can't tell itself of an answer: %s\n", strerror(errno));
}
