/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/traffic/traffic_meter.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define NS_PER_S UINT64_C(1000000000)

struct traffic_meter {
	struct traffic_options options;
	pthread_t thread;
	int stop_fd; /* an eventfd: written to when the thread has to end */
	pthread_mutex_t lock; /* guards the following fields */
	struct traffic_state state;
	struct traffic_point *points; /* that weren't taken */
	size_t n_points, room;
	/* the thread's alone */
	struct uncore_counters counters;
	uint64_t period_ns;
	uint32_t n_left; /* points until it doubles */
};

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void read_paranoid(struct traffic_state *state, const char *root)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/perf_event_paranoid", root);
	file = fopen(path, "re");
	state->has_paranoid = file && fscanf(file, "%d", &state->paranoid) == 1;
	if (file)
		fclose(file);
}

/* Find the events and open their counters. */
static struct traffic_state open_all(struct traffic_meter *meter)
{
	struct uncore_pmus pmus;
	struct traffic_state state = {.is_begun = true, .counted_share = 1};

	torsh_uncore_pmus_find(&pmus, meter->options.root);
	snprintf(state.name, sizeof(state.name), "%s", pmus.name);
	state.problem = pmus.problem;
	state.n_sources = pmus.n_sources;
	state.n_counters = pmus.n_events;
	if (state.problem == TRAFFIC_COUNTED) {
		state.error = -torsh_uncore_open(&meter->counters, &pmus, meter->options.calls);
		state.problem = state.error ? TRAFFIC_REFUSED : TRAFFIC_COUNTED;
	}
	if (state.problem != TRAFFIC_COUNTED)
		read_paranoid(&state, meter->options.root);
	torsh_uncore_pmus_free(&pmus);
	return state;
}

/* Long runs have their points farther apart, so that these don't grow with time. */
static void slow_down(struct traffic_meter *meter, uint64_t took_ns)
{
	if (!--meter->n_left) {
		meter->period_ns *= 2;
		meter->n_left = TRAFFIC_POINTS_DOUBLE;
	}
	if (meter->period_ns < took_ns * TRAFFIC_COST)
		meter->period_ns = took_ns * TRAFFIC_COST;
}

/* Returns false where nothing more is known from now on. */
static bool look(struct traffic_meter *meter)
{
	uint64_t begin_ns = monotonic_ns(), end_ns;
	struct traffic_point point;
	int rc = torsh_uncore_read(&meter->counters, point.sums);

	end_ns = monotonic_ns();
	point.at_ns = begin_ns + (end_ns - begin_ns) / 2;
	pthread_mutex_lock(&meter->lock);
	meter->state.counted_share = torsh_uncore_share(&meter->counters);
	if (rc < 0) {
		meter->state.problem = TRAFFIC_UNREADABLE;
		meter->state.error = -rc;
	} else if (rc) {
		meter->points = torsh_array_reserve(meter->points, meter->n_points, &meter->room,
						    sizeof(*meter->points));
		meter->points[meter->n_points++] = point;
	}
	pthread_mutex_unlock(&meter->lock);
	slow_down(meter, end_ns - begin_ns);
	return rc >= 0;
}

/* Returns false if the thread has to end. */
static bool rest(struct traffic_meter *meter)
{
	struct pollfd stop = {.fd = meter->stop_fd, .events = POLLIN};
	const struct timespec time = {.tv_sec = (time_t)(meter->period_ns / NS_PER_S),
				      .tv_nsec = (long)(meter->period_ns % NS_PER_S)};
	int rc = ppoll(&stop, 1, &time, NULL);

	return !rc || (rc < 0 && errno == EINTR);
}

static void *run(void *argument)
{
	struct traffic_meter *meter = argument;
	struct traffic_state state = open_all(meter);
	bool goes_on = state.problem == TRAFFIC_COUNTED;

	pthread_mutex_lock(&meter->lock);
	meter->state = state;
	pthread_mutex_unlock(&meter->lock);
	if (!goes_on)
		return NULL;
	while (look(meter) && goes_on)
		goes_on = rest(meter);
	torsh_uncore_close(&meter->counters);
	return NULL;
}

struct traffic_meter *torsh_traffic_start(const struct traffic_options *options)
{
	struct traffic_meter *meter = torsh_memory_new(1, sizeof(*meter));

	meter->options = *options;
	meter->period_ns = options->period_ns;
	meter->n_left = TRAFFIC_POINTS_DOUBLE;
	meter->stop_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&meter->lock, NULL);
	if (meter->stop_fd >= 0 && !pthread_create(&meter->thread, NULL, run, meter))
		return meter;
	torsh_traffic_destroy(meter);
	return NULL;
}

struct traffic_state torsh_traffic_take(struct traffic_meter *meter, struct traffic_point **points,
					size_t *n)
{
	struct traffic_state state;

	pthread_mutex_lock(&meter->lock);
	state = meter->state;
	*points = meter->points;
	*n = meter->n_points;
	meter->points = NULL;
	meter->n_points = meter->room = 0;
	pthread_mutex_unlock(&meter->lock);
	return state;
}

void torsh_traffic_stop(struct traffic_meter *meter)
{
	eventfd_write(meter->stop_fd, 1);
	pthread_join(meter->thread, NULL);
}

void torsh_traffic_destroy(struct traffic_meter *meter)
{
	if (meter->stop_fd >= 0)
		close(meter->stop_fd);
	pthread_mutex_destroy(&meter->lock);
	free(meter->points);
	free(meter);
}
