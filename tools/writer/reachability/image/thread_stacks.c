/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/thread_stacks.h"

#include <stdbool.h>
#include <unistd.h>

/* Where a stack ends: struct pthread, with static thread-local storage below it. */
#define TOP_BYTES 8192u
#define TOP_WORDS (TOP_BYTES / sizeof(uint64_t))
/*
 * Of struct pthread, in bytes: pointers to itself, the thread's number: 0 once it has ended, -1
 * once it was joined; and who joins it, itself if it is detached (glibc 2.36): with another layout
 * it counts as not detached
 */
#define PTHREAD_SELF 16u
#define PTHREAD_HEAD 24u /* up to the second one, with dtv between them */
#define PTHREAD_TID 720u
#define PTHREAD_JOINER 1568u

static bool is_in_use(const struct memory_area *area, const struct stopped_threads *threads)
{
	for (uint32_t i = 0; i < threads->n; i++) {
		uint64_t at = threads->items[i].stack_pointer;

		if (at >= area->begin && at < area->end)
			return true;
	}
	return false;
}

/* A guard that can't be read lies below a thread's stack. */
static bool has_guard(const struct memory_areas *areas, uint32_t i)
{
	const struct memory_area *below = i ? &areas->items[i - 1] : NULL;

	return below && below->end == areas->items[i].begin && !below->is_readable &&
	       !below->is_writable && !below->is_file;
}

bool torsh_stack_of_ended_thread(const struct memory_areas *areas, uint32_t i,
				 const struct stopped_threads *threads,
				 const struct memory_reader *reader, struct stack_rest *rest)
{
#if defined(__x86_64__)
	const struct memory_area *area = &areas->items[i];
	uint64_t words[TOP_WORDS], begin = area->end - TOP_BYTES;

	if (area->is_file || area->is_shared || !area->is_writable ||
	    area->end - area->begin < TOP_BYTES || !has_guard(areas, i) ||
	    is_in_use(area, threads) ||
	    torsh_memory_copy(reader, begin, words, sizeof(words)) != sizeof(words))
		return false;
	for (size_t k = 0; k + PTHREAD_JOINER / 8 < TOP_WORDS; k++) {
		uint64_t self = begin + 8 * k;
		int32_t tid = (int32_t)words[k + PTHREAD_TID / 8];
		bool has_result = !tid && words[k + PTHREAD_JOINER / 8] != self;

		if (words[k] != self || words[k + PTHREAD_SELF / 8] != self)
			continue;
		*rest = (struct stack_rest){self, has_result ? area->end : self + PTHREAD_HEAD};
		return tid <= 0;
	}
#else
	(void)areas;
	(void)i;
	(void)threads;
	(void)reader;
	(void)rest;
#endif
	return false;
}
