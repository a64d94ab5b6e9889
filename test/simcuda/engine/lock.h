/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The engine's one lock: guards devices, contexts, streams, operations, ranges and pools. Not held
 * while anything of the program's is called.
 */
#ifndef SIMCUDA_LOCK_H
#define SIMCUDA_LOCK_H

#include <pthread.h>

extern pthread_mutex_t sim_the_lock;

static inline void sim_lock(void)
{
	pthread_mutex_lock(&sim_the_lock);
}

static inline void sim_unlock(void)
{
	pthread_mutex_unlock(&sim_the_lock);
}

#endif
