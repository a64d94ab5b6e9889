/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stacks that glibc keeps of threads that have ended, for the next ones. */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_THREAD_STACKS_H
#define TORSH_WRITER_REACHABILITY_IMAGE_THREAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"
#include "tools/writer/reachability/image/stopped_threads.h"

/* What is still in use of it. */
struct stack_rest {
	uint64_t begin, end;
};

/*
 * Returns whether area number i is such a stack. What is in use is the thread's descriptor, with
 * its result; once it was joined, or if it is detached, the head alone, with the table of thread-
 * local storage that the next thread takes over. On other CPUs than x86-64 and with other C
 * libraries none is recognised.
 */
bool torsh_stack_of_ended_thread(const struct memory_areas *areas, uint32_t i,
				 const struct stopped_threads *threads,
				 const struct memory_reader *reader, struct stack_rest *rest);

#endif
