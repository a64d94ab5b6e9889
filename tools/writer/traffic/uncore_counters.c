/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/traffic/uncore_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/memory.h"

/* ---- the kernel ------------------------------------------------------------------------------ */

static int open_counter(const struct perf_event_attr *attributes, uint32_t cpu)
{
	long fd = syscall(SYS_perf_event_open, attributes, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

const struct uncore_calls torsh_uncore_calls = {.open = open_counter, .read = read, .close = close};

/* ---- all counters ---------------------------------------------------------------------------- */

/* Such a source knows no users: it refuses events that exclude the kernel. */
static struct perf_event_attr attributes_of(const struct uncore_event *event)
{
	return (struct perf_event_attr){
		.type = event->type,
		.size = sizeof(struct perf_event_attr),
		.config = event->config[0],
		.config1 = event->config[1],
		.config2 = event->config[2],
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

int torsh_uncore_open(struct uncore_counters *counters, const struct uncore_pmus *pmus,
		      const struct uncore_calls *calls)
{
	*counters = (struct uncore_counters){
		.calls = calls,
		.items = torsh_memory_new(pmus->n_events, sizeof(*counters->items))};
	for (uint32_t i = 0; i < pmus->n_events; i++) {
		const struct uncore_event *event = &pmus->events[i];
		struct perf_event_attr attributes = attributes_of(event);
		int fd = calls->open(&attributes, event->cpu);

		if (fd < 0) {
			torsh_uncore_close(counters);
			return fd;
		}
		counters->items[counters->n++] = (struct uncore_counter){
			.fd = fd, .is_write = event->is_write, .bytes = event->bytes};
	}
	return 0;
}

void torsh_uncore_close(struct uncore_counters *counters)
{
	for (uint32_t i = 0; i < counters->n; i++)
		counters->calls->close(counters->items[i].fd);
	free(counters->items);
	*counters = (struct uncore_counters){0};
}

/* ---- readings -------------------------------------------------------------------------------- */

static int read_one(const struct uncore_counters *counters, const struct uncore_counter *counter,
		    struct uncore_reading *reading)
{
	ssize_t n = counters->calls->read(counter->fd, reading, sizeof(*reading));

	if (n < 0)
		return -errno;
	/* 0: the kernel couldn't go on with the event. */
	return n == sizeof(*reading) ? 0 : -EIO;
}

/*
 * Add what was counted since the last time. The difference of 64 bits is right where the value
 * passes 2^64, too; half of that is a value that went backwards.
 */
static int add(struct uncore_counters *counters, struct uncore_counter *counter,
	       const struct uncore_reading *now)
{
	uint64_t value = now->value - counter->last.value;
	uint64_t enabled_ns = now->enabled_ns - counter->last.enabled_ns;
	uint64_t running_ns = now->running_ns - counter->last.running_ns;

	if ((int64_t)value < 0 || (int64_t)enabled_ns < 0 || (int64_t)running_ns < 0 ||
	    running_ns > enabled_ns)
		return -ERANGE;
	/* What it counts in its next turn stands for this time as well. */
	if (!running_ns)
		return 0;
	counters->sums[counter->is_write] +=
		(double)value * counter->bytes * ((double)enabled_ns / (double)running_ns);
	counter->last = *now;
	counter->is_counted = true;
	return 0;
}

/* Each counter's first reading is the zero of its sum. */
static int begin(struct uncore_counters *counters)
{
	for (uint32_t i = 0; i < counters->n; i++) {
		struct uncore_counter *counter = &counters->items[i];
		int rc = read_one(counters, counter, &counter->first);

		if (rc < 0)
			return rc;
		counter->last = counter->first;
	}
	counters->is_begun = true;
	return 1;
}

static int go_on(struct uncore_counters *counters)
{
	bool are_all = true;

	for (uint32_t i = 0; i < counters->n; i++) {
		struct uncore_counter *counter = &counters->items[i];
		struct uncore_reading now;
		int rc = read_one(counters, counter, &now);

		rc = rc < 0 ? rc : add(counters, counter, &now);
		if (rc < 0)
			return rc;
		are_all = are_all && counter->is_counted;
	}
	for (uint32_t i = 0; are_all && i < counters->n; i++)
		counters->items[i].is_counted = false;
	return are_all;
}

int torsh_uncore_read(struct uncore_counters *counters, uint64_t sums[2])
{
	int rc = counters->is_begun ? go_on(counters) : begin(counters);

	for (int i = 0; i < 2; i++)
		sums[i] = (uint64_t)(counters->sums[i] + 0.5);
	return rc;
}

double torsh_uncore_share(const struct uncore_counters *counters)
{
	double least = 1;

	for (uint32_t i = 0; i < counters->n; i++) {
		const struct uncore_counter *counter = &counters->items[i];
		uint64_t enabled_ns = counter->last.enabled_ns - counter->first.enabled_ns;
		uint64_t running_ns = counter->last.running_ns - counter->first.running_ns;
		double share = enabled_ns ? (double)running_ns / (double)enabled_ns : 1;

		least = share < least ? share : least;
	}
	return least;
}
