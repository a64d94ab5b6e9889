/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A producer: one ordered stream of events on one ring, with what its encoding remembers. A thread
 * has one, and a second one for signal handlers that interrupt its hooks. A hook records so:
 *
 *	struct producer *producer = torsh_producer_enter();
 *
 *	if (!producer)
 *		return;			nothing is recorded here: off, re-entered, or no room
 *	torsh_producer_alloc(...)
 *	torsh_producer_leave(producer);
 *
 * Entering never blocks; recording may wait for room on the ring, for a bounded time.
 */
#ifndef TORSH_AGENT_PRODUCER_PRODUCER_H
#define TORSH_AGENT_PRODUCER_PRODUCER_H

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

enum producer_state {
	PRODUCER_FORKED, /* these pages were zeroed by fork: the process is a new one */
	PRODUCER_IDLE,
	PRODUCER_BUSY, /* the shared producer: some thread is in a hook */
	PRODUCER_NOT_CREATED, /* stands for a thread that has none yet */
	PRODUCER_QUIET, /* stands for a thread whose calls are the agent's own */
	/* stands for a thread that has forbidden itself what an event takes: they are counted */
	PRODUCER_MUTE,
	PRODUCER_ENDED, /* stands for a thread that has given its producer back */
	N_PRODUCER_STATES,
};

enum producer_loss { LOSS_ALLOC, LOSS_FREE, LOSS_OTHER, N_LOSSES };

/* Pages that go with a producer, and are given back with it. */
struct producer_pages {
	void *at;
	size_t n_bytes;
};

#define PRODUCER_PAGES 3

struct producer {
	/*
	 * enum producer_state, or while its thread is in a hook the holder of
	 * torsh_producer_holder; written by its thread only, but for the shared producer.
	 */
	_Atomic uint64_t state;
	uint64_t n_before; /* events that the ring had when the one under way was begun */
	uint32_t slot;
	struct ring ring;
	struct stack *stack;
	struct python *python; /* NULL until it was needed; torsh_producer_pages, as the next two */
	struct operators *operators; /* the same, collectors/torch/operator_events.c's */
	struct open_calls *open; /* the same, agent/producer/schedule.c's */
	struct producer_pages pages[PRODUCER_PAGES];
	struct producer *interrupt; /* NULL until a handler needed it */
	uint64_t user; /* of the shared producer: the mark of the thread whose it was last */
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

extern _Thread_local struct producer *torsh_producer_self;
extern struct producer torsh_producer_not_created, torsh_producer_quiet, torsh_producer_mute,
	torsh_producer_ended;

/*
 * A hook's hold of its producer: the hook's frame, and a part of the return address that lies
 * there. A handler that interrupts a hook may jump out of it (siglongjmp, setcontext, an exception,
 * a cancellation), and the hold is never given back: by these it is known for one of a frame that
 * is gone.
 */
static inline uint64_t torsh_producer_holder(const void *frame)
{
	return (uint64_t)(uintptr_t)frame << 16 | *((const uint16_t *)frame + 4);
}

/* the counter can't be trusted: stamps are clock_gettime's */
extern bool torsh_producer_clock_is_monotonic;

/* frame: of the hook that enters. */
struct producer *torsh_producer_enter_slowly(struct producer *producer, const void *frame);

/*
 * For the hook whose frame stays until torsh_producer_leave: in a function that enters for it, that
 * one is inlined too.
 */
static inline __attribute__((always_inline)) struct producer *torsh_producer_enter(void)
{
	struct producer *producer = torsh_producer_self;

	if (__builtin_expect(atomic_load_explicit(&producer->state, memory_order_relaxed) !=
				     PRODUCER_IDLE,
			     0))
		return torsh_producer_enter_slowly(producer, __builtin_frame_address(0));
	producer->n_before = producer->ring.n_events;
	atomic_store_explicit(&producer->state, torsh_producer_holder(__builtin_frame_address(0)),
			      memory_order_relaxed);
	/* A signal handler that comes from here on finds the producer busy. */
	atomic_signal_fence(memory_order_seq_cst);
	return producer;
}

static inline void torsh_producer_leave(struct producer *producer)
{
	/*
	 * For the shared producer this is the release of a lock, paired with the acquire in
	 * enter_slowly.
	 */
	atomic_store_explicit(&producer->state, PRODUCER_IDLE, memory_order_release);
}

/* Zeroed pages that are the producer's for as long as it lives. NULL when there are none. */
void *torsh_producer_pages(struct producer *producer, size_t n_bytes);

/*
 * *at, which that returned, becomes n_bytes, more than before, with the same contents. Returns 0,
 * or -ENOMEM: it stays.
 */
int torsh_producer_grow_pages(struct producer *producer, void **at, size_t n_bytes);

/* A stamp where the counter isn't used, or was set back. */
uint64_t torsh_producer_slow_stamp(struct producer *producer);
uint64_t torsh_producer_stamp_went_back(struct producer *producer);

/* The time of an event, not before the producer's last one. */
static inline uint64_t torsh_producer_stamp(struct producer *producer)
{
	uint64_t stamp;

	if (__builtin_expect(atomic_load_explicit(&torsh_stamp_is_slow, memory_order_relaxed), 0))
		return torsh_producer_slow_stamp(producer);
	stamp = torsh_stamp_ticks(producer) >> CHANNEL_STAMP_SHIFT;
	if (__builtin_expect(stamp < producer->codec.stamp, 0))
		return torsh_producer_stamp_went_back(producer);
	return stamp;
}

#define PRODUCER_ROOM (CODEC_EVENT_MAX + 16)

bool torsh_producer_make_room(struct producer *producer);
void torsh_producer_drop(struct producer *producer, enum producer_loss what);

/*
 * Is there room for one event? May wait for the writer, for a bounded time; 0: the event is to be
 * lost.
 */
static inline bool torsh_producer_has_room(struct producer *producer)
{
	if (__builtin_expect(producer->ring.head + PRODUCER_ROOM <= producer->ring.room_until, 1))
		return true;
	return torsh_producer_make_room(producer);
}

void torsh_producer_add_python(struct producer *producer, struct stack_delta *delta);

/* The difference of the hook's stack to that of the producer's previous capture. */
static inline void torsh_producer_capture(struct producer *producer, const void *frame,
					  struct stack_delta *delta)
{
	torsh_stack_capture(producer->stack, frame, delta);
	/* Pairs with the release in torsh_cpython_consider. */
	if (atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		torsh_producer_add_python(producer, delta);
}

/*
 * Send the stack of the hook with this frame as events of its own, so that the next event's stack
 * is the same. Returns 0, or -1 when there was no room: the stack starts anew with the next
 * capture.
 */
int torsh_producer_put_stack(struct producer *producer, const struct stack_delta *delta);

static inline void torsh_producer_free(struct producer *producer, uint64_t address,
				       uint32_t is_realloc)
{
	uint8_t *begin, *end;

	if (!torsh_producer_has_room(producer)) {
		torsh_producer_drop(producer, LOSS_FREE);
		return;
	}
	begin = torsh_ring_begin(&producer->ring);
	end = torsh_codec_put_free(&producer->codec, begin, torsh_producer_stamp(producer), address,
				   is_realloc);
	torsh_ring_commit(&producer->ring, begin, end);
}

/*
 * The stack by events of its own, because it changed too much; returns the alloc's stamp anew, 0
 * when it is lost.
 */
static inline uint64_t torsh_producer_stack_first(struct producer *producer,
						  struct stack_delta *delta)
{
	torsh_ring_cancel(&producer->ring);
	if (torsh_producer_put_stack(producer, delta)) {
		torsh_producer_drop(producer, LOSS_ALLOC);
		return 0;
	}
	delta->pop = delta->n_push = 0;
	torsh_ring_begin(&producer->ring);
	return torsh_producer_stamp(producer);
}

/* frame: the hook's __builtin_frame_address(0), or NULL when stacks are not recorded. */
static inline void torsh_producer_alloc(struct producer *producer, const struct event_alloc *alloc,
					const void *frame)
{
	struct stack_delta delta = {0};
	uint8_t *begin, *end;
	uint64_t stamp;

	if (!torsh_producer_has_room(producer)) {
		torsh_producer_drop(producer, LOSS_ALLOC);
		return;
	}
	/* Stamped before the stack is taken: reading the counter goes on while that is done. */
	begin = torsh_ring_begin(&producer->ring);
	stamp = torsh_producer_stamp(producer);
	if (frame) {
		torsh_producer_capture(producer, frame, &delta);
		if (__builtin_expect(delta.pop > 255 || delta.n_push > CODEC_INLINE_IDS, 0)) {
			stamp = torsh_producer_stack_first(producer, &delta);
			if (!stamp)
				return;
			begin = torsh_ring_place(&producer->ring);
		}
	}
	end = torsh_codec_put_alloc(&producer->codec, begin, stamp, alloc, frame != 0, delta.pop,
				    delta.n_push, delta.push);
	torsh_ring_commit(&producer->ring, begin, end);
}

/*
 * A cold event, as of now; with frame, the stack is sent before it. For an event whose stamp must
 * be older than the call that it reports, take the stamp between torsh_producer_hold and
 * torsh_producer_event_at: the writer waits meanwhile.
 */
void torsh_producer_event(struct producer *producer, const struct event *event, const void *frame);

/*
 * The same for a caller that has not entered: with the calling thread's producer, and not at all
 * where it has none.
 */
void torsh_producer_send(const struct event *event, const void *frame);

/*
 * Make the ring busy and take a stamp. Returns 0 when there is no room: then the event is lost
 * already. Afterwards exactly one of torsh_producer_event_at and torsh_producer_release.
 */
bool torsh_producer_hold(struct producer *producer, const void *frame, uint64_t *stamp);
void torsh_producer_event_at(struct producer *producer, const struct event *event, uint64_t stamp);
void torsh_producer_release(struct producer *producer);

/*
 * Is the hook gone that holds a producer in this state? A hook of this frame finds it so, on the
 * same thread.
 */
bool torsh_producer_is_abandoned(uint64_t state, const void *frame);

/*
 * Make a producer whose hook is gone usable; the caller holds it now. An event that was under way
 * is counted as lost, and what is sent from now on is encoded from nothing.
 */
void torsh_producer_mend(struct producer *producer);

/*
 * Be on the large ring, if the slot's large_from says so: a handler may have jumped out before that
 * was done.
 */
void torsh_producer_settle_ring(struct producer *producer);

/*
 * Wait until is_there(context) or the writer is given up on, as agent/producer/backpressure.h says.
 * await: sleeps until that may have changed, one step at most. Adds the time to *waited_ns. 0:
 * given up.
 */
struct producer_await {
	bool (*is_there)(void *context);
	void (*await)(void *context);
	void *context;
};

bool torsh_producer_await(const struct producer_await *await, uint64_t *waited_ns);

#endif
