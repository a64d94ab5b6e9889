/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/ring_consumer.h"

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

struct intake *torsh_intake_create(void)
{
	struct intake *intake = torsh_memory_room(sizeof(*intake));

	intake->path[0] = (struct stack_place){0};
	intake->cold = NULL;
	intake->capacity = FIRST_BYTES;
	intake->bytes = torsh_memory_new(intake->capacity, 1);
	return intake;
}

void torsh_intake_start(struct intake *intake, struct thread_slot *slot, const uint8_t *bytes, uint32_t ring_bytes,
			uint64_t consumed, uint64_t base_stamp)
{
	intake->broken = NULL;
	intake->begin = intake->end = 0;
	intake->first = intake->n_events = 0;
	intake->depth = 0;
	memset(intake->changes, 0, sizeof(intake->changes));
	intake->change = NULL;
	intake->bound = intake->busy_head = intake->busy_since_ns = 0;
	intake->n_decoded = intake->n_bytes = 0;
	intake->heap = (struct heap_flow){0};
	intake->ring_end = CHANNEL_NOT_LARGE;
	intake->n_large = 0;
	intake->is_large = intake->is_closed = 0;
	intake->ring = (struct ring){
		.slot = slot,
		.bytes = (uint8_t *)(uintptr_t)bytes,
		.mask = ring_bytes - 1,
		.head = consumed,
	};
	torsh_codec_start(&intake->codec, base_stamp);
}

void torsh_intake_enlarge(struct intake *intake, const uint8_t *bytes, uint32_t ring_bytes)
{
	intake->ring.bytes = (uint8_t *)(uintptr_t)bytes;
	intake->ring.mask = ring_bytes - 1;
	intake->ring_end = CHANNEL_NOT_LARGE;
	intake->n_large = 0;
	intake->is_large = 1;
}

int torsh_intake_is_kept(const struct intake *intake)
{
	return intake->capacity <= KEPT_BYTES;
}

void torsh_intake_destroy(struct intake *intake)
{
	free(intake->bytes);
	free(intake->cold);
	free(intake);
}

/* Room behind end for n_bytes, if that can be had without copying old bytes again and again, or growing too large. */
static uint32_t make_room(struct intake *intake, uint64_t n_bytes)
{
	uint32_t n_held = intake->end - intake->begin;

	if (intake->capacity - intake->end < n_bytes && n_held <= intake->begin) {
		memcpy(intake->bytes, intake->bytes + intake->begin, n_held);
		intake->begin = 0;
		intake->end = n_held;
	}
	while (intake->capacity - intake->end < n_bytes && intake->capacity < MOST_BYTES) {
		uint8_t *larger = realloc(intake->bytes, intake->capacity * 2);

		if (!larger)
			break;
		intake->bytes = larger;
		intake->capacity *= 2;
	}
	return intake->capacity - intake->end;
}

static void copy_bytes(struct intake *intake, uint32_t n_bytes)
{
	const struct ring *ring = &intake->ring;
	uint32_t at = (uint32_t)(ring->head & ring->mask), until_wrap = (uint32_t)ring->mask + 1 - at;
	uint32_t n_first = n_bytes < until_wrap ? n_bytes : until_wrap;

	memcpy(intake->bytes + intake->end, ring->bytes + at, n_first);
	memcpy(intake->bytes + intake->end + n_first, ring->bytes, n_bytes - n_first);
	intake->end += n_bytes;
}

/* The producer sets producer_waits, then looks at the tail; we the other way round: one of us sees the other. */
static void wake_producer(struct thread_slot *slot)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&slot->producer_waits, memory_order_relaxed))
		return;
	atomic_store_explicit(&slot->producer_waits, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->progress, 1, memory_order_release);
	syscall(SYS_futex, &slot->progress, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void consume(struct intake *intake, uint64_t n_bytes)
{
	torsh_ring_consume(&intake->ring, n_bytes);
	intake->n_bytes += n_bytes;
	wake_producer(intake->ring.slot);
}

void torsh_intake_break(struct intake *intake, const char *why)
{
	intake->broken = why;
	intake->begin = intake->end = 0;
}

/* Is the producer in the middle of an event for longer than order.h has patience? */
static int is_stuck(struct intake *intake, uint64_t now_ns)
{
	if (intake->busy_head != intake->ring.head || !intake->busy_since_ns) {
		intake->busy_head = intake->ring.head;
		intake->busy_since_ns = now_ns;
		return 0;
	}
	return now_ns - intake->busy_since_ns > ORDER_PATIENCE_NS;
}

/* Bytes that were committed and not consumed, see torsh_ring_committed; where the ring has ended, up to there. */
static int64_t count_committed(struct intake *intake, int *is_busy, int *is_beyond)
{
	const struct ring *ring = &intake->ring;
	uint64_t n_small = ring->mask + 1;
	int64_t n = torsh_ring_committed(ring, n_small + intake->n_large, is_busy);

	*is_beyond = 0;
	if (n < 0 || intake->is_large)
		return n <= (int64_t)n_small ? n : -1;
	/* Looked at after the head: what lies behind it is not taken out of this ring. */
	if (intake->ring_end == CHANNEL_NOT_LARGE)
		intake->ring_end = atomic_load_explicit(&ring->slot->large_from, memory_order_acquire);
	if (intake->ring_end == CHANNEL_NOT_LARGE)
		return n <= (int64_t)n_small ? n : -1;
	if (intake->ring_end < ring->head || intake->ring_end - ring->head > n_small)
		return -1;
	*is_beyond = (uint64_t)n > intake->ring_end - ring->head;
	return *is_beyond ? (int64_t)(intake->ring_end - ring->head) : n;
}

int torsh_intake_is_at_end(const struct intake *intake)
{
	return !intake->is_large && !intake->broken && intake->ring.head == intake->ring_end;
}

/* A head that no producer can mean is followed, so that it waits for nothing. */
static void follow_head(struct intake *intake, uint64_t limit)
{
	uint64_t head = atomic_load_explicit(&intake->ring.slot->head, memory_order_acquire) >> 1;

	if (!intake->broken)
		torsh_intake_break(intake, "its ring's head makes no sense");
	intake->bound = limit;
	if (head != intake->ring.head)
		consume(intake, head - intake->ring.head);
}

uint64_t torsh_intake_copy(struct intake *intake, uint64_t limit, uint64_t now_ns)
{
	int is_busy, is_beyond;
	int64_t n_there = count_committed(intake, &is_busy, &is_beyond);
	uint64_t n_bytes = (uint64_t)n_there;

	if (n_there < 0 || intake->broken) {
		follow_head(intake, limit);
		return 0;
	}
	if (n_bytes) {
		uint32_t room = make_room(intake, n_bytes);

		n_bytes = n_bytes < room ? n_bytes : room;
		copy_bytes(intake, (uint32_t)n_bytes);
		consume(intake, n_bytes);
	}
	if (n_bytes < (uint64_t)n_there || is_beyond)
		return n_bytes;
	if (!is_busy)
		intake->busy_since_ns = 0;
	if (!is_busy || is_stuck(intake, now_ns))
		intake->bound = limit;
	return n_bytes;
}

int torsh_intake_is_dry(const struct intake *intake)
{
	int is_busy;

	if (intake->first < intake->n_events || intake->begin < intake->end)
		return 0;
	return intake->broken || torsh_ring_committed(&intake->ring, UINT64_MAX, &is_busy) == 0;
}

/* Numbers for the ids and hashes for their paths; the index's slots for them are on their way. */
static const char *place_frames(struct stack_place *path, struct intake_tables *tables, const struct codec_stack *stack,
				uint32_t *numbers)
{
	for (uint32_t i = 0; i < stack->n; i++) {
		int64_t number = torsh_code_number(tables->code, stack->ids[i]);

		if (number < 0)
			return "it named an address that the channel doesn't have";
		numbers[i] = (uint32_t)number;
		path[i + 1].hash = torsh_stacks_hash(path[i].hash, numbers[i]);
		torsh_stacks_prefetch(tables->stacks, path[i + 1].hash);
	}
	return NULL;
}

/* The frames that this change added to the same stack before. Returns 0 where it is another one. */
static int repeat_change(struct intake *intake, const struct codec_stack *stack, uint32_t depth)
{
	struct intake_change *change = &intake->changes[stack->recent];

	if (change->n != stack->n || change->base != intake->path[depth].stack || !change->n)
		return 0;
	for (uint32_t i = 0; i < change->n; i++)
		intake->path[depth + 1 + i] = change->path[i];
	intake->change = change;
	return 1;
}

static void keep_change(struct intake *intake, const struct codec_stack *stack, uint32_t depth)
{
	struct intake_change *change = &intake->changes[stack->recent];

	change->base = intake->path[depth].stack;
	change->n = stack->n;
	change->site = 0;
	for (uint32_t i = 0; i < stack->n; i++)
		change->path[i] = intake->path[depth + 1 + i];
	intake->change = change;
}

/* Returns NULL, or why these ids can't be a stack. */
static const char *change_stack(struct intake *intake, struct intake_tables *tables, const struct codec_stack *stack)
{
	uint32_t depth = stack->pop == CODEC_POP_ALL ? 0 : intake->depth - stack->pop, numbers[CODEC_STACK_IDS];
	struct stack_place *path;
	const char *why;

	if (depth > intake->depth)
		return "it left more frames than its stack had";
	if (stack->n > STACK_DEPTH_MAX - depth)
		return "its stack grew too deep";
	intake->depth = depth + stack->n;
	intake->change = NULL;
	if (stack->is_repeated && repeat_change(intake, stack, depth))
		return NULL;
	path = &intake->path[depth];
	why = place_frames(path, tables, stack, numbers);
	if (why)
		return why;
	for (uint32_t i = 0; i < stack->n; i++)
		path[i + 1].stack = torsh_stacks_push(tables->stacks, path[i].stack, numbers[i], path[i + 1].hash);
	if (stack->recent != CODEC_NOT_RECENT)
		keep_change(intake, stack, depth);
	return NULL;
}

static uint32_t stack_of(const struct intake *intake, const struct codec_stack *stack)
{
	return stack->form == CODEC_STACK_NONE ? 0 : intake->path[intake->depth].stack;
}

/* The site of the thread's stack, or of none. */
static uint32_t site_of(struct intake *intake, struct intake_tables *tables, uint32_t stack)
{
	struct intake_change *change = stack ? intake->change : NULL;

	if (change && change->site)
		return change->site;
	stack = torsh_heap_site(tables->heap, tables->stacks, stack);
	if (change)
		change->site = stack;
	return stack;
}

/* Returns NULL, or why this can't be. */
static const char *take_alloc(struct intake *intake, struct intake_tables *tables, const struct event *event,
			      uint32_t stack)
{
	struct intake_event *out = &intake->events[intake->n_events];

	if (!event->alloc.address || event->alloc.size > LIVE_SIZE_MAX)
		return "it allocated a block that can't be";
	out->address = event->alloc.address;
	out->size = event->alloc.size;
	out->usable = event->alloc.usable;
	out->entry = (uint16_t)event->alloc.entry;
	out->place = site_of(intake, tables, stack);
	torsh_live_prefetch(&tables->heap->live, out->address);
	__builtin_prefetch(&tables->heap->sites[out->place], 1);
	return NULL;
}

static void take_cold(struct intake *intake, const struct event *event, uint32_t stack)
{
	if (!intake->cold)
		intake->cold = torsh_memory_new(INTAKE_EVENTS, sizeof(*intake->cold));
	intake->cold[intake->n_events] = *event;
	intake->events[intake->n_events].place = stack;
}

/* Returns NULL, or why this can't be. A STACK event ends here, the others wait to be folded. */
static const char *take_event(struct intake *intake, struct intake_tables *tables, const struct event *event,
			      const struct codec_stack *stack)
{
	struct intake_event *out = &intake->events[intake->n_events];
	const char *why = NULL;

	if (stack->form == CODEC_STACK_GIVEN)
		why = change_stack(intake, tables, stack);
	if (why || event->id == EVENT_STACK)
		return why;
	out->stamp = event->stamp;
	out->id = (uint16_t)event->id;
	switch (event->id) {
	case EVENT_ALLOC:
		why = take_alloc(intake, tables, event, stack_of(intake, stack));
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		out->address = event->free.address;
		torsh_live_prefetch(&tables->heap->live, out->address);
		break;
	default:
		take_cold(intake, event, stack_of(intake, stack));
		break;
	}
	if (!why)
		intake->n_events++;
	return why;
}

void torsh_intake_end(struct intake *intake)
{
	if (intake->first == intake->n_events && intake->begin < intake->end)
		torsh_intake_break(intake, "it ended within an event");
	intake->bound = ORDER_NO_BOUND;
}

uint32_t torsh_intake_decode(struct intake *intake, struct intake_tables *tables)
{
	struct codec_stack stack;
	struct event event;

	intake->first = intake->n_events = 0;
	while (intake->n_events < INTAKE_EVENTS && intake->begin < intake->end) {
		const char *why;
		long n = torsh_codec_decode(&intake->codec, intake->bytes + intake->begin, intake->end - intake->begin,
					    &event, &stack);

		/* Copies end where events end; only a ring that was not copied whole is cut within one. */
		if (n == 0)
			break;
		why = n < 0 ? "it sent bytes that are no event" : take_event(intake, tables, &event, &stack);
		if (why) {
			torsh_intake_break(intake, why);
			break;
		}
		intake->n_decoded++;
		intake->begin += (uint32_t)n;
	}
	return intake->n_events;
}
