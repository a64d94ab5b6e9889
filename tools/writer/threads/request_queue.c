/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/request_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

void torsh_request_queue_create(struct request_queue *jobs, int answer_fd)
{
	*jobs = (struct request_queue){.answer_fd = answer_fd};
	pthread_mutex_init(&jobs->lock, NULL);
}

static struct queued_request *pop(struct queued_request **list)
{
	struct queued_request *job = *list;

	if (job)
		*list = job->next;
	return job;
}

void torsh_request_queue_destroy(struct request_queue *jobs)
{
	struct queued_request *job;

	while ((job = pop(&jobs->asked)) || (job = pop(&jobs->answered)))
		torsh_job_destroy(job);
	pthread_mutex_destroy(&jobs->lock);
}

struct queued_request *torsh_job_create(const struct request *request, void *asker)
{
	struct queued_request *job = torsh_memory_new(1, sizeof(*job));

	*job = (struct queued_request){.request = *request, .fds = {-1, -1}, .asker = asker};
	job->answer.magic = REQUEST_MAGIC;
	job->answer.version = REQUEST_VERSION;
	job->answer.writer_pid = (uint32_t)getpid();
	return job;
}

void torsh_job_destroy(struct queued_request *job)
{
	for (size_t i = 0; i < sizeof(job->fds) / sizeof(job->fds[0]); i++) {
		if (job->fds[i] >= 0)
			close(job->fds[i]);
	}
	free(job->text);
	free(job);
}

static void append(struct queued_request **list, struct queued_request *job)
{
	while (*list)
		list = &(*list)->next;
	job->next = NULL;
	*list = job;
}

void torsh_request_queue_put(struct request_queue *jobs, struct queued_request *job)
{
	pthread_mutex_lock(&jobs->lock);
	append(&jobs->asked, job);
	pthread_mutex_unlock(&jobs->lock);
}

struct queued_request *torsh_request_queue_answered(struct request_queue *jobs)
{
	struct queued_request *job;

	pthread_mutex_lock(&jobs->lock);
	job = pop(&jobs->answered);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

struct queued_request *torsh_request_queue_take(struct request_queue *jobs)
{
	struct queued_request *job;

	pthread_mutex_lock(&jobs->lock);
	job = pop(&jobs->asked);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

void torsh_request_queue_answer(struct request_queue *jobs, struct queued_request *job, int result)
{
	job->answer.result = result;
	pthread_mutex_lock(&jobs->lock);
	append(&jobs->answered, job);
	pthread_mutex_unlock(&jobs->lock);
	if (write(jobs->answer_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		fprintf(stderr, "torsh: the writer can't tell itself of an answer: %s\n",
			strerror(errno));
}
