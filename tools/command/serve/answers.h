/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers that take time. Each is made by a process of its own, forked from the server: a damaged
 * recording or one that is gone ends that process, not the server, and the others go on meanwhile.
 * The rest of the answers wait for their turn.
 */
#ifndef TORSH_COMMAND_SERVE_ANSWERS_H
#define TORSH_COMMAND_SERVE_ANSWERS_H

#include <sys/resource.h>

#include <event2/http.h>

#include "tools/command/serve/serve_data.h"

#define ANSWERS_AT_ONCE 2u

struct answer;

struct answers {
	struct serve_data *data;
	struct rlimit files; /* of the processes */
	struct answer *first; /* those that run are before those that wait */
	size_t n_running;
	int document; /* the last one; -1: none */
	struct serve_stamp document_stamp;
	/* Send the answer: a descriptor that it takes, or status and sentence. */
	void (*send)(struct evhttp_request *request, int fd);
	void (*refuse)(struct evhttp_request *request, int status, const char *sentence);
};

/* Answer a request: at once, or when its process has ended. */
void torsh_answers_add(struct answers *answers, const struct serve_request *what,
		       struct evhttp_request *request);

/* Send what the processes that have ended made, and begin the next; after SIGCHLD. */
void torsh_answers_reap(struct answers *answers);

/* End all processes; requests that wait are not answered. */
void torsh_answers_end(struct answers *answers);

#endif
