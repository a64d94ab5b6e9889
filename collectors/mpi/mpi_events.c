/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/mpi/mpi_events.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"

static _Atomic uint32_t n_begun; /* in this process and those that it was forked from */

uint64_t torsh_mpi_now(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint32_t torsh_mpi_send_begin(const struct event_collective *begin, const char *name)
{
	struct event event = {.id = EVENT_COLLECTIVE, .collective = *begin};
	int saved = errno;
	struct producer *producer = torsh_producer_enter();

	event.collective.source = COLLECTIVE_BY_MPI;
	event.collective.number = 0;
	if (producer) {
		if (torsh_schedule_is_on(producer)) {
			event.collective.number =
				NUMBER_OF_MPI |
				(atomic_fetch_add_explicit(&n_begun, 1, memory_order_relaxed) + 1);
			event.collective.name = torsh_label(name, strlen(name));
			torsh_producer_event(producer, &event, NULL);
		}
		torsh_producer_leave(producer);
	}
	errno = saved;
	return event.collective.number;
}

static void send(const struct event *event)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();

	if (producer) {
		torsh_producer_event(producer, event, NULL);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

void torsh_mpi_send_moved(const struct event_collective_moved *moved)
{
	struct event event = {.id = EVENT_COLLECTIVE_MOVED, .collective_moved = *moved};

	event.collective_moved.source = COLLECTIVE_BY_MPI;
	if (moved->number)
		send(&event);
}

void torsh_mpi_send_end(uint32_t number, bool has_failed)
{
	const struct event event = {
		.id = EVENT_COLLECTIVE_END,
		.collective_end = {.source = COLLECTIVE_BY_MPI,
				   .number = number,
				   .has_failed = has_failed},
	};

	if (number)
		send(&event);
}

void torsh_mpi_send_wait(uint32_t number, uint64_t begin_ns, uint64_t duration_ns)
{
	const struct event event = {
		.id = EVENT_COLLECTIVE_WAIT,
		.collective_wait = {.source = COLLECTIVE_BY_MPI,
				    .number = number,
				    .begin = begin_ns,
				    .duration_ns = duration_ns},
	};

	if (number)
		send(&event);
}
