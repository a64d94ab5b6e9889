/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where events leave a thread. A producer is one ordered stream of events on one ring, with the
 * state of its encoder. A thread has one, and a second one for signal handlers that interrupt its
 * hooks. First file of this folder: lifecycle.h creates producers, channel.h maps what they write
 * to, stamp.h orders their events. A hook records an event like this:
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
#include <stddef.h>
#include <stdint.h>

#include "agent/producer/stamp.h"
#include "agent/python/python.h"
#include "agent/stack/stack.h"
#include "agent/wire/codec.h"
#include "agent/wire/ring.h"
#include "shim/cpython/cpython.h"
#include "shim/sys.h"

enum producer_state {
	PRODUCER_FORKED, /* fork zeroed these pages: this is a child process */
	PRODUCER_IDLE,
	PRODUCER_BUSY, /* the shared producer: a thread is in a hook */
	PRODUCER_NOT_CREATED, /* stand-in for a thread without a producer */
	PRODUCER_QUIET, /* stand-in for a thread while the agent makes calls of its own */
	/*
	 * stand-in for a thread that may not make the system calls of an event: its events are only
	 * counted
	 */
	PRODUCER_MUTE,
	PRODUCER_ENDED, /* stand-in for a thread that has closed its producer */
	N_PRODUCER_STATES,
};

enum producer_loss { LOSS_ALLOC, LOSS_FREE, LOSS_OTHER, N_LOSSES };

/* Pages owned by a producer, unmapped with it. */
struct producer_pages {
	void *at;
	size_t n_bytes;
};

#define PRODUCER_PAGES 4

/* Of a producer where blocks are sampled (collectors/heap/sampler.h). */
struct heap_sampler {
	int64_t bytes_left; /* the block with the last of them is the next sample */
	struct heap_counts *counts; /* the slot's; NULL: not started */
	uint64_t random;
	bool is_resizing; /* a sampled block, between its REALLOC_BEGIN and what completes it */
};

/* In the order of use: between two events a program may evict it from the processor's caches. */
struct producer {
	/*
	 * enum producer_state or, while its thread is in a hook, the holder as
	 * torsh_producer_holder returns it; written only by its thread, except in the shared
	 * producer
	 */
	_Atomic uint64_t state;
	uint64_t n_before; /* events on the ring when the one in progress was begun */
	struct ring ring;
	struct stack *stack;
	struct python *python; /* NULL until needed; in torsh_producer_pages, as are the next two */
	struct operators *operators; /* owned by collectors/torch/operator_events.c */
	struct open_calls *open; /* owned by agent/producer/schedule.c */
	uint32_t slot;
	int tid;
	struct producer *interrupt; /* NULL until a signal handler needs it */
	struct codec codec; /* begins with what each event changes */
	struct producer_pages pages[PRODUCER_PAGES];
	uint64_t user; /* of the shared producer: the mark of the thread that used it last */
	struct thread_counters *counters; /* owned by collectors/perf, in torsh_producer_pages */
	uint8_t *large; /* the slot's large ring, once mapped */
	bool may_not_grow; /* no large ring could be mapped */
	uint64_t lost[N_LOSSES]; /* dropped since the last LOST event */
	bool has_lost;
	/* the next event is a restart: the encoder's state may not match what was sent */
	bool is_torn;
	uint32_t end_rounds; /* calls of the key's destructor so far */
	uint32_t n_opened; /* threads that had it so far, this one too */
	uint32_t n_unsent; /* calls in open whose begin was not sent */
	struct heap_sampler sampler;
	uint32_t generation; /* torsh_process->generation when it was opened */
	struct producer *next; /* in torsh_process->producers */
};

_Static_assert(offsetof(struct producer, stack) == 64 &&
		       offsetof(struct producer, codec.addresses) == 128,
	       "what each event needs is in two cache lines");
_Static_assert(offsetof(struct producer, codec.changes) % 32 == 0,
	       "a recent change is in one cache line");

extern _Thread_local struct producer *torsh_producer_self;
extern struct producer torsh_producer_not_created, torsh_producer_quiet, torsh_producer_mute,
	torsh_producer_ended;

/*
 * Identifies the hook that holds a producer: its frame's address, and 16 bits of the return address
 * stored there. A signal handler may leave a hook for good (siglongjmp, setcontext, an exception, a
 * cancellation) so that the producer stays held; torsh_producer_is_abandoned detects that from
 * these bits.
 */
static inline uint64_t torsh_producer_holder(const void *frame)
{
	return (uint64_t)(uintptr_t)frame << 16 | *((const uint16_t *)frame + 4);
}

/* the time stamp counter is not reliable: stamps come from clock_gettime */
extern bool torsh_producer_clock_is_monotonic;

/*
 * The slow path of torsh_producer_enter, for a producer that is not idle. frame is the hook's.
 * Returns NULL if nothing is recorded; keeps errno.
 */
struct producer *torsh_producer_enter_slowly(struct producer *producer, const void *frame);

/*
 * Enter the calling thread's producer. The hook's frame must stay until torsh_producer_leave: a
 * helper that enters for a hook is inlined into it. Never blocks on the ring. Returns NULL if
 * nothing is recorded.
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
	/* A signal handler from now on finds the producer busy. */
	atomic_signal_fence(memory_order_seq_cst);
	return producer;
}

static inline void torsh_producer_leave(struct producer *producer)
{
	/*
	 * For the shared producer this releases a lock; pairs with the acquire in lifecycle.c's
	 * enter.
	 */
	atomic_store_explicit(&producer->state, PRODUCER_IDLE, memory_order_release);
}

/*
 * Map n_bytes of zeroed pages that live as long as the producer. Returns NULL without memory, or
 * when PRODUCER_PAGES are in use.
 */
void *torsh_producer_pages(struct producer *producer, size_t n_bytes);

/*
 * Move *at, which torsh_producer_pages returned, to a larger mapping of n_bytes, keeping the
 * contents. Returns 0, or -ENOMEM and leaves *at.
 */
int torsh_producer_grow_pages(struct producer *producer, void **at, size_t n_bytes);

/* Slow path of torsh_producer_stamp, for CLOCK_MONOTONIC and for a counter with an offset. */
uint64_t torsh_producer_slow_stamp(struct producer *producer);

/*
 * Slow path of torsh_producer_stamp, for a counter below the producer's last stamp: reads it once
 * more, else counts clock_went_back and returns the last stamp.
 */
uint64_t torsh_producer_stamp_went_back(struct producer *producer);

/* The time stamp of an event: never below the producer's last one. */
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

/* The slow path of torsh_producer_has_room: waits for the writer. Returns false on timeout. */
bool torsh_producer_make_room(struct producer *producer);

/* Count a dropped event; a LOST event follows before the next one that finds room. */
void torsh_producer_drop(struct producer *producer, enum producer_loss what);

/*
 * Whether the ring has room for one event. May wait for the writer, up to the backpressure timeout;
 * on false, drop the event.
 */
static inline bool torsh_producer_has_room(struct producer *producer)
{
	if (__builtin_expect(producer->ring.head + PRODUCER_ROOM <= producer->ring.room_until, 1))
		return true;
	return torsh_producer_make_room(producer);
}

/* Merge Python frames into the delta of a capture; the caller has entered the producer. */
void torsh_producer_add_python(struct producer *producer, struct stack_delta *delta);

/*
 * Capture the hook's stack, Python frames included, as a delta to the producer's previous capture.
 */
static inline void torsh_producer_capture(struct producer *producer, const void *frame,
					  struct stack_delta *delta)
{
	torsh_stack_capture(producer->stack, frame, delta);
	/* Pairs with the release in torsh_cpython_consider. */
	if (atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		torsh_producer_add_python(producer, delta);
}

/*
 * Send delta as STACK events, so that the next event's stack is unchanged. Returns 0, or -1 without
 * room: the next capture then sends every frame.
 */
int torsh_producer_put_stack(struct producer *producer, const struct stack_delta *delta);

static inline void torsh_producer_free(struct producer *producer, uint64_t address, bool is_realloc)
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
 * Send a large delta as STACK events ahead of the alloc. Returns the alloc's new stamp, or 0 if the
 * alloc was dropped.
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

/*
 * Record an allocation. frame is the hook's __builtin_frame_address(0), or NULL if stacks are not
 * recorded.
 */
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
	/* Stamped before the stack is captured: the counter's latency overlaps with the capture. */
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
 * Record a cold event stamped now, preceded by the stack if frame is given. An event with a stamp
 * that must precede the reported call takes it by torsh_producer_hold and is sent by
 * torsh_producer_event_at; until then the writer folds nothing later.
 */
void torsh_producer_event(struct producer *producer, const struct event *event, const void *frame);

/*
 * Record a cold event of a signal handler, with the stack of the code that it interrupted; the
 * event is stamped now.
 */
void torsh_producer_event_interrupted(struct producer *producer, const struct event *event,
				      const struct cpu_caller *at);

/*
 * torsh_producer_event for a caller that has not entered; does nothing for a thread without a
 * producer.
 */
void torsh_producer_send(const struct event *event, const void *frame);

/*
 * Mark the ring busy and take a stamp. Returns false if there is no room and the event was dropped.
 * After true, call exactly one of torsh_producer_event_at and torsh_producer_release.
 */
bool torsh_producer_hold(struct producer *producer, const void *frame, uint64_t *stamp);

/* Send an event with the stamp that torsh_producer_hold returned. */
void torsh_producer_event_at(struct producer *producer, const struct event *event, uint64_t stamp);

/*
 * The same in three parts for events without a stack, for a hook whose own time counts. NULL: there
 * is no room, and the event was dropped; otherwise the place of its payload, to be written before
 * torsh_producer_finish, which stamps it.
 */
static inline uint8_t *torsh_producer_start(struct producer *producer)
{
	if (!torsh_producer_has_room(producer)) {
		torsh_producer_drop(producer, LOSS_OTHER);
		return NULL;
	}
	return torsh_ring_begin(&producer->ring) + CODEC_COLD_HEAD;
}

/* Stamp and send the event of this kind, with n_bytes of payload. */
static inline void torsh_producer_finish(struct producer *producer, uint32_t id, uint32_t n_bytes)
{
	uint8_t *begin = torsh_ring_place(&producer->ring), *end;

	end = torsh_codec_end_cold(&producer->codec, begin, torsh_producer_stamp(producer), id,
				   n_bytes);
	torsh_ring_commit(&producer->ring, begin, end);
}

/* Release the ring without an event. */
void torsh_producer_release(struct producer *producer);

/*
 * Whether the hook that holds a producer in this state is abandoned. Called on the same thread by
 * the hook with this frame.
 */
bool torsh_producer_is_abandoned(uint64_t state, const void *frame);

/*
 * Recover a producer with an abandoned hook; the caller holds it afterwards. An unfinished event is
 * counted as lost, and the encoding restarts from its initial state.
 */
void torsh_producer_mend(struct producer *producer);

/*
 * Switch to the large ring if large_from is set: a signal handler may have abandoned the hook
 * before the switch.
 */
void torsh_producer_settle_ring(struct producer *producer);

/* What torsh_producer_await waits for. */
struct producer_await {
	bool (*is_there)(void *context);
	void (*await)(void *context);
	void *context;
};

/*
 * Wait until is_there(context), or until the backpressure timeout (agent/producer/backpressure.h).
 * await sleeps for at most one step. Adds the time to *waited_ns; returns false on timeout.
 */
bool torsh_producer_await(const struct producer_await *await, uint64_t *waited_ns);

#endif
