/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/ring_consumer.h"

#include <stdbool.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/order.h"

#define FIRST_BYTES (4u << 10)
#define KEPT_BYTES (64u << 10)
#define MOST_BYTES (4u << 20)

struct ring_consumer *torsh_ring_consumer_create(void)
{
	struct ring_consumer *consumer = torsh_memory_alloc(sizeof(*consumer));

	consumer->stacks[0] = consumer->hashes[0] = 0;
	consumer->cold = NULL;
	consumer->capacity = FIRST_BYTES;
	consumer->bytes = torsh_memory_new(consumer->capacity, 1);
	return consumer;
}

void torsh_ring_consumer_start(struct ring_consumer *consumer, struct thread_slot *slot,
			       const uint8_t *bytes, uint32_t ring_bytes, uint64_t consumed,
			       uint64_t base_stamp)
{
	consumer->broken = NULL;
	consumer->begin = consumer->end = 0;
	consumer->first = consumer->n_events = 0;
	consumer->depth = 0;
	memset(consumer->change_hashes, 0, sizeof(consumer->change_hashes));
	memset(consumer->change_stacks, 0, sizeof(consumer->change_stacks));
	consumer->recent = CODEC_NOT_RECENT;
	consumer->bound = consumer->busy_head = consumer->busy_since_ns = 0;
	consumer->n_decoded = consumer->n_bytes = 0;
	consumer->heap = (struct heap_producer){0};
	consumer->ring_end = CHANNEL_NOT_LARGE;
	consumer->n_large = 0;
	consumer->is_large = consumer->is_closed = false;
	consumer->ring = (struct ring){
		.slot = slot,
		.bytes = (uint8_t *)(uintptr_t)bytes,
		.mask = ring_bytes - 1,
		.head = consumed,
	};
	torsh_codec_start(&consumer->codec, base_stamp);
}

void torsh_ring_consumer_enlarge(struct ring_consumer *consumer, const uint8_t *bytes,
				 uint32_t ring_bytes)
{
	consumer->ring.bytes = (uint8_t *)(uintptr_t)bytes;
	consumer->ring.mask = ring_bytes - 1;
	consumer->ring_end = CHANNEL_NOT_LARGE;
	consumer->n_large = 0;
	consumer->is_large = true;
}

bool torsh_ring_consumer_is_kept(const struct ring_consumer *consumer)
{
	return consumer->capacity <= KEPT_BYTES;
}

void torsh_ring_consumer_destroy(struct ring_consumer *consumer)
{
	free(consumer->bytes);
	free(consumer->cold);
	free(consumer);
}

/*
 * Make room for n_bytes after end, unless that requires repeated copies of old bytes or too large a
 * buffer. Returns the available room.
 */
static uint32_t make_room(struct ring_consumer *consumer, uint64_t n_bytes)
{
	uint32_t n_held = consumer->end - consumer->begin;

	if (consumer->capacity - consumer->end < n_bytes && n_held <= consumer->begin) {
		memcpy(consumer->bytes, consumer->bytes + consumer->begin, n_held);
		consumer->begin = 0;
		consumer->end = n_held;
	}
	while (consumer->capacity - consumer->end < n_bytes && consumer->capacity < MOST_BYTES) {
		uint8_t *larger = realloc(consumer->bytes, consumer->capacity * 2);

		if (!larger)
			break;
		consumer->bytes = larger;
		consumer->capacity *= 2;
	}
	return consumer->capacity - consumer->end;
}

static void copy_bytes(struct ring_consumer *consumer, uint32_t n_bytes)
{
	const struct ring *ring = &consumer->ring;
	uint32_t at = (uint32_t)(ring->head & ring->mask),
		 until_wrap = (uint32_t)ring->mask + 1 - at;
	uint32_t n_first = n_bytes < until_wrap ? n_bytes : until_wrap;

	memcpy(consumer->bytes + consumer->end, ring->bytes + at, n_first);
	memcpy(consumer->bytes + consumer->end + n_first, ring->bytes, n_bytes - n_first);
	consumer->end += n_bytes;
}

/*
 * The producer sets producer_waits, then looks at the tail; the writer does it in the opposite
 * order: at least one of them sees the other.
 */
static void wake_producer(struct thread_slot *slot)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&slot->producer_waits, memory_order_relaxed))
		return;
	atomic_store_explicit(&slot->producer_waits, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->progress, 1, memory_order_release);
	syscall(SYS_futex, &slot->progress, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void consume(struct ring_consumer *consumer, uint64_t n_bytes)
{
	torsh_ring_consume(&consumer->ring, n_bytes);
	consumer->n_bytes += n_bytes;
	wake_producer(consumer->ring.slot);
}

void torsh_ring_consumer_break(struct ring_consumer *consumer, const char *why)
{
	consumer->broken = why;
	consumer->begin = consumer->end = 0;
}

/*
 * Returns true if the producer has been in the middle of an event for longer than ORDER_TIMEOUT_NS.
 */
static bool is_stuck(struct ring_consumer *consumer, uint64_t now_ns)
{
	if (consumer->busy_head != consumer->ring.head || !consumer->busy_since_ns) {
		consumer->busy_head = consumer->ring.head;
		consumer->busy_since_ns = now_ns;
		return false;
	}
	return now_ns - consumer->busy_since_ns > ORDER_TIMEOUT_NS;
}

/*
 * Bytes that are committed and not consumed, see torsh_ring_committed; at most up to the end of the
 * small ring.
 */
static int64_t count_committed(struct ring_consumer *consumer, bool *is_busy, bool *is_beyond)
{
	const struct ring *ring = &consumer->ring;
	uint64_t n_small = ring->mask + 1;
	int64_t n = torsh_ring_committed(ring, n_small + consumer->n_large, is_busy);

	*is_beyond = false;
	if (n < 0 || consumer->is_large)
		return n <= (int64_t)n_small ? n : -1;
	/* Read after the head: bytes after it are in the large ring. */
	if (consumer->ring_end == CHANNEL_NOT_LARGE)
		consumer->ring_end =
			atomic_load_explicit(&ring->slot->large_from, memory_order_acquire);
	if (consumer->ring_end == CHANNEL_NOT_LARGE)
		return n <= (int64_t)n_small ? n : -1;
	if (consumer->ring_end < ring->head || consumer->ring_end - ring->head > n_small)
		return -1;
	*is_beyond = (uint64_t)n > consumer->ring_end - ring->head;
	return *is_beyond ? (int64_t)(consumer->ring_end - ring->head) : n;
}

bool torsh_ring_consumer_is_at_end(const struct ring_consumer *consumer)
{
	return !consumer->is_large && !consumer->broken &&
	       consumer->ring.head == consumer->ring_end;
}

/* An invalid head is followed, so that the producer never waits. */
static void follow_head(struct ring_consumer *consumer, uint64_t limit)
{
	uint64_t head = atomic_load_explicit(&consumer->ring.slot->head, memory_order_acquire) >> 1;

	if (!consumer->broken)
		torsh_ring_consumer_break(consumer, "its ring's head makes no sense");
	consumer->bound = limit;
	if (head != consumer->ring.head)
		consume(consumer, head - consumer->ring.head);
}

uint64_t torsh_ring_consumer_copy(struct ring_consumer *consumer, uint64_t limit, uint64_t now_ns)
{
	bool is_busy;
	bool is_beyond;
	int64_t n_there = count_committed(consumer, &is_busy, &is_beyond);
	uint64_t n_bytes = (uint64_t)n_there;

	if (n_there < 0 || consumer->broken) {
		follow_head(consumer, limit);
		return 0;
	}
	if (n_bytes) {
		uint32_t room = make_room(consumer, n_bytes);

		n_bytes = n_bytes < room ? n_bytes : room;
		copy_bytes(consumer, (uint32_t)n_bytes);
		consume(consumer, n_bytes);
	}
	if (n_bytes < (uint64_t)n_there || is_beyond)
		return n_bytes;
	if (!is_busy)
		consumer->busy_since_ns = 0;
	if (!is_busy || is_stuck(consumer, now_ns))
		consumer->bound = limit;
	return n_bytes;
}

bool torsh_ring_consumer_is_dry(const struct ring_consumer *consumer)
{
	bool is_busy;

	if (consumer->first < consumer->n_events || consumer->begin < consumer->end)
		return false;
	return consumer->broken || torsh_ring_committed(&consumer->ring, UINT64_MAX, &is_busy) == 0;
}

/*
 * Events are decoded in batches, in passes over all events of a batch: each pass prefetches what the
 * next one reads, so that the tables' cache misses overlap instead of following one another.
 *
 *	read_events	bytes to events and changes of the stack; prefetches blocks and addresses
 *	hash_changes	addresses to hashes of paths; prefetches the stacks' slots
 *	prefetch_rows	prefetches the stacks' rows
 *	push_changes	paths to stacks; prefetches the sites' slots
 *	prefetch_sites	prefetches the sites
 *	set_sites	stacks to sites
 */
#define BATCH_EVENTS 64u
#define BATCH_IDS 1024u
#define ROWS_IN_CACHE (1u << 15) /* stacks whose rows and sites need no prefetch */
#define STACK_IS_CURRENT 1u /* in stack_or_site until push_changes */

struct batch_change {
	uint32_t event; /* number of the first event after it */
	uint32_t n_decoded; /* number of events before it, in all */
	uint32_t depth; /* of the stack that frames are added to */
	uint32_t first, n; /* the frames, in the arrays below */
	uint32_t recent;
	bool is_repeated;
	bool is_known; /* the hashes were found among the recent changes */
};

struct batch {
	uint32_t first; /* number of its first event */
	uint32_t n_changes, n_ids;
	struct batch_change changes[BATCH_EVENTS];
	uint32_t recent[BATCH_EVENTS]; /* of each event's stack */
	uint32_t ids[BATCH_IDS], hashes[BATCH_IDS];
};

/* Returns NULL, or the reason why these ids are not a valid stack. */
static const char *read_change(struct ring_consumer *consumer, struct consumer_tables *tables,
			       struct batch *batch, const struct codec_stack *stack)
{
	uint32_t depth = stack->pop == CODEC_POP_ALL ? 0 : consumer->depth - stack->pop;

	if (depth > consumer->depth)
		return "it left more frames than its stack had";
	if (stack->n > STACK_DEPTH_MAX - depth)
		return "its stack grew too deep";
	batch->changes[batch->n_changes++] = (struct batch_change){
		.event = consumer->n_events,
		.n_decoded = (uint32_t)consumer->n_decoded,
		.depth = depth,
		.first = batch->n_ids,
		.n = stack->n,
		.recent = stack->recent,
		.is_repeated = stack->is_repeated,
	};
	for (uint32_t i = 0; i < stack->n; i++) {
		batch->ids[batch->n_ids++] = stack->ids[i];
		torsh_code_prefetch(tables->code, stack->ids[i]);
	}
	consumer->depth = depth + stack->n;
	return NULL;
}

/* Returns NULL, or the reason why the event is invalid. */
static const char *take_alloc(struct consumed_event *out, struct consumer_tables *tables,
			      const struct event *event)
{
	if (!event->alloc.address || event->alloc.size > LIVE_SIZE_MAX)
		return "it allocated a block that can't be";
	out->address = event->alloc.address;
	out->size = event->alloc.size;
	out->usable = event->alloc.usable;
	out->entry = (uint16_t)event->alloc.entry;
	torsh_live_prefetch(&tables->heap->live, out->address);
	return NULL;
}

static void take_cold(struct ring_consumer *consumer, const struct event *event)
{
	if (!consumer->cold)
		consumer->cold = torsh_memory_new(RING_CONSUMER_EVENTS, sizeof(*consumer->cold));
	consumer->cold[consumer->n_events] = *event;
}

/*
 * Returns NULL, or the reason why the event is invalid. STACK events are only a change; others wait
 * to be folded.
 */
static inline const char *take_event(struct ring_consumer *consumer, struct consumer_tables *tables,
				     struct batch *batch, const struct event *event,
				     const struct codec_stack *stack)
{
	struct consumed_event *out = &consumer->events[consumer->n_events];
	const char *why = NULL;

	if (stack->form == CODEC_STACK_GIVEN)
		why = read_change(consumer, tables, batch, stack);
	if (why || event->id == EVENT_STACK)
		return why;
	out->stamp = event->stamp;
	out->id = (uint16_t)event->id;
	out->stack_or_site = stack->form == CODEC_STACK_NONE ? 0 : STACK_IS_CURRENT;
	switch (event->id) {
	case EVENT_ALLOC:
		why = take_alloc(out, tables, event);
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		out->address = event->free.address;
		torsh_live_prefetch(&tables->heap->live, out->address);
		break;
	default:
		take_cold(consumer, event);
		break;
	}
	if (!why)
		consumer->n_events++;
	return why;
}

/* Returns true if another event of any size has room in the batch. */
static bool has_room(const struct ring_consumer *consumer, const struct batch *batch)
{
	return consumer->n_events - batch->first < BATCH_EVENTS &&
	       consumer->n_events < RING_CONSUMER_EVENTS && batch->n_changes < BATCH_EVENTS &&
	       batch->n_ids <= BATCH_IDS - CODEC_STACK_IDS;
}

/* Set *is_at_end if no whole event is left. Returns NULL, or the reason why decoding stops. */
static const char *read_events(struct ring_consumer *consumer, struct consumer_tables *tables,
			       struct batch *batch, bool *is_at_end)
{
	struct codec_stack stack;
	struct event event;

	while (has_room(consumer, batch)) {
		const char *why;
		long n = consumer->begin == consumer->end
				 ? 0
				 : torsh_codec_decode(
					   &consumer->codec, consumer->bytes + consumer->begin,
					   consumer->end - consumer->begin, &event, &stack);

		/*
		 * Copies end at event boundaries; an event is cut only if the ring was not copied
		 * whole.
		 */
		*is_at_end = n == 0;
		if (n == 0)
			return NULL;
		if (n < 0)
			return "it sent bytes that are no event";
		why = take_event(consumer, tables, batch, &event, &stack);
		if (why)
			return why;
		consumer->n_decoded++;
		consumer->begin += (uint32_t)n;
	}
	return NULL;
}

/* Replace the ids by the addresses' numbers. Returns false if there is no such address. */
static bool map_ids(struct consumer_tables *tables, uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t number = torsh_code_number(tables->code, ids[i]);

		if (number < 0)
			return false;
		ids[i] = (uint32_t)number;
	}
	return true;
}

static bool has_hashes(const struct consumer_change_hashes *known,
		       const struct batch_change *change, uint32_t base)
{
	return change->is_repeated && known->n && known->n == change->n && known->base == base;
}

/* Returns false if the change names an address that the channel doesn't have. */
static bool hash_change(struct ring_consumer *consumer, struct consumer_tables *tables,
			struct batch *batch, struct batch_change *change)
{
	struct consumer_change_hashes *known = change->recent == CODEC_NOT_RECENT
						       ? NULL
						       : &consumer->change_hashes[change->recent];
	uint32_t *path = &consumer->hashes[change->depth], *hashes = &batch->hashes[change->first],
		 *numbers = &batch->ids[change->first];

	if (!map_ids(tables, numbers, change->n))
		return false;
	if (known && has_hashes(known, change, path[0])) {
		for (uint32_t i = 0; i < change->n; i++)
			hashes[i] = path[i + 1] = known->path[i];
		change->is_known = true;
		return true;
	}
	if (known)
		known->base = path[0];
	for (uint32_t i = 0; i < change->n; i++) {
		hashes[i] = path[i + 1] = torsh_stacks_hash(path[i], numbers[i]);
		torsh_stacks_prefetch(tables->stacks, hashes[i]);
		if (known)
			known->path[i] = hashes[i];
	}
	if (known)
		known->n = change->n;
	return true;
}

/*
 * Returns NULL, or the reason why a change is invalid; then the batch ends before it, and what was
 * read after it is dropped.
 */
static const char *hash_changes(struct ring_consumer *consumer, struct consumer_tables *tables,
				struct batch *batch)
{
	for (uint32_t i = 0; i < batch->n_changes; i++) {
		struct batch_change *change = &batch->changes[i];

		if (hash_change(consumer, tables, batch, change))
			continue;
		consumer->n_events = change->event;
		consumer->n_decoded -= (uint32_t)consumer->n_decoded - change->n_decoded;
		batch->n_changes = i;
		return "it named an address that the channel doesn't have";
	}
	return NULL;
}

static void prefetch_rows(const struct consumer_tables *tables, const struct batch *batch)
{
	for (uint32_t i = 0; i < batch->n_changes; i++) {
		const struct batch_change *change = &batch->changes[i];

		for (uint32_t k = 0; !change->is_known && k < change->n; k++)
			torsh_stacks_prefetch_row(tables->stacks, batch->hashes[change->first + k]);
	}
}

static void push_change(struct ring_consumer *consumer, struct consumer_tables *tables,
			const struct batch *batch, const struct batch_change *change)
{
	struct consumer_change_stacks *known = change->recent == CODEC_NOT_RECENT
						       ? NULL
						       : &consumer->change_stacks[change->recent];
	uint32_t *path = &consumer->stacks[change->depth];

	consumer->recent = change->n ? change->recent : CODEC_NOT_RECENT;
	consumer->depth = change->depth + change->n;
	if (known && change->is_repeated && known->n && known->n == change->n &&
	    known->base == path[0]) {
		for (uint32_t i = 0; i < change->n; i++)
			path[i + 1] = known->path[i];
		return;
	}
	for (uint32_t i = 0; i < change->n; i++)
		path[i + 1] =
			torsh_stacks_push(tables->stacks, path[i], batch->ids[change->first + i],
					  batch->hashes[change->first + i]);
	if (!known)
		return;
	*known = (struct consumer_change_stacks){.base = path[0], .n = change->n};
	for (uint32_t i = 0; i < change->n; i++)
		known->path[i] = path[i + 1];
}

static void push_changes(struct ring_consumer *consumer, struct consumer_tables *tables,
			 struct batch *batch)
{
	uint32_t next = 0;

	for (uint32_t i = batch->first; i < consumer->n_events; i++) {
		struct consumed_event *event = &consumer->events[i];

		while (next < batch->n_changes && batch->changes[next].event <= i)
			push_change(consumer, tables, batch, &batch->changes[next++]);
		batch->recent[i - batch->first] = CODEC_NOT_RECENT;
		if (!event->stack_or_site)
			continue;
		event->stack_or_site = consumer->stacks[consumer->depth];
		if (event->id != EVENT_ALLOC)
			continue;
		batch->recent[i - batch->first] = consumer->recent;
		torsh_heap_prefetch_slot(tables->heap, event->stack_or_site);
	}
	while (next < batch->n_changes)
		push_change(consumer, tables, batch, &batch->changes[next++]);
}

/* The site of an allocation's stack, or the empty site. */
static uint32_t site_of(struct ring_consumer *consumer, struct consumer_tables *tables,
			uint32_t stack, uint32_t recent)
{
	struct consumer_change_stacks *known =
		recent == CODEC_NOT_RECENT ? NULL : &consumer->change_stacks[recent];

	/* A later change of the batch may have taken its place. */
	if (known && (!known->n || known->path[known->n - 1] != stack))
		known = NULL;
	if (known && known->site)
		return known->site;
	stack = torsh_heap_site(tables->heap, stack);
	if (known)
		known->site = stack;
	return stack;
}

static void prefetch_sites(const struct ring_consumer *consumer,
			   const struct consumer_tables *tables, const struct batch *batch)
{
	for (uint32_t i = batch->first; i < consumer->n_events; i++) {
		if (consumer->events[i].id == EVENT_ALLOC)
			torsh_heap_prefetch_site(tables->heap, consumer->events[i].stack_or_site);
	}
}

static void set_sites(struct ring_consumer *consumer, struct consumer_tables *tables,
		      const struct batch *batch)
{
	for (uint32_t i = batch->first; i < consumer->n_events; i++) {
		struct consumed_event *event = &consumer->events[i];

		if (event->id == EVENT_ALLOC)
			event->stack_or_site = site_of(consumer, tables, event->stack_or_site,
						       batch->recent[i - batch->first]);
	}
}

void torsh_ring_consumer_end(struct ring_consumer *consumer)
{
	if (consumer->first == consumer->n_events && consumer->begin < consumer->end)
		torsh_ring_consumer_break(consumer, "it ended within an event");
	consumer->bound = ORDER_NO_BOUND;
}

uint32_t torsh_ring_consumer_decode(struct ring_consumer *consumer, struct consumer_tables *tables)
{
	const char *why = NULL;
	bool is_at_end = false;

	consumer->first = consumer->n_events = 0;
	while (!why && !is_at_end && consumer->n_events < RING_CONSUMER_EVENTS) {
		uint32_t depth = consumer->depth;
		struct batch batch;
		const char *earlier;

		batch.first = consumer->n_events;
		batch.n_changes = batch.n_ids = 0;
		why = read_events(consumer, tables, &batch, &is_at_end);
		earlier = hash_changes(consumer, tables, &batch);
		why = earlier ? earlier : why;
		/* The changes set it again, one by one. */
		consumer->depth = depth;
		if (tables->stacks->n_rows > ROWS_IN_CACHE)
			prefetch_rows(tables, &batch);
		push_changes(consumer, tables, &batch);
		if (tables->stacks->n_rows > ROWS_IN_CACHE)
			prefetch_sites(consumer, tables, &batch);
		set_sites(consumer, tables, &batch);
	}
	if (why)
		torsh_ring_consumer_break(consumer, why);
	return consumer->n_events;
}
