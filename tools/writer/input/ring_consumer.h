/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The consumer's end of one ring, for one use of its slot: bytes are copied out, so that the ring
 * has room again, and decoded from the copy; the thread's stack is kept up to date on the way.
 * Owned by the drain thread.
 *
 * The ring is another process's memory: whatever it holds, nothing here fails but the ring
 * consumer, which is then broken: its bytes are still taken, so that no producer waits, and
 * dropped.
 */
#ifndef TORSH_WRITER_INPUT_RING_CONSUMER_H
#define TORSH_WRITER_INPUT_RING_CONSUMER_H

#include <stdbool.h>

#include "agent/wire/codec.h"
#include "agent/wire/ring.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/tables/code_table.h"
#include "tools/writer/fold/tables/stack_table.h"

#define RING_CONSUMER_EVENTS 256u /* decoded ahead */

/* A decoded event; the cold ones have their fields in consumer.cold, at the same index. */
struct consumed_event {
	uint64_t stamp;
	uint64_t address;
	uint64_t size, usable;
	uint32_t stack_or_site; /* ALLOC: heap site; others: stack */
	uint16_t id; /* enum event_id */
	uint16_t entry; /* ALLOC: enum alloc_entry */
};

/*
 * The result of one of the codec's recent changes of the stack. Written anew whenever the codec's
 * change is, so that it holds for any stack that begins like this one.
 */
struct consumer_change {
	uint32_t base; /* the stack that frames were added to */
	uint32_t n; /* frames added; 0: nothing is known */
	uint32_t site; /* of the resulting stack; 0: not looked up yet */
	struct hashed_stack path[CODEC_CHANGE_IDS];
};

/* What decoding a ring consumer writes to: its process's tables. */
struct consumer_tables {
	struct code_table *code;
	struct stack_table *stacks;
	struct heap *heap;
};

struct ring_consumer {
	struct ring ring; /* head: consumed so far */
	struct codec codec;
	const char *broken; /* NULL, or why nothing more is decoded */

	uint8_t *bytes; /* copied, not decoded: [begin, end) */
	uint32_t begin, end, capacity;

	struct consumed_event events[RING_CONSUMER_EVENTS];
	struct event *cold; /* RING_CONSUMER_EVENTS, from the first cold event on */
	uint32_t first, n_events; /* decoded, not folded: [first, n_events) */

	uint32_t depth;
	/* [i]: the outermost i frames; [depth] is the thread's stack */
	struct hashed_stack path[STACK_DEPTH_MAX + 1];
	struct consumer_change changes[CODEC_RECENT];
	struct consumer_change *change; /* by which the thread's stack came to be, or NULL */

	uint64_t bound; /* order.h: as of the last copy */
	uint64_t busy_head; /* its head while it is busy without progress */
	uint64_t busy_since_ns;

	uint64_t n_decoded;
	uint64_t n_bytes; /* taken from the ring */
	struct heap_producer heap;
	/*
	 * what lies behind so many bytes is in the large ring; CHANNEL_NOT_LARGE: nothing is known
	 * to
	 */
	uint64_t ring_end;
	/* bytes that the large ring has, while this is the small one; 0: there is none */
	uint64_t n_large;
	bool is_large; /* the ring is the large one */
	bool is_closed; /* its slot was, before the ring was last copied */
	uint32_t index; /* in its target's ring consumers */
	uint32_t thread; /* row of the process's threads */
	uint32_t slot, use;
};

/*
 * Create a ring consumer for any number of uses, one after the other. torsh_ring_consumer_destroy
 * frees it.
 */
struct ring_consumer *torsh_ring_consumer_create(void);

/* Free it. */
void torsh_ring_consumer_destroy(struct ring_consumer *consumer);

/* Begin a use: a ring of ring_bytes at `bytes`, whose first unseen byte is number `consumed`. */
void torsh_ring_consumer_start(struct ring_consumer *consumer, struct thread_slot *slot,
			       const uint8_t *bytes, uint32_t ring_bytes, uint64_t consumed,
			       uint64_t base_stamp);

/*
 * Is all of the small ring consumed, and does its producer go on in the large one? Then the caller
 * maps that and calls torsh_ring_consumer_enlarge.
 */
bool torsh_ring_consumer_is_at_end(const struct ring_consumer *consumer);

/* Go on in the large ring: ring_bytes at `bytes`. */
void torsh_ring_consumer_enlarge(struct ring_consumer *consumer, const uint8_t *bytes,
				 uint32_t ring_bytes);

/* Decode nothing more, for that reason, which is not copied; events that were decoded stay. */
void torsh_ring_consumer_break(struct ring_consumer *consumer, const char *why);

/* Is it small enough to be kept for another use? */
bool torsh_ring_consumer_is_kept(const struct ring_consumer *consumer);

/*
 * Copy what the ring has and make room there; wakes a producer that waits for it. limit is the idle
 * ring's bound (taken before), now_ns any clock, for the timeout of a busy one. Returns the bytes
 * copied.
 */
uint64_t torsh_ring_consumer_copy(struct ring_consumer *consumer, uint64_t limit, uint64_t now_ns);

/* Has the ring nothing more that was committed, and is nothing left here? */
bool torsh_ring_consumer_is_dry(const struct ring_consumer *consumer);

/*
 * The producer is gone and all was copied, decoded as far as possible, and folded as far as order
 * allowed: nothing will come any more, not even the rest of an event.
 */
void torsh_ring_consumer_end(struct ring_consumer *consumer);

/* Refill the decoded events; only when all were folded. Returns how many there are. */
uint32_t torsh_ring_consumer_decode(struct ring_consumer *consumer, struct consumer_tables *tables);

/*
 * No event to come has a stamp below this; while there are decoded events the stamp of the first is
 * the bound.
 */
static inline uint64_t torsh_ring_consumer_bound(const struct ring_consumer *consumer)
{
	return consumer->bound > consumer->codec.stamp ? consumer->bound : consumer->codec.stamp;
}

#endif
