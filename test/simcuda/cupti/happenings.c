/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What happened and is not a record yet. The engine reports it under its lock, where no client
 * function may be called; records are made of it by a flush, or by a thread of the program at the
 * end of a call when there is much.
 */
#include "test/simcuda/cupti/cupti.h"
#include "test/simcuda/cupti/profiler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/lock.h"

enum { MUCH = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the happenings */
/* keeps their order among threads that drain */
static pthread_mutex_t draining = PTHREAD_MUTEX_INITIALIZER;
static struct cupti_happening *happenings, *spare; /* spare: of whoever drains */
static size_t capacity, spare_capacity;
static _Atomic size_t n_happenings;

static void keep(const struct cupti_happening *happening)
{
	pthread_mutex_lock(&lock);
	if (n_happenings == capacity) {
		capacity = capacity ? 2 * capacity : 2 * MUCH;
		happenings = realloc(happenings, capacity * sizeof(*happenings));
	}
	happenings[n_happenings++] = *happening;
	pthread_mutex_unlock(&lock);
}

static CUpti_ActivityKind kind_of(const struct sim_op *op)
{
	switch (op->work.kind) {
	case SIM_KERNEL:
		return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	case SIM_COPY:
		return sim_copy_kind(&op->work.copy) == SIM_COPY_BETWEEN_DEVICES
			       ? CUPTI_ACTIVITY_KIND_MEMCPY2
			       : CUPTI_ACTIVITY_KIND_MEMCPY;
	case SIM_MEMSET:
		return CUPTI_ACTIVITY_KIND_MEMSET;
	case SIM_RECORD:
		return CUPTI_ACTIVITY_KIND_CUDA_EVENT;
	default:
		return op->ends_graph ? CUPTI_ACTIVITY_KIND_GRAPH_TRACE
				      : CUPTI_ACTIVITY_KIND_INVALID;
	}
}

static bool is_recorded(const struct sim_op *op)
{
	CUpti_ActivityKind kind = kind_of(op);

	/* Graphs are recorded as a whole or by their nodes, never both. */
	if (op->graph_node && cupti_is_recorded(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, op->submitted_ns))
		return false;
	if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
	    cupti_is_recorded(CUPTI_ACTIVITY_KIND_KERNEL, op->submitted_ns))
		return true;
	return kind && cupti_is_recorded(kind, op->submitted_ns);
}

void cupti_op_ends(const struct sim_op *op)
{
	struct cupti_happening happening = {.what = HAPPENED_OP};

	ranges_op_ends(op);
	sampling_op_ends(op);
	if (op->is_forced_out || !is_recorded(op))
		return;
	happening.op = *op;
	keep(&happening);
}

void cupti_memory(const struct sim_memory_event *event)
{
	struct cupti_happening happening = {.what = HAPPENED_MEMORY, .memory = *event};

	if (cupti_is_recorded(CUPTI_ACTIVITY_KIND_MEMORY2, event->t_ns))
		keep(&happening);
}

void cupti_waited(const struct sim_wait_event *event)
{
	struct cupti_happening happening = {.what = HAPPENED_WAIT, .wait = *event};

	if (cupti_is_recorded(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, event->begin_ns))
		keep(&happening);
}

bool cupti_has_much(void)
{
	return n_happenings >= MUCH;
}

/* What there is, in place of the spare room; returns how many. */
static size_t take(struct cupti_happening **taken)
{
	size_t n, n_room;

	pthread_mutex_lock(&lock);
	n = n_happenings;
	n_room = capacity;
	*taken = happenings;
	happenings = spare;
	capacity = spare_capacity;
	n_happenings = 0;
	pthread_mutex_unlock(&lock);
	spare = *taken;
	spare_capacity = n_room;
	return n;
}

bool cupti_drain(void)
{
	struct cupti_happening *taken;
	size_t n;

	if (!n_happenings)
		return false;
	pthread_mutex_lock(&draining);
	cupti_calibrate();
	n = take(&taken);
	for (size_t i = 0; i < n; i++)
		cupti_record(&taken[i]);
	pthread_mutex_unlock(&draining);
	return n != 0;
}

static void force_out(struct sim_op *op)
{
	struct cupti_happening happening = {.what = HAPPENED_OP, .is_unfinished = true};

	if (op->is_forced_out || !is_recorded(op))
		return;
	happening.op = *op;
	op->is_forced_out = true;
	keep(&happening);
}

void cupti_force_out(void)
{
	sim_lock();
	sim_each_running(force_out);
	sim_unlock();
}

void cupti_forget(void)
{
	pthread_mutex_lock(&lock);
	n_happenings = 0;
	pthread_mutex_unlock(&lock);
}
