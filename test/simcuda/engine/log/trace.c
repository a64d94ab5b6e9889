/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who looks on. */
#include "test/simcuda/engine/log/trace.h"

#include <stdatomic.h>

#include "test/simcuda/engine/log/log.h"

static _Atomic(const struct sim_tracer *) the_tracer;

const struct sim_tracer *sim_tracer(void)
{
	/* Pairs with the release below. */
	return atomic_load_explicit(&the_tracer, memory_order_acquire);
}

void sim_tracer_set(const struct sim_tracer *tracer)
{
	const struct sim_tracer *old =
		atomic_exchange_explicit(&the_tracer, tracer, memory_order_acq_rel);

	if (old && tracer && old != tracer)
		sim_violation("two copies of CUPTI are used, one beside the other");
}
