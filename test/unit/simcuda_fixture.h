/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A simulated device on the virtual clock, for tests of the engine: times are exact. */
#ifndef SIMCUDA_FIXTURE_H
#define SIMCUDA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/graph.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory.h"
#include "test/simcuda/engine/pool.h"
#include "test/simcuda/engine/queue.h"
#include "test/simcuda/engine/result.h"

enum { DEVICE_BYTES = 64 << 20, LAUNCH_NS = 100, KERNEL_NS = 1000, CONCURRENT = 2 };

/* Objects that were destroyed are kept, so that a stale handle is told from a live one: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct sim_context *context;

static inline int begin_simulation(void **state)
{
	(void)state;
	setenv("SIMCUDA_CLOCK", "virtual", 1);
	setenv("SIMCUDA_DEVICES", "2", 1);
	setenv("SIMCUDA_MEMORY", "64M", 1);
	setenv("SIMCUDA_LAUNCH_NS", "100", 1);
	setenv("SIMCUDA_KERNEL_NS", "1000", 1);
	setenv("SIMCUDA_KERNELS", "slow*=5000", 1);
	setenv("SIMCUDA_CONCURRENT", "2", 1);
	setenv("SIMCUDA_COPY_NS", "10", 1);
	setenv("SIMCUDA_LINK_BYTES_PER_US", "1000", 1);
	setenv("SIMCUDA_QUEUE", "8", 1);
	return sim_begin() || sim_primary_retain(sim_device(0), &context);
}

static inline struct sim_stream *make_stream(unsigned flags)
{
	struct sim_stream *stream;

	assert_int_equal(sim_stream_create(context, flags, 0, &stream), 0);
	return stream;
}

static inline struct sim_work kernel(const char *name)
{
	struct sim_work work = {.kind = SIM_KERNEL, .duration_ns = sim_kernel_duration(name)};

	work.kernel.name = name;
	return work;
}

/* Submit, and return a reference to the operation. */
static inline struct sim_op *submit(struct sim_stream *stream, struct sim_work work)
{
	struct sim_op *op;

	assert_int_equal(sim_stream_submit(stream, &work, &op), 0);
	return op;
}

static inline struct sim_event *make_event(void)
{
	struct sim_event *event;

	assert_int_equal(sim_event_create(context, 0, &event), 0);
	return event;
}

static inline struct sim_work record(struct sim_event *event)
{
	return (struct sim_work){.kind = SIM_RECORD, .event = event};
}

static inline struct sim_work wait_for(struct sim_event *event)
{
	return (struct sim_work){.kind = SIM_WAIT, .event = event};
}

#endif
