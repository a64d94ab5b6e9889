/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/status_reader.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/threads/drain/sleep.h"

#define UNTIL_REQUESTED_NS UINT64_C(10000000000)
#define POLL_NS UINT64_C(5000000) /* for kernels that cannot wait for all targets at once */

struct status_reader {
	pthread_t thread;
	_Atomic uint32_t mail; /* changes when any of the following fields does */
	pthread_mutex_t lock; /* guards the following fields */
	struct target **targets;
	uint32_t n_targets;
	size_t capacity;
	bool must_stop;
};

/* After a target's exit its peak memory is final. */
static void read_status(struct target *target)
{
	struct channel_header *header = target->view.header;
	bool is_exiting =
		atomic_load_explicit(&header->state, memory_order_relaxed) == CHANNEL_EXITING;
	uint64_t harmless_filters = atomic_load(&header->harmless_filters);
	struct process_status status;

	if (target->status_fd < 0 || torsh_process_read_status(target->status_fd, &status))
		return;
	torsh_target_count_filters(target, &status, harmless_filters);
	if (!is_exiting)
		return;
	atomic_store_explicit(&target->exit_peak_bytes, status.rss_peak_bytes,
			      memory_order_relaxed);
	torsh_process_usage_exit(&target->usage, target->pid, target->stat_fd);
}

/* Returns the number of requests that were answered so far. */
static uint32_t answer(struct target *target)
{
	struct channel_header *header = target->view.header;
	/* Pairs with the release in torsh_status_request: makes its earlier stores visible. */
	uint32_t requests = atomic_load_explicit(&header->status_requests, memory_order_acquire);

	if (atomic_load_explicit(&header->status_answers, memory_order_relaxed) == requests)
		return requests;
	read_status(target);
	atomic_store_explicit(&header->status_answers, requests, memory_order_release);
	syscall(SYS_futex, &header->status_answers, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return requests;
}

/*
 * Fill in the words to wait for. Returns the number of targets, which may exceed SLEEP_WORDS_MAX.
 */
static uint32_t answer_all(struct status_reader *reader, struct sleep_word words[SLEEP_WORDS_MAX])
{
	for (uint32_t i = 0; i < reader->n_targets; i++) {
		struct target *target = reader->targets[i];
		uint32_t requests = answer(target);

		if (i < SLEEP_WORDS_MAX)
			words[i] = (struct sleep_word){&target->view.header->status_requests,
						       requests};
	}
	return reader->n_targets;
}

static void *run(void *argument)
{
	struct status_reader *reader = argument;
	struct sleep_word words[SLEEP_WORDS_MAX];

	for (;;) {
		/*
		 * Read before everything else: a later change differs from it and prevents the
		 * sleep.
		 */
		uint32_t seen = atomic_load_explicit(&reader->mail, memory_order_acquire), n;
		bool must_stop;

		pthread_mutex_lock(&reader->lock);
		must_stop = reader->must_stop;
		n = answer_all(reader, words);
		pthread_mutex_unlock(&reader->lock);
		if (must_stop)
			return NULL;
		/*
		 * A target may be removed meanwhile, and its word unmapped: the kernel reads it
		 * only before it sleeps.
		 */
		if (torsh_sleep_deeply(&reader->mail, seen, words, n, UNTIL_REQUESTED_NS))
			torsh_sleep_lightly(&reader->mail, seen, n ? POLL_NS : UNTIL_REQUESTED_NS);
	}
}

struct status_reader *torsh_status_reader_start(void)
{
	struct status_reader *reader = torsh_memory_new(1, sizeof(*reader));

	pthread_mutex_init(&reader->lock, NULL);
	if (!pthread_create(&reader->thread, NULL, run, reader))
		return reader;
	pthread_mutex_destroy(&reader->lock);
	free(reader);
	return NULL;
}

void torsh_status_reader_stop(struct status_reader *reader)
{
	if (!reader)
		return;
	pthread_mutex_lock(&reader->lock);
	reader->must_stop = true;
	pthread_mutex_unlock(&reader->lock);
	torsh_sleep_wake(&reader->mail);
	pthread_join(reader->thread, NULL);
	pthread_mutex_destroy(&reader->lock);
	free(reader->targets);
	free(reader);
}

void torsh_status_reader_add(struct status_reader *reader, struct target *target)
{
	pthread_mutex_lock(&reader->lock);
	reader->targets = torsh_array_reserve(reader->targets, reader->n_targets, &reader->capacity,
					      sizeof(*reader->targets));
	reader->targets[reader->n_targets++] = target;
	pthread_mutex_unlock(&reader->lock);
	torsh_sleep_wake(&reader->mail);
}

void torsh_status_reader_remove(struct status_reader *reader, const struct target *target)
{
	pthread_mutex_lock(&reader->lock);
	for (uint32_t i = 0; i < reader->n_targets; i++) {
		if (reader->targets[i] == target)
			reader->targets[i--] = reader->targets[--reader->n_targets];
	}
	pthread_mutex_unlock(&reader->lock);
	torsh_sleep_wake(&reader->mail);
}
