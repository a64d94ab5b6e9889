/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/usage/device_users.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/base/memory.h"

#define BETWEEN_LOOKS_NS 20000000
#define STOP_SECONDS 1
#define LOOKS_MAX 4096u /* of a session: a look has 4 KiB at most in a recording */

struct device_users {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the following fields */
	pthread_cond_t changed;
	bool is_requested, must_stop;
	uint32_t n_kept;
	struct device_users_look *looks;
	/* the thread's alone */
	struct nvml_use *last; /* of each device */
};

static bool is_same(const struct nvml_use *a, const struct nvml_use *b)
{
	if (a->n_processes != b->n_processes || a->used_bytes != b->used_bytes ||
	    a->problem != b->problem || a->has_memory != b->has_memory)
		return false;
	for (uint32_t i = 0; i < a->n_processes; i++) {
		if (a->processes[i].pid != b->processes[i].pid ||
		    a->processes[i].bytes != b->processes[i].bytes)
			return false;
	}
	return true;
}

static void keep(struct device_users *users, const struct nvml_use *use)
{
	struct device_users_look *look = torsh_memory_new(1, sizeof(*look));

	look->use = *use;
	pthread_mutex_lock(&users->lock);
	if (users->n_kept < LOOKS_MAX) {
		look->next = users->looks;
		users->looks = look;
		users->n_kept++;
		look = NULL;
	}
	pthread_mutex_unlock(&users->lock);
	free(look);
}

static void look(struct device_users *users, const struct nvml *nvml)
{
	struct nvml_use *use = torsh_memory_new(1, sizeof(*use));

	for (uint32_t i = 0; i < torsh_nvml_devices(nvml); i++) {
		torsh_nvml_look(nvml, i, use);
		if (is_same(use, &users->last[i]))
			continue;
		users->last[i] = *use;
		keep(users, use);
	}
	free(use);
}

/* Returns false if the thread has to end. */
static bool wait_for_request(struct device_users *users)
{
	bool is_requested;

	pthread_mutex_lock(&users->lock);
	while (!users->is_requested && !users->must_stop)
		pthread_cond_wait(&users->changed, &users->lock);
	is_requested = users->is_requested;
	users->is_requested = false;
	pthread_mutex_unlock(&users->lock);
	return is_requested;
}

static void rest(struct device_users *users)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += BETWEEN_LOOKS_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&users->lock);
	while (!users->must_stop &&
	       !pthread_cond_timedwait(&users->changed, &users->lock, &until)) {
	}
	pthread_mutex_unlock(&users->lock);
}

static void *run(void *argument)
{
	struct device_users *users = argument;
	const char *problem;
	struct nvml *nvml = torsh_nvml_open(&problem);

	if (!nvml) {
		struct nvml_use *none = torsh_memory_new(1, sizeof(*none));

		none->problem = problem;
		keep(users, none);
		free(none);
		return NULL;
	}
	users->last = torsh_memory_new(torsh_nvml_devices(nvml), sizeof(*users->last));
	while (wait_for_request(users)) {
		look(users, nvml);
		rest(users);
	}
	free(users->last);
	torsh_nvml_close(nvml);
	return NULL;
}

struct device_users *torsh_device_users_start(void)
{
	struct device_users *users = torsh_memory_new(1, sizeof(*users));

	pthread_mutex_init(&users->lock, NULL);
	pthread_cond_init(&users->changed, NULL);
	if (!pthread_create(&users->thread, NULL, run, users))
		return users;
	pthread_cond_destroy(&users->changed);
	pthread_mutex_destroy(&users->lock);
	free(users);
	return NULL;
}

void torsh_device_users_request(struct device_users *users)
{
	pthread_mutex_lock(&users->lock);
	users->is_requested = true;
	pthread_cond_signal(&users->changed);
	pthread_mutex_unlock(&users->lock);
}

struct device_users_look *torsh_device_users_take(struct device_users *users)
{
	struct device_users_look *looks;

	pthread_mutex_lock(&users->lock);
	looks = users->looks;
	users->looks = NULL;
	pthread_mutex_unlock(&users->lock);
	return looks;
}

void torsh_device_users_stop(struct device_users *users, struct device_users_look **rest)
{
	struct timespec until;
	bool is_stuck;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	pthread_mutex_lock(&users->lock);
	users->must_stop = true;
	pthread_cond_signal(&users->changed);
	pthread_mutex_unlock(&users->lock);
	is_stuck = pthread_timedjoin_np(users->thread, NULL, &until) != 0;
	*rest = torsh_device_users_take(users);
	if (is_stuck) {
		pthread_detach(users->thread);
		return;
	}
	pthread_cond_destroy(&users->changed);
	pthread_mutex_destroy(&users->lock);
	free(users);
}
