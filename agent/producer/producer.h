/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A flow: one ordered stream of events on one ring, with what its encoding remembers. A thread has
 * one, and a second one for signal handlers that interrupt its hooks. A hook records so:
 *
 *	struct flow *flow = torsh_flow_enter();
 *
 *	if (!flow)
 *		return;			nothing is recorded here: off, re-entered, or no room
 *	torsh_flow_alloc(...)
 *	torsh_flow_leave(flow);
 *
 * Entering never blocks; recording may wait for room on the ring, for a bounded time.
 */
#ifndef TORSH_AGENT_PRODUCER_FLOW_H
#define TORSH_AGENT_PRODUCER_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/producer/stamp.h"
#include "agent/python/python.h"
#include "agent/stack/stack.h"
#include "agent/wire/codec.h"
#include "agent/wire/ring.h"
#include "shim/cpython/cpython.h"
#include "shim/sys.h"

enum flow_state {
	FLOW_FORKED, /* these pages were zeroed by fork: the process is a new one */
	FLOW_IDLE,
	FLOW_BUSY, /* the late flow: some thread is in a hook */
	FLOW_NOT_CREATED, /* stands for a thread that has none yet */
	FLOW_QUIET, /* stands for a thread whose calls are the agent's own */
	/* stands for a thread that has forbidden itself what an event takes: they are counted */
	FLOW_MUTE,
	FLOW_ENDED, /* stands for a thread that has given its flow back */
	N_FLOW_STATES,
};

enum flow_loss { LOSS_ALLOC, LOSS_FREE, LOSS_OTHER, N_LOSSES };

/* Pages that go with a flow, and are given back with it. */
struct flow_pages {
	void *at;
	size_t n_bytes;
};

#define FLOW_PAGES 3

struct flow {
	/*
	 * enum flow_state, or while its thread is in a hook the holder of torsh_flow_holder;
	 * written by its thread only, but for the late flow.
	 */
	_Atomic uint64_t state;
	uint64_t n_before; /* events that the ring had when the one under way was begun */
	uint32_t slot;
	struct ring ring;
	struct stack *stack;
	struct python *python; /* NULL until it was needed; torsh_flow_pages, as the next two */
	struct operators *operators; /* the same, collectors/torch/operator_events.c's */
	struct open_calls *open; /* the same, agent/producer/schedule.c's */
	struct flow_pages pages[FLOW_PAGES];
	struct flow *interrupt; /* NULL until a handler needed it */
	uint64_t user; /* of the late flow: the mark of the thread whose it was last */
	uint8_t *large; /* the slot's large ring, since it is mapped */
	uint32_t may_not_grow; /* no large ring could be mapped */
	uint64_t lost[N_LOSSES]; /* dropped since the last LOST event */
	uint32_t has_lost;
	/* the next event is a restart: what the encoding remembers may not be what was sent */
	uint32_t is_torn;
	uint32_t end_rounds; /* calls of the key's destructor so far */
	int tid;
	struct codec codec;
};

extern _Thread_local struct flow *torsh_flow_self;
extern struct flow torsh_flow_not_created, torsh_flow_quiet, torsh_flow_mute, torsh_flow_ended;

/*
 * A hook's hold of its flow: the hook's frame, and a part of the return address that lies there. A
 * handler that interrupts a hook may jump out of it (siglongjmp, setcontext, an exception, a
 * cancellation), and the hold is never given back: by these it is known for one of a frame that is
 * gone.
 */
static inline uint64_t torsh_flow_holder(const void *frame)
{
	return (uint64_t)(uintptr_t)frame << 16 | *((const uint16_t *)frame + 4);
}

/* the counter can't be trusted: stamps are clock_gettime's */
extern int torsh_flow_clock_is_monotonic;

/* frame: of the hook that enters. */
struct flow *torsh_flow_enter_slowly(struct flow *flow, const void *frame);

/*
 * For the hook whose frame stays until torsh_flow_leave: in a function that enters for it, that one
 * is inlined too.
 */
static inline __attribute__((always_inline)) struct flow *torsh_flow_enter(void)
{
	struct flow *flow = torsh_flow_self;

	if (__builtin_expect(atomic_load_explicit(&flow->state, memory_order_relaxed) != FLOW_IDLE,
			     0))
		return torsh_flow_enter_slowly(flow, __builtin_frame_address(0));
	flow->n_before = flow->ring.n_events;
	atomic_store_explicit(&flow->state, torsh_flow_holder(__builtin_frame_address(0)),
			      memory_order_relaxed);
	/* A signal handler that comes from here on finds the flow busy. */
	atomic_signal_fence(memory_order_seq_cst);
	return flow;
}

static inline void torsh_flow_leave(struct flow *flow)
{
	/*
	 * For the late flow this is the release of a lock, paired with the acquire in enter_slowly.
	 */
	atomic_store_explicit(&flow->state, FLOW_IDLE, memory_order_release);
}

/* Zeroed pages that are the flow's for as long as it lives. NULL when there are none. */
void *torsh_flow_pages(struct flow *flow, size_t n_bytes);

/*
 * *at, which that returned, becomes n_bytes, more than before, with the same contents. Returns 0,
 * or -ENOMEM: it stays.
 */
int torsh_flow_grow_pages(struct flow *flow, void **at, size_t n_bytes);

/* A stamp where the counter isn't used, or was set back. */
uint64_t torsh_flow_slow_stamp(struct flow *flow);
uint64_t torsh_flow_stamp_went_back(struct flow *flow);

/* The time of an event, not before the flow's last one. */
static inline uint64_t torsh_flow_stamp(struct flow *flow)
{
	uint64_t stamp;

	if (__builtin_expect(atomic_load_explicit(&torsh_stamp_is_slow, memory_order_relaxed), 0))
		return torsh_flow_slow_stamp(flow);
	stamp = torsh_stamp_ticks(flow) >> CHANNEL_STAMP_SHIFT;
	if (__builtin_expect(stamp < flow->codec.stamp, 0))
		return torsh_flow_stamp_went_back(flow);
	return stamp;
}

#define FLOW_ROOM (CODEC_EVENT_MAX + 16)

int torsh_flow_make_room(struct flow *flow);
void torsh_flow_lose(struct flow *flow, enum flow_loss what);

/*
 * Is there room for one event? May wait for the writer, for a bounded time; 0: the event is to be
 * lost.
 */
static inline int torsh_flow_has_room(struct flow *flow)
{
	if (__builtin_expect(flow->ring.head + FLOW_ROOM <= flow->ring.room_until, 1))
		return 1;
	return torsh_flow_make_room(flow);
}

void torsh_flow_add_python(struct flow *flow, struct stack_delta *delta);

/* The difference of the hook's stack to that of the flow's previous capture. */
static inline void torsh_flow_capture(struct flow *flow, const void *frame,
				      struct stack_delta *delta)
{
	torsh_stack_capture(flow->stack, frame, delta);
	/* Pairs with the release in torsh_cpython_consider. */
	if (atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		torsh_flow_add_python(flow, delta);
}

/*
 * Send the stack of the hook with this frame as events of its own, so that the next event's stack
 * is the same. Returns 0, or -1 when there was no room: the stack starts anew with the next
 * capture.
 */
int torsh_flow_put_stack(struct flow *flow, const struct stack_delta *delta);

static inline void torsh_flow_free(struct flow *flow, uint64_t address, uint32_t is_realloc)
{
	uint8_t *begin, *end;

	if (!torsh_flow_has_room(flow)) {
		torsh_flow_lose(flow, LOSS_FREE);
		return;
	}
	begin = torsh_ring_begin(&flow->ring);
	end = torsh_codec_put_free(&flow->codec, begin, torsh_flow_stamp(flow), address,
				   is_realloc);
	torsh_ring_commit(&flow->ring, begin, end);
}

/*
 * The stack by events of its own, because it changed too much; returns the alloc's stamp anew, 0
 * when it is lost.
 */
static inline uint64_t torsh_flow_stack_first(struct flow *flow, struct stack_delta *delta)
{
	torsh_ring_cancel(&flow->ring);
	if (torsh_flow_put_stack(flow, delta)) {
		torsh_flow_lose(flow, LOSS_ALLOC);
		return 0;
	}
	delta->pop = delta->n_push = 0;
	torsh_ring_begin(&flow->ring);
	return torsh_flow_stamp(flow);
}

/* frame: the hook's __builtin_frame_address(0), or NULL when stacks are not recorded. */
static inline void torsh_flow_alloc(struct flow *flow, const struct event_alloc *alloc,
				    const void *frame)
{
	struct stack_delta delta = {0};
	uint8_t *begin, *end;
	uint64_t stamp;

	if (!torsh_flow_has_room(flow)) {
		torsh_flow_lose(flow, LOSS_ALLOC);
		return;
	}
	/* Stamped before the stack is taken: reading the counter goes on while that is done. */
	begin = torsh_ring_begin(&flow->ring);
	stamp = torsh_flow_stamp(flow);
	if (frame) {
		torsh_flow_capture(flow, frame, &delta);
		if (__builtin_expect(delta.pop > 255 || delta.n_push > CODEC_INLINE_IDS, 0)) {
			stamp = torsh_flow_stack_first(flow, &delta);
			if (!stamp)
				return;
			begin = torsh_ring_place(&flow->ring);
		}
	}
	end = torsh_codec_put_alloc(&flow->codec, begin, stamp, alloc, frame != 0, delta.pop,
				    delta.n_push, delta.push);
	torsh_ring_commit(&flow->ring, begin, end);
}

/*
 * A cold event, as of now; with frame, the stack is sent before it. For an event whose stamp must
 * be older than the call that it reports, take the stamp between torsh_flow_hold and
 * torsh_flow_event_at: the writer waits meanwhile.
 */
void torsh_flow_event(struct flow *flow, const struct event *event, const void *frame);

/*
 * The same for a caller that has not entered: with the calling thread's flow, and not at all where
 * it has none.
 */
void torsh_flow_send(const struct event *event, const void *frame);

/*
 * Make the ring busy and take a stamp. Returns 0 when there is no room: then the event is lost
 * already. Afterwards exactly one of torsh_flow_event_at and torsh_flow_release.
 */
int torsh_flow_hold(struct flow *flow, const void *frame, uint64_t *stamp);
void torsh_flow_event_at(struct flow *flow, const struct event *event, uint64_t stamp);
void torsh_flow_release(struct flow *flow);

/*
 * Is the hook gone that holds a flow in this state? A hook of this frame finds it so, on the same
 * thread.
 */
bool torsh_flow_is_abandoned(uint64_t state, const void *frame);

/*
 * Make a flow whose hook is gone usable; the caller holds it now. An event that was under way is
 * counted as lost, and what is sent from now on is encoded from nothing.
 */
void torsh_flow_mend(struct flow *flow);

/*
 * Be on the large ring, if the slot's large_from says so: a handler may have jumped out before that
 * was done.
 */
void torsh_flow_settle_ring(struct flow *flow);

/*
 * Wait until is_there(context) or the writer is given up on, as agent/producer/backpressure.h says.
 * await: sleeps until that may have changed, one step at most. Adds the time to *waited_ns. 0:
 * given up.
 */
struct flow_await {
	int (*is_there)(void *context);
	void (*await)(void *context);
	void *context;
};

int torsh_flow_await(const struct flow_await *await, uint64_t *waited_ns);

#endif
