/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch/operator_marks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/device/devices.h"
#include "shim/sys.h"

#define MARKS_A_TIME 256u
/* so many later calls precede the query of a call: it is then complete, without waiting */
#define LAG 4096u
#define MARKS_MAX (4 * LAG)

/* An operator's call, from its beginning until its times are complete. */
struct operator_mark {
	struct operator_mark *next, *parent;
	uintptr_t key;
	const struct device_ops *row;
	void *begin, *end;
	int64_t begin_ns;
	int device;
	uint32_t number;
	double inner_us; /* of the operators that it called */
	/* one of these has no times; also set by the thread that settles them */
	_Atomic bool is_lost;
};

struct list {
	struct operator_mark *first, **last;
};

/* In pages that are zeroed in a forked child. */
struct state {
	_Atomic uint32_t n_marks, n_pending, is_settling, number, is_sent, is_finished;
};

static struct state *state;
static struct cuda_lock lock; /* guards what follows, and the creation of the state */
static struct operator_mark *spares;
static struct list pending; /* called operators before their callers */

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	torsh_operator_marks_finish();
}

static int prepare(void)
{
	struct state *made = NULL;

	if (state)
		return 1;
	torsh_cuda_lock(&lock);
	if (!state)
		state = made = torsh_sys_own_pages(sizeof(*made));
	torsh_cuda_unlock(&lock);
	if (made) {
		/*
		 * Runs before handlers that were registered earlier: the accelerator is still there
		 * then.
		 */
		on_exit(at_exit, NULL);
	}
	return state != NULL;
}

/* The first row with a usable runtime. Without a loop: each operator's begin asks. */
static inline const struct device_ops *enabled_row(void)
{
#define DEVICE_ROW(name)                                                                 \
	if (&torsh_device_##name != &torsh_device_cuda && torsh_device_##name.enabled()) \
		return &torsh_device_##name;
	DEVICE_ROWS
#undef DEVICE_ROW
	return NULL;
}

static struct operator_mark *take_mark(void)
{
	struct operator_mark *mark;

	torsh_cuda_lock(&lock);
	if (!spares && atomic_load_explicit(&state->n_marks, memory_order_relaxed) < MARKS_MAX) {
		mark = torsh_sys_pages(MARKS_A_TIME * sizeof(*mark));
		for (uint32_t i = 0; mark && i < MARKS_A_TIME; i++) {
			mark[i].next = spares;
			spares = &mark[i];
		}
		atomic_fetch_add_explicit(&state->n_marks, MARKS_A_TIME, memory_order_relaxed);
	}
	mark = spares;
	if (mark)
		spares = mark->next;
	torsh_cuda_unlock(&lock);
	return mark;
}

static void give_mark(struct operator_mark *mark)
{
	torsh_cuda_lock(&lock);
	mark->next = spares;
	spares = mark;
	torsh_cuda_unlock(&lock);
}

static void lose(struct operator_mark *mark)
{
	if (mark)
		atomic_store_explicit(&mark->is_lost, true, memory_order_relaxed);
}

static bool is_lost(struct operator_mark *mark)
{
	return atomic_load_explicit(&mark->is_lost, memory_order_relaxed);
}

/*
 * A mark at the beginning of a call. NULL without room for one, or without a mark from the device.
 */
static struct operator_mark *make_mark(const struct device_ops *row)
{
	struct operator_mark *mark = take_mark();

	if (!mark)
		return NULL;
	/* Marks of another row are useless. */
	if (mark->row != row)
		mark->begin = mark->end = NULL;
	mark->row = row;
	if (!row->record(NULL, &mark->device, &mark->begin, &mark->begin_ns))
		return mark;
	give_mark(mark);
	return NULL;
}

/* Apart from torsh_operator_marks_begin, which has few instructions without such a row. */
static __attribute__((noinline)) void begin_marked(struct operator_marks *marks, uintptr_t key,
						   const struct device_ops *row)
{
	struct operator_mark *mark;

	if (!prepare() || atomic_load_explicit(&state->is_finished, memory_order_relaxed))
		return;
	mark = make_mark(row);
	if (!mark) {
		torsh_count(COUNTER_operator_times_lost);
		/* Its time would count as theirs. */
		lose(marks->innermost);
		return;
	}
	mark->key = key;
	mark->inner_us = 0;
	atomic_store_explicit(&mark->is_lost, false, memory_order_relaxed);
	mark->parent = marks->innermost;
	marks->innermost = mark;
}

void torsh_operator_marks_begin(struct operator_marks *marks, uintptr_t key)
{
	const struct device_ops *row = enabled_row();

	if (__builtin_expect(row != NULL, 0))
		begin_marked(marks, key, row);
}

/* ---- the end of a call ----------------------------------------------------------------------- */

static void send_marked(struct producer *producer, const struct operator_mark *mark)
{
	struct event event = {.id = EVENT_OP_MARKED, .op_marked = {.number = mark->number}};

	torsh_producer_event(producer, &event, NULL);
}

static void send_time(struct producer *producer, const struct operator_mark *mark, double us)
{
	double own_us = us > mark->inner_us ? us - mark->inner_us : 0;
	struct event event = {
		.id = EVENT_OP_ACCELERATED,
		.op_accelerated =
			{
				.device = torsh_label(mark->row->name, strlen(mark->row->name)),
				.index = (uint32_t)mark->device,
				.number = mark->number,
				.begin = (uint64_t)mark->begin_ns,
				.duration_ns = us > 0 ? (uint64_t)(us * 1000 + 0.5) : 0,
				.own_ns = (uint64_t)(own_us * 1000 + 0.5),
			},
	};

	torsh_producer_event(producer, &event, NULL);
}

static int query_time(const struct operator_mark *mark, double *us, bool may_wait)
{
	int result = mark->row->elapsed(mark->begin, mark->end, us);

	if (result != -EAGAIN || !may_wait || mark->row->synchronize())
		return result;
	return mark->row->elapsed(mark->begin, mark->end, us);
}

static void settle(struct producer *producer, struct operator_mark *mark, bool may_wait)
{
	double us = 0;

	if (!is_lost(mark) && query_time(mark, &us, may_wait))
		lose(mark);
	if (is_lost(mark)) {
		torsh_count(COUNTER_operator_times_lost);
		/* Without the times of the operators that it called, its own time is unknown. */
		lose(mark->parent);
	} else {
		if (mark->parent && us > 0)
			mark->parent->inner_us += us;
		send_time(producer, mark, us);
	}
	give_mark(mark);
	atomic_fetch_sub_explicit(&state->n_pending, 1, memory_order_relaxed);
}

static struct operator_mark *take_first(void)
{
	struct operator_mark *mark;

	torsh_cuda_lock(&lock);
	mark = pending.first;
	if (mark)
		pending.first = mark->next;
	torsh_cuda_unlock(&lock);
	return mark;
}

/*
 * Settle calls until n_left are left. One thread at a time: callers are settled after the operators
 * that they called.
 */
static void settle_to(struct producer *producer, uint32_t n_left)
{
	struct operator_mark *mark;

	if (atomic_exchange_explicit(&state->is_settling, 1, memory_order_acquire))
		return;
	while (atomic_load_explicit(&state->n_pending, memory_order_relaxed) > n_left &&
	       (mark = take_first()))
		settle(producer, mark, n_left == 0);
	/* Pairs with the acquire above. */
	atomic_store_explicit(&state->is_settling, 0, memory_order_release);
}

static void add_pending(struct operator_mark *mark)
{
	mark->next = NULL;
	torsh_cuda_lock(&lock);
	if (!pending.first)
		pending.last = &pending.first;
	*pending.last = mark;
	pending.last = &mark->next;
	torsh_cuda_unlock(&lock);
	atomic_fetch_add_explicit(&state->n_pending, 1, memory_order_relaxed);
}

static void send_how(void)
{
	if (!atomic_exchange_explicit(&state->is_sent, 1, memory_order_relaxed))
		torsh_channel_note(
			&torsh_process->channel,
			"torch: operators' device times are those of events of the accelerator's own runtime "
			"(PrivateUse1), one where the operator begins and one where it ends");
}

/* Remove the call, and those in it without reported ends. NULL: it was not marked. */
static struct operator_mark *close_call(struct operator_marks *marks, uintptr_t key)
{
	struct operator_mark *call = marks->innermost;

	while (call && call->key != key)
		call = call->parent;
	if (!call)
		return NULL;
	while (marks->innermost != call) {
		struct operator_mark *inner = marks->innermost;

		/* The caller is settled later: it must exist until then. */
		marks->innermost = inner->parent;
		lose(inner);
		add_pending(inner);
	}
	marks->innermost = call->parent;
	return call;
}

void torsh_operator_marks_close(struct operator_marks *marks, struct producer *producer,
				uintptr_t key)
{
	struct operator_mark *mark = close_call(marks, key);

	if (!mark)
		return;
	if (mark->row->record(NULL, NULL, &mark->end, NULL))
		lose(mark);
	mark->number = atomic_fetch_add_explicit(&state->number, 1, memory_order_relaxed) + 1;
	send_how();
	send_marked(producer, mark);
	add_pending(mark);
	if (atomic_load_explicit(&state->n_pending, memory_order_relaxed) > 2 * LAG)
		settle_to(producer, LAG);
}

void torsh_operator_marks_finish(void)
{
	struct producer *producer;

	/* Afterwards the accelerator may be gone. */
	if (!state || torsh_agent_is_borrowed() ||
	    atomic_exchange_explicit(&state->is_finished, 1, memory_order_relaxed))
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	settle_to(producer, 0);
	/* If another thread settles, which may be stopped for ever. */
	torsh_count_many(COUNTER_operator_times_lost,
			 atomic_load_explicit(&state->n_pending, memory_order_relaxed));
	torsh_producer_leave(producer);
}
