/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Operations and the order in which they end. */
#include "test/simcuda/engine/queue.h"

#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/op_log.h"
#include "test/simcuda/engine/memory/memory.h"
#include "test/simcuda/engine/memory/pool.h"
#include "test/simcuda/engine/result.h"

struct sim_waiter {
	struct sim_op *op;
	struct sim_waiter *next;
};

/*
 * Something happens to op at t_ns: it becomes ready, or ends. seq keeps what happens at one moment
 * in its order.
 */
struct moment {
	uint64_t t_ns, seq;
	struct sim_op *op;
};

static struct moment *moments; /* a binary heap */
static size_t n_moments, capacity;
static uint64_t last_seq;
static struct sim_op *free_ops;
static struct sim_waiter *free_waiters;

static bool is_before(const struct moment *a, const struct moment *b)
{
	return a->t_ns < b->t_ns || (a->t_ns == b->t_ns && a->seq < b->seq);
}

static void push_moment(uint64_t t_ns, struct sim_op *op)
{
	struct moment moment = {t_ns, ++last_seq, op};
	size_t i = n_moments++;

	if (n_moments > capacity) {
		capacity = capacity ? 2 * capacity : 256;
		moments = realloc(moments, capacity * sizeof(*moments));
	}
	for (; i && is_before(&moment, &moments[(i - 1) / 2]); i = (i - 1) / 2)
		moments[i] = moments[(i - 1) / 2];
	moments[i] = moment;
}

static struct sim_op *pop_moment(uint64_t *t_ns)
{
	struct moment top = moments[0], last = moments[--n_moments];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < n_moments && is_before(&moments[child + 1], &moments[child]))
			child++;
		if (child >= n_moments || !is_before(&moments[child], &last))
			break;
		moments[i] = moments[child];
		i = child;
	}
	moments[i] = last;
	*t_ns = top.t_ns;
	return top.op;
}

uint64_t sim_next_time(void)
{
	return n_moments ? moments[0].t_ns : UINT64_MAX;
}

void sim_each_running(void (*call)(struct sim_op *op))
{
	for (size_t i = 0; i < n_moments; i++)
		if (moments[i].op->state == SIM_OP_RUNNING && moments[i].op->unit != SIM_NO_UNIT)
			call(moments[i].op);
}

static enum sim_unit unit_of(const struct sim_work *work)
{
	switch (work->kind) {
	case SIM_KERNEL:
	case SIM_MEMSET:
		return SIM_COMPUTE;
	case SIM_COPY:
		switch (sim_copy_kind(&work->copy)) {
		case SIM_COPY_TO_DEVICE:
			return SIM_COPY_IN;
		case SIM_COPY_TO_HOST:
			return SIM_COPY_OUT;
		default:
			return SIM_COPY_LOCAL;
		}
	default:
		return SIM_NO_UNIT;
	}
}

/*
 * Whether the program can see that it happened without a call of CUDA. The virtual clock is moved
 * on behind its back only for what it might be waiting for outside of CUDA: how far it comes
 * between two calls depends on the machine.
 */
static bool is_visible(const struct sim_work *work)
{
	if (sim_config()->is_virtual_clock)
		return work->kind == SIM_HOST;
	return work->kind == SIM_HOST || work->kind == SIM_WRITE_VALUE ||
	       (work->kind == SIM_COPY && work->copy.is_async);
}

struct sim_op *sim_op_create(struct sim_context *context, const struct sim_work *work)
{
	struct sim_op *op = free_ops;

	if (op)
		free_ops = op->next;
	else
		op = malloc(sizeof(*op));
	memset(op, 0, offsetof(struct sim_op, work));
	memset((char *)op + offsetof(struct sim_op, unit), 0,
	       sizeof(*op) - offsetof(struct sim_op, unit));
	op->work = *work;
	op->unit = unit_of(work);
	op->context = context;
	op->device = context->device;
	op->n_refs = 1;
	op->n_waits = 1;
	op->thread = sim_thread_id();
	op->correlation = sim_call_correlation();
	op->is_visible = is_visible(work);
	return op;
}

void sim_op_ref(struct sim_op *op)
{
	op->n_refs++;
}

void sim_op_unref(struct sim_op *op)
{
	if (!op || --op->n_refs)
		return;
	if (op->work.kind == SIM_COPY)
		free(op->work.copy.staged);
	op->next = free_ops;
	free_ops = op;
}

void sim_op_after(struct sim_op *op, struct sim_op *before)
{
	struct sim_waiter *waiter = free_waiters;

	if (!before)
		return;
	if (before->state == SIM_OP_DONE) {
		if (before->end_ns > op->ready_ns)
			op->ready_ns = before->end_ns;
		return;
	}
	if (waiter)
		free_waiters = waiter->next;
	else
		waiter = malloc(sizeof(*waiter));
	*waiter = (struct sim_waiter){op, before->waiters};
	before->waiters = waiter;
	op->n_waits++;
}

static void stop_waiting(struct sim_op *op, uint64_t t_ns)
{
	if (t_ns > op->ready_ns)
		op->ready_ns = t_ns;
	if (--op->n_waits == 0) {
		op->state = SIM_OP_READY;
		push_moment(op->ready_ns, op);
	}
}

void sim_op_submit(struct sim_op *op, uint64_t t_ns)
{
	op->submitted_ns = sim_now();
	sim_op_ref(op); /* given up when it ends */
	if (op->stream)
		op->stream->n_pending++;
	if (op->is_visible)
		sim_background_need(1);
	stop_waiting(op, t_ns);
}

static int perform(struct sim_op *op)
{
	switch (op->work.kind) {
	case SIM_KERNEL:
		return sim_gather_perform(&op->work.kernel.gather);
	case SIM_COPY:
		return sim_copy_perform(&op->work.copy);
	case SIM_MEMSET:
		return sim_memset_perform(&op->work.memset);
	case SIM_RELEASE:
		sim_pool_release(op->work.address);
		return SIM_SUCCESS;
	case SIM_WRITE_VALUE: {
		size_t n;
		char *to = sim_memory_reach(op->work.write.to, &n);

		if (!to || n < op->work.write.bytes)
			return SIM_ILLEGAL_ADDRESS;
		memcpy(to, &op->work.write.value, op->work.write.bytes);
		return SIM_SUCCESS;
	}
	default:
		return SIM_SUCCESS;
	}
}

static void start(struct sim_op *op, uint64_t t_ns)
{
	op->state = SIM_OP_RUNNING;
	op->start_ns = t_ns;
	if (op->graph_end && !op->graph_end->graph_start_ns)
		op->graph_end->graph_start_ns = t_ns;
	if (op->work.kind == SIM_HOST)
		sim_background_call(op);
	else
		push_moment(t_ns + op->work.duration_ns, op);
}

/* It is ready: let it start, or wait for its turn. */
static void become_ready(struct sim_op *op, uint64_t t_ns)
{
	struct sim_unit_queue *unit = &op->device->units[op->unit];

	if (op->unit == SIM_NO_UNIT) {
		start(op, t_ns);
	} else if (unit->n_running < unit->n_most) {
		unit->n_running++;
		start(op, t_ns);
	} else {
		op->next = NULL;
		if (unit->last)
			unit->last->next = op;
		else
			unit->first = op;
		unit->last = op;
	}
}

static void leave_unit(struct sim_op *op, uint64_t t_ns)
{
	struct sim_unit_queue *unit = &op->device->units[op->unit];
	struct sim_op *next = unit->first;

	if (op->unit == SIM_NO_UNIT)
		return;
	if (!next) {
		unit->n_running--;
		return;
	}
	unit->first = next->next;
	if (!unit->first)
		unit->last = NULL;
	start(next, t_ns);
}

static void release_waiters(struct sim_op *op)
{
	while (op->waiters) {
		struct sim_waiter *waiter = op->waiters;

		op->waiters = waiter->next;
		stop_waiting(waiter->op, op->end_ns);
		waiter->next = free_waiters;
		free_waiters = waiter;
	}
}

static void finish(struct sim_op *op, uint64_t t_ns)
{
	op->end_ns = t_ns;
	op->error = perform(op);
	if (op->error)
		op->context->error = op->error;
	op->state = SIM_OP_DONE;
	leave_unit(op, t_ns);
	sim_op_report(op);
	if (op->is_visible)
		sim_background_need(-1);
	if (op->stream) {
		op->stream->n_pending--;
		if (op->stream->tail == op) {
			op->stream->tail = NULL;
			sim_op_unref(op);
		}
	}
	release_waiters(op);
	sim_op_unref(op);
}

void sim_op_finish_host(struct sim_op *op)
{
	finish(op, sim_now());
	sim_wake();
}

static void run_to(uint64_t t_ns)
{
	while (n_moments && moments[0].t_ns <= t_ns) {
		uint64_t at;
		struct sim_op *op = pop_moment(&at);

		if (op->state == SIM_OP_READY)
			become_ready(op, at);
		else
			finish(op, at);
	}
}

void sim_run(void)
{
	run_to(sim_now());
}

/* One step of a waiting thread. */
static void step(void)
{
	uint64_t next = sim_next_time();

	if (next != UINT64_MAX)
		sim_clock_reach(next);
	if (next > sim_now())
		sim_wait_until(next);
	sim_run();
}

void sim_wait_for(struct sim_op *op)
{
	if (!op)
		return;
	sim_op_ref(op);
	sim_run();
	while (op->state != SIM_OP_DONE)
		step();
	sim_op_unref(op);
}

void sim_wait_for_room(struct sim_stream *stream, int n_most)
{
	sim_run();
	while (stream->n_pending >= n_most)
		step();
}
