/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The consumer's end of one ring, for one use of its slot: bytes are copied out, which frees the
 * ring, and decoded from the copy; the thread's stack is updated on the way. Owned by the drain
 * thread.
 *
 * The ring is another process's memory: invalid contents only break this ring consumer. Its bytes
 * are then still taken, so that no producer waits, and dropped.
 */
#ifndef TORSH_WRITER_INPUT_RING_CONSUMER_H
#define TORSH_WRITER_INPUT_RING_CONSUMER_H

#include <stdbool.h>

#include "agent/wire/codec.h"
#include "agent/wire/ring.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/program/process_code.h"
#include "tools/writer/fold/program/stack_table.h"
#include "tools/writer/fold/tasks/tasks.h"

#define RING_CONSUMER_EVENTS 256u /* decoded ahead */

/* A decoded event; cold events have their fields in consumer.cold at the same index. */
struct consumed_event {
	uint64_t stamp;
	uint64_t address;
	uint64_t size, usable;
	uint32_t stack_or_site; /* ALLOC: heap site; cold events: stack; others: not set */
	uint16_t id; /* enum event_id */
	uint16_t entry; /* ALLOC: enum alloc_entry */
};

/*
 * One of the codec's recent changes of the stack: the hashes of the paths that result, and the
 * stacks. Both are replaced whenever the codec's change is, so they are valid for any stack with
 * the same base.
 */
struct hashed_change {
	uint32_t base; /* hash of the path that frames were added to */
	uint32_t n; /* frames added; 0: unknown */
	uint32_t numbers[CODEC_CHANGE_IDS];
	uint32_t hashes[CODEC_CHANGE_IDS];
};

struct consumer_change {
	uint32_t base; /* the stack that frames were added to */
	uint32_t n; /* frames added; 0: unknown */
	uint32_t site; /* of the resulting stack; 0: not looked up yet */
	uint32_t path[CODEC_CHANGE_IDS];
};

/* Where a ring consumer decodes to: its process's tables. */
struct consumer_tables {
	struct process_code *code;
	struct stack_table *stacks;
	struct heap *heap;
};

struct ring_consumer {
	struct ring ring; /* head: consumed so far */
	struct codec codec;
	const char *broken; /* NULL, or the reason why decoding stopped */

	uint8_t *bytes; /* copied, not decoded: [begin, end) */
	uint32_t begin, end, capacity;

	struct consumed_event events[RING_CONSUMER_EVENTS];
	struct event *cold; /* RING_CONSUMER_EVENTS, from the first cold event on */
	uint32_t first, n_events; /* decoded, not folded: [first, n_events) */

	uint32_t depth;
	/*
	 * [i]: the outermost i frames, as a hash and as a stack; while a batch is decoded, the
	 * hashes and the depth are ahead of the stacks. A change is copied whole.
	 */
	uint32_t hashes[STACK_DEPTH_MAX + CODEC_CHANGE_IDS];
	uint32_t path[STACK_DEPTH_MAX + CODEC_CHANGE_IDS];
	uint32_t stack; /* the thread's: path[depth] */
	uint32_t site; /* of that stack; 0: not looked up yet */
	struct hashed_change hashed[CODEC_RECENT];
	struct consumer_change changes[CODEC_RECENT];

	uint64_t bound; /* order.h: as of the last copy */
	uint64_t busy_head; /* head at which the ring is busy without progress */
	uint64_t busy_since_ns;

	uint64_t n_decoded;
	uint64_t n_bytes; /* consumed from the ring */
	struct heap_producer heap;
	struct task_thread task; /* what its thread works for */
	/* bytes from this position on are in the large ring; CHANNEL_NOT_LARGE: none */
	uint64_t ring_end;
	/* size of the large ring while the small one is read; 0: there is none */
	uint64_t n_large;
	bool is_large; /* the large ring is read */
	bool is_closed; /* the slot was closed before the ring was last copied */
	uint32_t index; /* in its target's ring consumers */
	uint32_t thread; /* number in the process's threads */
	uint32_t slot, use;
};

/*
 * Create a ring consumer for any number of uses, one after the other. Free it with
 * torsh_ring_consumer_destroy.
 */
struct ring_consumer *torsh_ring_consumer_create(void);

/* Its process waits: free a large buffer that holds nothing. */
void torsh_ring_consumer_release(struct ring_consumer *consumer);

/* Free the ring consumer. */
void torsh_ring_consumer_destroy(struct ring_consumer *consumer);

/*
 * Begin a use with the ring of ring_bytes at `bytes`; its first unseen byte has the position
 * `consumed`.
 */
void torsh_ring_consumer_start(struct ring_consumer *consumer, struct thread_slot *slot,
			       const uint8_t *bytes, uint32_t ring_bytes, uint64_t consumed,
			       uint64_t base_stamp);

/*
 * Returns true if the small ring is fully consumed and its producer uses the large one. The caller
 * then maps that and calls torsh_ring_consumer_enlarge.
 */
bool torsh_ring_consumer_is_at_end(const struct ring_consumer *consumer);

/* Continue with the large ring of ring_bytes at `bytes`. */
void torsh_ring_consumer_enlarge(struct ring_consumer *consumer, const uint8_t *bytes,
				 uint32_t ring_bytes);

/* Stop decoding for that reason, which is not copied; decoded events stay valid. */
void torsh_ring_consumer_break(struct ring_consumer *consumer, const char *why);

/* Returns true if the buffer is small enough to be reused. */
bool torsh_ring_consumer_is_kept(const struct ring_consumer *consumer);

/*
 * Copy the ring's contents and free its space; wakes a producer that waits for space. limit is the
 * bound of an idle ring (taken before), now_ns any clock, for the timeout of a busy one. Returns
 * the number of copied bytes.
 */
uint64_t torsh_ring_consumer_copy(struct ring_consumer *consumer, uint64_t limit, uint64_t now_ns);

/* Returns true if the ring has no more committed bytes and everything is folded. */
bool torsh_ring_consumer_is_dry(const struct ring_consumer *consumer);

/*
 * The producer is gone, and everything was copied, decoded as far as possible, and folded as far as
 * order allowed. No event, and no rest of an event, arrives any more.
 */
void torsh_ring_consumer_end(struct ring_consumer *consumer);

/* Refill the decoded events after all of them were folded. Returns their number. */
uint32_t torsh_ring_consumer_decode(struct ring_consumer *consumer, struct consumer_tables *tables);

/*
 * No later event has a stamp below this; while there are decoded events, the bound is the stamp of
 * the first.
 */
static inline uint64_t torsh_ring_consumer_bound(const struct ring_consumer *consumer)
{
	return consumer->bound > consumer->codec.stamp ? consumer->bound : consumer->codec.stamp;
}

#endif
