/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/writer_call.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "agent/process/process.h"
#include "agent/producer/channel.h"
#include "shim/libc/thread.h"
#include "shim/sys.h"

#define STEP_NS UINT64_C(50000000)
/* time without progress after which the writer counts as stopped */
#define SILENT_MAX_NS UINT64_C(5000000000)

/* The writer's progress, as seen by a thread that waits. */
struct progress {
	uint32_t heartbeat;
	uint64_t moved_ns; /* time of its last change */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns 0 if waiting may still help, or the error. */
static int check_writer(const struct channel_header *header, struct progress *progress)
{
	uint32_t state = atomic_load_explicit(&header->writer_state, memory_order_acquire);
	uint32_t heartbeat = atomic_load_explicit(&header->heartbeat, memory_order_relaxed);
	uint64_t now = now_ns();

	if ((state != CHANNEL_WRITER_NONE && state != CHANNEL_WRITER_ATTACHED) ||
	    torsh_agent_is_abandoned())
		return -ESRCH;
	if (heartbeat != progress->heartbeat)
		*progress = (struct progress){.heartbeat = heartbeat, .moved_ns = now};
	return now - progress->moved_ns < SILENT_MAX_NS ? 0 : -ETIMEDOUT;
}

/* Returns 0 when the calling thread is the only one that calls. */
static int take_turn(struct channel_header *header, uint32_t self)
{
	struct progress progress = {.moved_ns = now_ns()};

	for (;;) {
		uint32_t caller = 0;
		int error;

		/* Acquire pairs with the release in end_turn. */
		if (atomic_compare_exchange_strong_explicit(&header->caller, &caller, self,
							    memory_order_acquire,
							    memory_order_relaxed))
			return 0;
		if (caller == self)
			return -EDEADLK;
		error = check_writer(header, &progress);
		if (error)
			return error;
		/* A thread that ended within its call leaves its turn to the next one. */
		if (torsh_sys_is_gone(caller) &&
		    atomic_compare_exchange_strong_explicit(&header->caller, &caller, self,
							    memory_order_acquire,
							    memory_order_relaxed))
			return 0;
		torsh_sys_futex_wait(&header->caller, caller, STEP_NS);
	}
}

static void end_turn(struct channel_header *header)
{
	atomic_store_explicit(&header->caller, 0, memory_order_release);
	torsh_sys_futex_wake(&header->caller, 1);
}

static int await_answer(struct channel_header *header, uint32_t number)
{
	struct progress progress = {.moved_ns = now_ns()};
	uint32_t answers;

	/* Pairs with the release in torsh_program_call_reply: the answer is complete. */
	while ((answers = atomic_load_explicit(&header->call_answers, memory_order_acquire)) !=
	       number) {
		int error = check_writer(header, &progress);

		if (error)
			return error;
		torsh_sys_futex_wait(&header->call_answers, answers, STEP_NS);
	}
	return atomic_load_explicit(&header->call_result, memory_order_relaxed);
}

static bool fits(const char *text, size_t n_bytes)
{
	return !text || strnlen(text, n_bytes) < n_bytes;
}

static void copy_text(char *to, const char *text)
{
	if (text)
		memcpy(to, text, strlen(text) + 1);
	else
		*to = '\0';
}

int torsh_writer_call(struct channel_header *header, const struct writer_request *request,
		      struct channel_memory *memory)
{
	uint32_t number, verb = request->verb;
	int result;

	*memory = (struct channel_memory){0};
	if (!fits(request->argument, CHANNEL_ARGUMENT_BYTES) ||
	    !fits(request->path, CHANNEL_PATH_BYTES))
		return -ENAMETOOLONG;
	result = take_turn(header, (uint32_t)torsh_thread_tid());
	if (result)
		return result;
	copy_text(header->call_argument, request->argument);
	copy_text(header->call_path, request->path);
	number = atomic_load_explicit(&header->calls, memory_order_relaxed) + 1;
	atomic_store_explicit(&header->call_verb, verb, memory_order_relaxed);
	atomic_store_explicit(&header->call_window, request->window, memory_order_relaxed);
	/* Pairs with the acquire in torsh_program_call_take. */
	atomic_store_explicit(&header->calls, number, memory_order_seq_cst);
	torsh_channel_ring_doorbell(header);
	result = await_answer(header, number);
	if (!result && verb < CALL_PAUSE)
		*memory = header->call_memory;
	end_turn(header);
	return result;
}
