/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When calls of libraries are recorded, and their clock. */
#ifndef TORSH_COLLECTORS_BLAS_BLAS_TIME_H
#define TORSH_COLLECTORS_BLAS_BLAS_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "agent/process/process.h"

/* CLOCK_MONOTONIC. */
static inline uint64_t torsh_blas_now_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool torsh_blas_is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

#endif
