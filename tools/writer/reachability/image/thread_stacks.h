/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stacks that glibc keeps of threads that have ended, for the next ones. */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_THREAD_STACKS_H
#define TORSH_WRITER_REACHABILITY_IMAGE_THREAD_STACKS_H

#include <stdint.h>

#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"
#include "tools/writer/reachability/image/stopped_threads.h"

/*
 * Returns where in area number i the C library's own data begin if it is such a stack: what is
 * below is of no thread; otherwise 0. On other CPUs than x86-64 and with other C libraries none is
 * recognised.
 */
uint64_t torsh_stack_of_ended_thread(const struct memory_areas *areas, uint32_t i,
				     const struct stopped_threads *threads,
				     const struct memory_reader *reader);

#endif
