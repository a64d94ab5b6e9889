/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests in transit between the control thread, which has the clients, and the drain thread,
 * which has the answers.
 */
#ifndef TORSH_WRITER_THREADS_REQUEST_QUEUE_H
#define TORSH_WRITER_THREADS_REQUEST_QUEUE_H

#include <pthread.h>

#include "agent/wire/request.h"

/*
 * An internal verb that no client sends: the drain thread has seen that the first process waits at
 * its exit.
 */
#define REQUEST_EXIT_REPLY 0u
/* Another one: a process calls by torsh.h. */
#define REQUEST_PROGRAM_CALL UINT32_MAX

/* A copy of what a process stored in its channel. */
struct program_call {
	uint32_t target; /* number of the process; 0: this is no call */
	uint32_t number; /* of the call in that process */
	uint32_t verb, window;
};

/* From a request's receipt to its answer. */
struct queued_request {
	struct request request;
	struct request_answer answer;
	int fds[2]; /* descriptors of the answer; -1: none */
	void *client; /* the control thread's watch; NULL: no client waits any more */
	struct program_call call;
	char *text; /* EXIT_REPLY: the summary; NULL: none was requested */
	struct queued_request *next;
};

struct request_queue {
	pthread_mutex_t lock; /* guards the following fields */
	struct queued_request *pending, *answered;
	int answer_fd; /* an eventfd: written to with each answer */
};

/* Create an empty queue; answer_fd stays the caller's. */
void torsh_request_queue_create(struct request_queue *queue, int answer_fd);

/* Free the queue and the requests in it. */
void torsh_request_queue_destroy(struct request_queue *queue);

/* Create an entry for a request. torsh_queued_request_destroy closes its descriptors. */
struct queued_request *torsh_queued_request_create(const struct request *request, void *client);

/* Close its descriptors and free it. */
void torsh_queued_request_destroy(struct queued_request *queued);

/* Control thread: queue a request. */
void torsh_request_queue_put(struct request_queue *queue, struct queued_request *queued);

/* Control thread: take the next answered request, or NULL. */
struct queued_request *torsh_request_queue_take_answer(struct request_queue *queue);

/* Drain thread: take the oldest request, or NULL. */
struct queued_request *torsh_request_queue_take(struct request_queue *queue);

/* Drain thread: hand a request back with its result, 0 or -errno. */
void torsh_request_queue_answer(struct request_queue *queue, struct queued_request *queued,
				int result);

#endif
