/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/status_request.h"
#include "agent/session/session.h"

#include <time.h>

#include "agent/process/process.h"
#include "shim/sys.h"

/*
 * A running writer answers within some 10 us; a stopped one delays a process for this long, once.
 */
#define ANSWER_MAX_NS UINT64_C(50000000)
/* For a writer that is starting, in the process that started it. */
#define START_MAX_NS UINT64_C(2000000000)
#define STEP_NS UINT64_C(50000000)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Pairs with the release in the writer: has_new_filter belongs to that reading. */
static bool is_answered(const struct channel_header *header, uint32_t request)
{
	return (int32_t)(atomic_load_explicit(&header->status_answers, memory_order_acquire) -
			 request) >= 0;
}

/* A fork in a PID namespace of its own, in which the writer is invisible, doesn't wait. */
static bool is_anybody_there(const struct channel_header *header)
{
	uint32_t state = atomic_load_explicit(&header->writer_state, memory_order_relaxed);
	uint32_t pid = atomic_load_explicit(&header->writer_pid, memory_order_relaxed);

	return (state == CHANNEL_WRITER_NONE || state == CHANNEL_WRITER_ATTACHED) &&
	       !(pid && torsh_sys_is_gone(pid));
}

static bool is_starting(const struct channel_header *header)
{
	return atomic_load_explicit(&header->writer_state, memory_order_relaxed) ==
		       CHANNEL_WRITER_NONE &&
	       torsh_session_has_begun_by(header);
}

static bool await_answer(struct channel_header *header, uint32_t request)
{
	uint64_t begin_ns = now_ns();

	while (!is_answered(header, request)) {
		uint32_t seen = atomic_load_explicit(&header->status_answers, memory_order_relaxed);
		uint64_t at_most_ns = is_starting(header) ? START_MAX_NS : ANSWER_MAX_NS;
		uint64_t left_ns = at_most_ns - (now_ns() - begin_ns);

		if (left_ns > at_most_ns || !is_anybody_there(header))
			return false;
		if ((int32_t)(seen - request) < 0)
			torsh_sys_futex_wait(&header->status_answers, seen,
					     left_ns < STEP_NS ? left_ns : STEP_NS);
	}
	return true;
}

uint32_t torsh_status_request(struct channel_header *header)
{
	/*
	 * Whoever reads this sees what the process stored before: pairs with the acquire in the
	 * writer.
	 */
	uint32_t request =
		atomic_fetch_add_explicit(&header->status_requests, 1, memory_order_acq_rel) + 1;

	torsh_sys_futex_wake(&header->status_requests, 1);
	return request;
}

bool torsh_status_await(struct channel_header *header, uint32_t request)
{
	uint32_t earlier = atomic_load_explicit(&header->status_unanswered, memory_order_relaxed);

	if (earlier && !is_answered(header, earlier))
		return false;
	if (await_answer(header, request))
		return true;
	atomic_store_explicit(&header->status_unanswered, request, memory_order_relaxed);
	return false;
}
