/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decodes the copied bytes of a ring. Each event with a stack of its own has a chain of look-ups,
 * every one of which may miss the cache: the frames in the index of stacks, the stacks there, the
 * stack in the index of sites, the site. So events are decoded in batches, and each link of the
 * chain is prefetched for all of a batch before it is followed for the first.
 */
#include <stdbool.h>

#include "tools/base/memory.h"
#include "tools/writer/input/ring_consumer.h"

#define BATCH_EVENTS 32u
#define BATCH_FRAMES (2 * CODEC_STACK_IDS)
#define NO_EVENT UINT32_MAX

struct staged {
	uint32_t event; /* among the consumer's events; NO_EVENT: only the stack changes */
	bool is_alloc, has_stack, is_change, is_repeated;
	/* of a change: the frames that stay, and the new ones in the batch */
	uint32_t depth, first, n;
	uint32_t recent; /* as in codec_stack */
	uint32_t stack, site; /* site 0: not looked up yet */
	struct consumer_change *change; /* that stores the site, or NULL */
};

struct batch {
	struct ring_consumer *consumer;
	struct consumer_tables *tables;
	uint32_t n, n_frames;
	struct staged items[BATCH_EVENTS];
	uint32_t numbers[BATCH_FRAMES + CODEC_CHANGE_IDS];
	uint32_t hashes[BATCH_FRAMES + CODEC_CHANGE_IDS]; /* of the paths that end there */
};

/* ---- from bytes to hashes -------------------------------------------------------------------- */

/* Copy the hashes if the same change was made to the same path before. */
static bool repeat_hashes(struct batch *batch, const struct codec_stack *stack, uint32_t *hashes)
{
	const struct hashed_change *hashed = &batch->consumer->hashed[stack->recent];

	if (hashed->n != stack->n || hashed->base != hashes[0] || !hashed->n)
		return false;
	memcpy(hashes + 1, hashed->hashes, sizeof(hashed->hashes));
	memcpy(&batch->hashes[batch->n_frames], hashed->hashes, sizeof(hashed->hashes));
	memcpy(&batch->numbers[batch->n_frames], hashed->numbers, sizeof(hashed->numbers));
	return true;
}

static void keep_hashes(struct batch *batch, const struct codec_stack *stack, uint32_t base)
{
	struct hashed_change *hashed = &batch->consumer->hashed[stack->recent];

	hashed->base = base;
	hashed->n = stack->n;
	memcpy(hashed->hashes, &batch->hashes[batch->n_frames], sizeof(hashed->hashes));
	memcpy(hashed->numbers, &batch->numbers[batch->n_frames], sizeof(hashed->numbers));
}

/* Map the ids to numbers and compute the hashes of the paths, from hashes[0] on. */
static const char *hash_frames(struct batch *batch, const struct codec_stack *stack,
			       uint32_t *hashes)
{
	uint32_t hash = hashes[0], *numbers = &batch->numbers[batch->n_frames];

	for (uint32_t i = 0; i < stack->n; i++) {
		int64_t number = torsh_code_number(batch->tables->code, stack->ids[i]);

		if (number < 0)
			return "it named an address that the channel doesn't have";
		numbers[i] = (uint32_t)number;
		hash = torsh_stacks_hash(hash, numbers[i]);
		hashes[i + 1] = batch->hashes[batch->n_frames + i] = hash;
		torsh_stacks_prefetch(batch->tables->stacks, hash);
	}
	return NULL;
}

/* Returns NULL, or the reason why these ids are not a valid stack. */
static const char *stage_change(struct batch *batch, struct staged *staged,
				const struct codec_stack *stack)
{
	struct ring_consumer *consumer = batch->consumer;
	uint32_t depth = stack->pop == CODEC_POP_ALL ? 0 : consumer->depth - stack->pop;
	uint32_t *hashes;
	const char *why;

	if (depth > consumer->depth)
		return "it left more frames than its stack had";
	if (stack->n > STACK_DEPTH_MAX - depth)
		return "its stack grew too deep";
	hashes = &consumer->hashes[depth];
	consumer->depth = depth + stack->n;
	staged->is_change = true;
	staged->is_repeated = stack->is_repeated;
	staged->recent = stack->recent;
	staged->depth = depth;
	staged->first = batch->n_frames;
	staged->n = stack->n;
	if (!stack->is_repeated || !repeat_hashes(batch, stack, hashes)) {
		why = hash_frames(batch, stack, hashes);
		if (why)
			return why;
		if (stack->recent != CODEC_NOT_RECENT)
			keep_hashes(batch, stack, hashes[0]);
	}
	batch->n_frames += stack->n;
	return NULL;
}

/* Returns NULL, or the reason why the event is invalid. */
static const char *stage_alloc(struct batch *batch, struct staged *staged,
			       const struct event *event, struct consumed_event *out)
{
	if (!event->alloc.address || event->alloc.size > LIVE_SIZE_MAX)
		return "it allocated a block that can't be";
	staged->is_alloc = true;
	out->address = event->alloc.address;
	out->size = event->alloc.size;
	out->usable = event->alloc.usable;
	out->entry = (uint16_t)event->alloc.entry;
	torsh_live_prefetch(&batch->tables->heap->live, out->address);
	return NULL;
}

static void take_cold(struct ring_consumer *consumer, const struct event *event)
{
	if (!consumer->cold)
		consumer->cold = torsh_memory_new(RING_CONSUMER_EVENTS, sizeof(*consumer->cold));
	consumer->cold[consumer->n_events] = *event;
}

/*
 * Returns NULL, or the reason why the event is invalid. STACK events only change the stack; others
 * wait to be folded.
 */
static const char *stage_event(struct batch *batch, const struct event *event,
			       const struct codec_stack *stack)
{
	struct ring_consumer *consumer = batch->consumer;
	struct consumed_event *out = &consumer->events[consumer->n_events];
	struct staged *staged = &batch->items[batch->n];
	const char *why = NULL;

	*staged = (struct staged){.event = NO_EVENT, .has_stack = stack->form != CODEC_STACK_NONE};
	if (stack->form == CODEC_STACK_GIVEN)
		why = stage_change(batch, staged, stack);
	if (why)
		return why;
	batch->n++;
	if (event->id == EVENT_STACK)
		return NULL;
	out->stamp = event->stamp;
	out->id = (uint16_t)event->id;
	switch (event->id) {
	case EVENT_ALLOC:
		why = stage_alloc(batch, staged, event, out);
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		out->address = event->free.address;
		torsh_live_prefetch(&batch->tables->heap->live, out->address);
		break;
	default:
		take_cold(consumer, event);
		break;
	}
	if (!why)
		staged->event = consumer->n_events++;
	return why;
}

/* ---- from hashes to stacks ------------------------------------------------------------------- */

static bool repeat_change(struct ring_consumer *consumer, struct staged *staged, uint32_t *path)
{
	struct consumer_change *change = &consumer->changes[staged->recent];

	if (change->n != staged->n || change->base != path[0] || !change->n)
		return false;
	memcpy(path + 1, change->path, sizeof(change->path));
	staged->site = change->site;
	staged->change = change;
	return true;
}

static void keep_change(struct ring_consumer *consumer, struct staged *staged, const uint32_t *path)
{
	struct consumer_change *change = &consumer->changes[staged->recent];

	change->base = path[0];
	change->n = staged->n;
	change->site = 0;
	memcpy(change->path, path + 1, sizeof(change->path));
	staged->change = change;
}

static void follow_change(struct batch *batch, struct staged *staged)
{
	struct ring_consumer *consumer = batch->consumer;
	uint32_t *path = &consumer->path[staged->depth];

	if (!staged->is_repeated || !repeat_change(consumer, staged, path)) {
		for (uint32_t i = 0; i < staged->n; i++)
			path[i + 1] = torsh_stacks_push(batch->tables->stacks, path[i],
							batch->numbers[staged->first + i],
							batch->hashes[staged->first + i]);
		if (staged->recent != CODEC_NOT_RECENT)
			keep_change(consumer, staged, path);
	}
	consumer->stack = path[staged->n];
}

static void find_stacks(struct batch *batch)
{
	struct stack_table *stacks = batch->tables->stacks;
	struct heap *heap = batch->tables->heap;

	for (uint32_t i = 0; i < batch->n_frames; i++)
		torsh_stacks_prefetch_row(stacks, batch->hashes[i]);
	for (uint32_t i = 0; i < batch->n_frames; i++)
		torsh_stacks_prefetch_follower(stacks, batch->hashes[i]);
	for (uint32_t i = 0; i < batch->n; i++) {
		struct staged *staged = &batch->items[i];

		if (staged->is_change)
			follow_change(batch, staged);
		staged->stack = staged->has_stack ? batch->consumer->stack : 0;
		if (staged->is_alloc && !staged->site)
			torsh_site_prefetch(&heap->site_index, staged->stack);
	}
}

/* ---- from stacks to sites -------------------------------------------------------------------- */

static void find_site(struct heap *heap, struct staged *staged)
{
	struct consumer_change *change = staged->change;

	staged->site = torsh_heap_site(heap, staged->stack);
	/* A later change of the batch may have replaced this one. */
	if (change && change->n && change->path[change->n - 1] == staged->stack)
		change->site = staged->site;
}

static void find_sites(struct batch *batch)
{
	struct heap *heap = batch->tables->heap;

	for (uint32_t i = 0; i < batch->n; i++) {
		if (batch->items[i].is_alloc && !batch->items[i].site)
			torsh_site_prefetch_item(&heap->site_index, torsh_heap_site_stacks(heap),
						 batch->items[i].stack);
	}
	for (uint32_t i = 0; i < batch->n; i++) {
		struct staged *staged = &batch->items[i];

		if (staged->event == NO_EVENT)
			continue;
		if (staged->is_alloc && !staged->site)
			find_site(heap, staged);
		batch->consumer->events[staged->event].stack_or_site =
			staged->is_alloc ? staged->site : staged->stack;
	}
	for (uint32_t i = 0; i < batch->n; i++) {
		if (batch->items[i].is_alloc)
			torsh_site_totals_prefetch(&heap->totals,
						   &heap->sites[batch->items[i].site]);
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Decode events until the batch is full. Returns true if there may be more. */
static bool fill_batch(struct batch *batch, const char **why)
{
	struct ring_consumer *consumer = batch->consumer;
	struct codec_stack stack;
	struct event event;

	batch->n = batch->n_frames = 0;
	while (batch->n < BATCH_EVENTS && batch->n_frames <= BATCH_FRAMES - CODEC_STACK_IDS) {
		long n;

		if (consumer->n_events == RING_CONSUMER_EVENTS || consumer->begin == consumer->end)
			return false;
		n = torsh_codec_decode(&consumer->codec, consumer->bytes + consumer->begin,
				       consumer->end - consumer->begin, &event, &stack);
		/*
		 * Copies end at event boundaries; an event is cut only if the ring was not copied
		 * whole.
		 */
		if (n == 0)
			return false;
		*why = n < 0 ? "it sent bytes that are no event"
			     : stage_event(batch, &event, &stack);
		if (*why)
			return false;
		consumer->n_decoded++;
		consumer->begin += (uint32_t)n;
	}
	return true;
}

static void decode(struct ring_consumer *consumer, struct consumer_tables *tables)
{
	struct batch batch = {.consumer = consumer, .tables = tables};
	const char *why = NULL;
	bool has_more;

	do {
		has_more = fill_batch(&batch, &why);
		find_stacks(&batch);
		find_sites(&batch);
	} while (has_more);
	if (why)
		torsh_ring_consumer_break(consumer, why);
}

uint32_t torsh_ring_consumer_decode(struct ring_consumer *consumer, struct consumer_tables *tables)
{
	consumer->first = consumer->n_events = 0;
	if (consumer->begin < consumer->end)
		decode(consumer, tables);
	return consumer->n_events;
}
