/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who looks on. */
#include "test/simcuda/engine/trace.h"

#include <stdatomic.h>

static _Atomic(const struct sim_tracer *) the_tracer;

static _Thread_local struct sim_context *current;

struct sim_context *sim_context_current(void)
{
	return current;
}

void sim_context_make_current(struct sim_context *context)
{
	current = context;
}

const struct sim_tracer *sim_tracer(void)
{
	/* Pairs with the release below. */
	return atomic_load_explicit(&the_tracer, memory_order_acquire);
}

void sim_tracer_set(const struct sim_tracer *tracer)
{
	atomic_store_explicit(&the_tracer, tracer, memory_order_release);
}
