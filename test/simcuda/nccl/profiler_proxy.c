/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NCCL's proxy: a thread of its own that watches the kernel's channels and moves data, after the
 * program's call has returned and its event has stopped.
 */
#include <pthread.h>
#include <stdlib.h>

#include "test/simcuda/nccl/profiler.h"

#define CHUNK_BYTES 4096
#define N_STEPS 2

struct job {
	struct job *next;
	struct profiler *profiler;
	struct profiled task;
	size_t bytes;
	int mask; /* as when it was launched */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static unsigned n_open;
static uint64_t device_ns = 1000000;

static void watch_kernel(struct job *job, int channel)
{
	struct profiled_event event = {.type = PROFILE_KERNEL_CH,
				       .parent = job->task,
				       .channel = channel,
				       .timer = device_ns += 100};
	struct profiled kernel;

	if (!(job->mask & PROFILE_KERNEL_CH) || profiler_version < 3)
		return;
	kernel = profiler_start(job->profiler, &event);
	if (profiler_version >= 4)
		profiler_state(kernel, STATE_KERNEL_STOP, device_ns += 50, 0);
	profiler_stop(&kernel);
}

static void send_step(struct job *job, struct profiled operation, int number)
{
	struct socket_event socket = {1, {30 + number, 1, CHUNK_BYTES}};
	struct profiled_event event = {.type = PROFILE_PROXY_STEP,
				       .parent = operation,
				       .rank = job->profiler->rank,
				       .step = number};
	struct profiled step, packet;

	if (!(job->mask & (PROFILE_PROXY_STEP | PROFILE_NET)))
		return;
	step = profiler_start(job->profiler, &event);
	profiler_state(step, STATE_STEP_SEND_GPU_WAIT,
		       profiler_version < 4 ? 0 : CHUNK_BYTES * (unsigned)number, 0);
	if (job->mask & PROFILE_NET && profiler_version >= 3) {
		event = (struct profiled_event){.type = PROFILE_NET,
						.parent = step,
						.socket = &socket,
						.bytes = CHUNK_BYTES,
						.rank = job->profiler->rank};
		packet = profiler_start(job->profiler, &event);
		profiler_stop(&packet);
	}
	profiler_state(step, STATE_STEP_SEND_WAIT, profiler_version < 4 ? 0 : CHUNK_BYTES, 0);
	profiler_stop(&step);
}

static void operate(struct job *job, int channel)
{
	struct profiled_event event = {.type = PROFILE_PROXY_OP,
				       .parent = job->task,
				       .rank = job->profiler->rank,
				       .channel = channel,
				       .peer = (job->profiler->rank + 1) % job->profiler->n_ranks,
				       .steps = N_STEPS,
				       .chunk = CHUNK_BYTES,
				       .is_send = 1};
	struct profiled operation;

	if (!(job->mask & (PROFILE_PROXY_OP | PROFILE_PROXY_STEP | PROFILE_NET)))
		return;
	operation = profiler_start(job->profiler, &event);
	if (profiler_version >= 4)
		profiler_state(operation, STATE_OP_IN_PROGRESS, 0, 0);
	else
		profiler_state(operation, STATE_OP_SEND_POSTED, 0, 1);
	for (int i = 1; i <= N_STEPS; i++)
		send_step(job, operation, i);
	if (profiler_version < 4)
		profiler_state(operation, STATE_OP_SEND_DONE, job->bytes, N_STEPS);
	profiler_stop(&operation);
}

static void *run(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct job *job = first;

		if (!job) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		first = job->next;
		if (!first)
			last = &first;
		pthread_mutex_unlock(&lock);
		for (int channel = 0; channel < 2; channel++) {
			watch_kernel(job, channel);
			operate(job, channel);
		}
		free(job);
		pthread_mutex_lock(&lock);
		n_open--;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_detach(thread);
}

void profiler_proxy(struct profiler *profiler, struct profiled task, size_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct job *job = malloc(sizeof(*job));

	pthread_once(&once, start_thread);
	*job = (struct job){NULL, profiler, task, bytes, profiler_mask};
	pthread_mutex_lock(&lock);
	*last = job;
	last = &job->next;
	n_open++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void profiler_proxy_drain(void)
{
	pthread_mutex_lock(&lock);
	while (n_open)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
