/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/syncer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct syncer {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the following fields */
	pthread_cond_t changed;
	bool is_requested, must_stop;
};

static void *run(void *argument)
{
	struct syncer *syncer = argument;

	pthread_mutex_lock(&syncer->lock);
	while (!syncer->must_stop) {
		if (!syncer->is_requested) {
			pthread_cond_wait(&syncer->changed, &syncer->lock);
			continue;
		}
		syncer->is_requested = false;
		pthread_mutex_unlock(&syncer->lock);
		/* A failure here also occurs at the next write, and is reported there. */
		fdatasync(syncer->fd);
		pthread_mutex_lock(&syncer->lock);
	}
	pthread_mutex_unlock(&syncer->lock);
	return NULL;
}

struct syncer *torsh_syncer_start(int fd)
{
	struct syncer *syncer = calloc(1, sizeof(*syncer));

	if (!syncer)
		return NULL;
	syncer->fd = fd;
	pthread_mutex_init(&syncer->lock, NULL);
	pthread_cond_init(&syncer->changed, NULL);
	if (!pthread_create(&syncer->thread, NULL, run, syncer))
		return syncer;
	free(syncer);
	return NULL;
}

void torsh_syncer_request(struct syncer *syncer)
{
	pthread_mutex_lock(&syncer->lock);
	syncer->is_requested = true;
	pthread_cond_signal(&syncer->changed);
	pthread_mutex_unlock(&syncer->lock);
}

void torsh_syncer_stop(struct syncer *syncer)
{
	if (!syncer)
		return;
	pthread_mutex_lock(&syncer->lock);
	syncer->must_stop = true;
	pthread_cond_signal(&syncer->changed);
	pthread_mutex_unlock(&syncer->lock);
	pthread_join(syncer->thread, NULL);
	free(syncer);
}
