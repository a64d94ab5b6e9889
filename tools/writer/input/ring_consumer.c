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

	consumer->path[0] = (struct hashed_stack){0};
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
	memset(consumer->changes, 0, sizeof(consumer->changes));
	consumer->change = NULL;
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

/* Map the ids to numbers and compute the path hashes; prefetches the slots of the index. */
static const char *hash_frames(struct hashed_stack *path, struct consumer_tables *tables,
			       const struct codec_stack *stack, uint32_t *numbers)
{
	torsh_stacks_prefetch_child(tables->stacks, path[0].stack);
	for (uint32_t i = 0; i < stack->n; i++) {
		int64_t number = torsh_code_number(tables->code, stack->ids[i]);

		if (number < 0)
			return "it named an address that the channel doesn't have";
		numbers[i] = (uint32_t)number;
		path[i + 1].hash = torsh_stacks_hash(path[i].hash, numbers[i]);
		torsh_stacks_prefetch(tables->stacks, path[i + 1].hash);
	}
	for (uint32_t i = 1; i < stack->n; i++)
		torsh_stacks_prefetch_row(tables->stacks, path[i + 1].hash);
	return NULL;
}

/*
 * Returns the number of frames that this change added to the same stack before; 0 if the stack
 * differs.
 */
static bool repeat_change(struct ring_consumer *consumer, const struct codec_stack *stack,
			  uint32_t depth)
{
	struct consumer_change *change = &consumer->changes[stack->recent];

	if (change->n != stack->n || change->base != consumer->path[depth].stack || !change->n)
		return false;
	for (uint32_t i = 0; i < change->n; i++)
		consumer->path[depth + 1 + i] = change->path[i];
	consumer->change = change;
	return true;
}

static void keep_change(struct ring_consumer *consumer, const struct codec_stack *stack,
			uint32_t depth)
{
	struct consumer_change *change = &consumer->changes[stack->recent];

	change->base = consumer->path[depth].stack;
	change->n = stack->n;
	change->site = 0;
	for (uint32_t i = 0; i < stack->n; i++)
		change->path[i] = consumer->path[depth + 1 + i];
	consumer->change = change;
}

/* Returns NULL, or the reason why these ids are not a valid stack. */
static const char *change_stack(struct ring_consumer *consumer, struct consumer_tables *tables,
				const struct codec_stack *stack)
{
	uint32_t depth = stack->pop == CODEC_POP_ALL ? 0 : consumer->depth - stack->pop,
		 numbers[CODEC_STACK_IDS];
	struct hashed_stack *path;
	const char *why;

	if (depth > consumer->depth)
		return "it left more frames than its stack had";
	if (stack->n > STACK_DEPTH_MAX - depth)
		return "its stack grew too deep";
	consumer->depth = depth + stack->n;
	consumer->change = NULL;
	if (stack->is_repeated && repeat_change(consumer, stack, depth))
		return NULL;
	path = &consumer->path[depth];
	why = hash_frames(path, tables, stack, numbers);
	if (why)
		return why;
	for (uint32_t i = 0; i < stack->n; i++)
		path[i + 1].stack = torsh_stacks_push(tables->stacks, path[i].stack, numbers[i],
						      path[i + 1].hash);
	if (stack->recent != CODEC_NOT_RECENT)
		keep_change(consumer, stack, depth);
	return NULL;
}

static uint32_t stack_of(const struct ring_consumer *consumer, const struct codec_stack *stack)
{
	return stack->form == CODEC_STACK_NONE ? 0 : consumer->path[consumer->depth].stack;
}

/* The site of the thread's stack, or the empty site. */
static uint32_t site_of(struct ring_consumer *consumer, struct consumer_tables *tables,
			uint32_t stack)
{
	struct consumer_change *change = stack ? consumer->change : NULL;

	if (change && change->site)
		return change->site;
	stack = torsh_heap_site(tables->heap, stack);
	if (change)
		change->site = stack;
	return stack;
}

/* Returns NULL, or the reason why the event is invalid. */
static const char *take_alloc(struct ring_consumer *consumer, struct consumer_tables *tables,
			      const struct event *event, uint32_t stack)
{
	struct consumed_event *out = &consumer->events[consumer->n_events];

	if (!event->alloc.address || event->alloc.size > LIVE_SIZE_MAX)
		return "it allocated a block that can't be";
	out->address = event->alloc.address;
	out->size = event->alloc.size;
	out->usable = event->alloc.usable;
	out->entry = (uint16_t)event->alloc.entry;
	out->stack_or_site = site_of(consumer, tables, stack);
	torsh_live_prefetch(&tables->heap->live, out->address);
	__builtin_prefetch(&tables->heap->sites[out->stack_or_site], 1);
	return NULL;
}

static void take_cold(struct ring_consumer *consumer, const struct event *event, uint32_t stack)
{
	if (!consumer->cold)
		consumer->cold = torsh_memory_new(RING_CONSUMER_EVENTS, sizeof(*consumer->cold));
	consumer->cold[consumer->n_events] = *event;
	consumer->events[consumer->n_events].stack_or_site = stack;
}

/*
 * Returns NULL, or the reason why the event is invalid. STACK events are complete here; others wait
 * to be folded.
 */
static const char *take_event(struct ring_consumer *consumer, struct consumer_tables *tables,
			      const struct event *event, const struct codec_stack *stack)
{
	struct consumed_event *out = &consumer->events[consumer->n_events];
	const char *why = NULL;

	if (stack->form == CODEC_STACK_GIVEN)
		why = change_stack(consumer, tables, stack);
	if (why || event->id == EVENT_STACK)
		return why;
	out->stamp = event->stamp;
	out->id = (uint16_t)event->id;
	switch (event->id) {
	case EVENT_ALLOC:
		why = take_alloc(consumer, tables, event, stack_of(consumer, stack));
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		out->address = event->free.address;
		torsh_live_prefetch(&tables->heap->live, out->address);
		break;
	default:
		take_cold(consumer, event, stack_of(consumer, stack));
		break;
	}
	if (!why)
		consumer->n_events++;
	return why;
}

void torsh_ring_consumer_end(struct ring_consumer *consumer)
{
	if (consumer->first == consumer->n_events && consumer->begin < consumer->end)
		torsh_ring_consumer_break(consumer, "it ended within an event");
	consumer->bound = ORDER_NO_BOUND;
}

uint32_t torsh_ring_consumer_decode(struct ring_consumer *consumer, struct consumer_tables *tables)
{
	struct codec_stack stack;
	struct event event;

	consumer->first = consumer->n_events = 0;
	while (consumer->n_events < RING_CONSUMER_EVENTS && consumer->begin < consumer->end) {
		const char *why;
		long n = torsh_codec_decode(&consumer->codec, consumer->bytes + consumer->begin,
					    consumer->end - consumer->begin, &event, &stack);

		/*
		 * Copies end at event boundaries; an event is cut only if the ring was not copied
		 * whole.
		 */
		if (n == 0)
			break;
		why = n < 0 ? "it sent bytes that are no event"
			    : take_event(consumer, tables, &event, &stack);
		if (why) {
			torsh_ring_consumer_break(consumer, why);
			break;
		}
		consumer->n_decoded++;
		consumer->begin += (uint32_t)n;
	}
	return consumer->n_events;
}
