/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/request_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

void torsh_request_queue_create(struct request_queue *queue, int answer_fd)
{
	*queue = (struct request_queue){.answer_fd = answer_fd};
	pthread_mutex_init(&queue->lock, NULL);
}

static struct queued_request *pop(struct queued_request **list)
{
	struct queued_request *queued = *list;

	if (queued)
		*list = queued->next;
	return queued;
}

void torsh_request_queue_destroy(struct request_queue *queue)
{
	struct queued_request *queued;

	while ((queued = pop(&queue->pending)) || (queued = pop(&queue->answered)))
		torsh_queued_request_destroy(queued);
	pthread_mutex_destroy(&queue->lock);
}

struct queued_request *torsh_queued_request_create(const struct request *request, void *client)
{
	struct queued_request *queued = torsh_memory_new(1, sizeof(*queued));

	*queued = (struct queued_request){.request = *request, .fds = {-1, -1}, .client = client};
	queued->answer.magic = REQUEST_MAGIC;
	queued->answer.version = REQUEST_VERSION;
	queued->answer.writer_pid = (uint32_t)getpid();
	return queued;
}

void torsh_queued_request_destroy(struct queued_request *queued)
{
	for (size_t i = 0; i < sizeof(queued->fds) / sizeof(queued->fds[0]); i++) {
		if (queued->fds[i] >= 0)
			close(queued->fds[i]);
	}
	free(queued->text);
	free(queued);
}

static void append(struct queued_request **list, struct queued_request *queued)
{
	while (*list)
		list = &(*list)->next;
	queued->next = NULL;
	*list = queued;
}

void torsh_request_queue_put(struct request_queue *queue, struct queued_request *queued)
{
	pthread_mutex_lock(&queue->lock);
	append(&queue->pending, queued);
	pthread_mutex_unlock(&queue->lock);
}

struct queued_request *torsh_request_queue_take_answer(struct request_queue *queue)
{
	struct queued_request *queued;

	pthread_mutex_lock(&queue->lock);
	queued = pop(&queue->answered);
	pthread_mutex_unlock(&queue->lock);
	return queued;
}

struct queued_request *torsh_request_queue_take(struct request_queue *queue)
{
	struct queued_request *queued;

	pthread_mutex_lock(&queue->lock);
	queued = pop(&queue->pending);
	pthread_mutex_unlock(&queue->lock);
	return queued;
}

void torsh_request_queue_answer(struct request_queue *queue, struct queued_request *queued,
				int result)
{
	queued->answer.result = result;
	pthread_mutex_lock(&queue->lock);
	append(&queue->answered, queued);
	pthread_mutex_unlock(&queue->lock);
	if (write(queue->answer_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		fprintf(stderr,
			"torsh: the writer's control thread can't be notified of an answer: %s\n",
			strerror(errno));
}
