/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers that take time. Each is made by a process forked from the server: a damaged or missing
 * recording ends that process, not the server, and other requests continue. Further requests wait.
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
	struct rlimit files; /* limits for the processes */
	struct answer *first; /* running ones first, then waiting ones */
	size_t n_running;
	int document; /* descriptor of the last document; -1: none */
	struct serve_stamp document_stamp;
	/* Send the answer: a descriptor, which it owns then, or a status and a message. */
	void (*send)(struct evhttp_request *request, int fd);
	void (*refuse)(struct evhttp_request *request, int status, const char *sentence);
};

/* Answer a request: at once, or when its process has ended. */
void torsh_answers_add(struct answers *answers, const struct serve_request *what,
		       struct evhttp_request *request);

/* Send the output of ended processes, and start waiting requests; call after SIGCHLD. */
void torsh_answers_reap(struct answers *answers);

/* End all processes; waiting requests get no answer. */
void torsh_answers_end(struct answers *answers);

#endif
