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
	bool is_alloc, has_stack, is_change;
	bool is_unknown; /* the site must be looked up */
	/* of a change: how many frames stay, the new ones, and the hashes of the paths there */
	uint32_t depth, n;
	const uint32_t *numbers, *hashes;
	uint32_t recent; /* as in codec_stack */
	bool is_repeated;
	uint32_t stack;
	uint32_t site; /* of a change: that of its stack; 0: not looked up yet */
	struct consumer_change *change; /* of a change: that stores the site, or NULL */
};

struct batch {
	struct ring_consumer *consumer;
	struct consumer_tables *tables;
	uint32_t n, n_frames;
	struct staged items[BATCH_EVENTS];
	/* frames that must be looked up, and the hashes of the paths that end there */
	uint32_t numbers[BATCH_FRAMES + CODEC_CHANGE_IDS];
	uint32_t hashes[BATCH_FRAMES + CODEC_CHANGE_IDS];
	/* by item; copied, because a later change of the batch may replace it */
	struct hashed_change repeated[BATCH_EVENTS];
};

/* ---- from bytes to hashes -------------------------------------------------------------------- */

/*
 * Copy the hashes if the same change was made to the same path before: its frames are hardly ever
 * looked up then.
 */
static bool repeat_hashes(struct batch *batch, struct staged *staged, uint32_t *hashes)
{
	const struct hashed_change *hashed = &batch->consumer->hashed[staged->recent];
	struct hashed_change *copy = &batch->repeated[batch->n];

	if (hashed->n != staged->n || hashed->base != hashes[0] || !hashed->n)
		return false;
	memcpy(hashes + 1, hashed->hashes, sizeof(hashed->hashes));
	*copy = *hashed;
	staged->numbers = copy->numbers;
	staged->hashes = copy->hashes;
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
		int64_t number = torsh_process_code_number(batch->tables->code, stack->ids[i]);

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
	staged->site = 0;
	staged->change = NULL;
	staged->is_repeated = stack->is_repeated;
	staged->recent = stack->recent;
	staged->depth = depth;
	staged->n = stack->n;
	if (stack->is_repeated && repeat_hashes(batch, staged, hashes))
		return NULL;
	why = hash_frames(batch, stack, hashes);
	if (why)
		return why;
	if (stack->recent != CODEC_NOT_RECENT)
		keep_hashes(batch, stack, hashes[0]);
	staged->numbers = &batch->numbers[batch->n_frames];
	staged->hashes = &batch->hashes[batch->n_frames];
	batch->n_frames += stack->n;
	return NULL;
}

/* Returns the next of the consumer's events, which counts once n_events is higher. */
static inline struct consumed_event *next_event(struct batch *batch, const struct event *event)
{
	struct ring_consumer *consumer = batch->consumer;
	struct consumed_event *out = &consumer->events[consumer->n_events];

	out->stamp = event->stamp;
	out->id = (uint16_t)event->id;
	return out;
}

/* Returns NULL, or the reason why the event is invalid. */
static inline const char *take_alloc(struct batch *batch, const struct event *event)
{
	struct consumed_event *out = next_event(batch, event);

	if (!event->alloc.address || event->alloc.size > LIVE_SIZE_MAX)
		return "it allocated a block that can't be";
	out->address = event->alloc.address;
	out->size = event->alloc.size;
	out->usable = event->alloc.usable;
	out->entry = (uint16_t)event->alloc.entry;
	out->stack_or_site = batch->consumer->site;
	torsh_live_prefetch(&batch->tables->heap->live, out->address);
	return NULL;
}

static void take_cold(struct batch *batch, const struct event *event)
{
	struct ring_consumer *consumer = batch->consumer;

	next_event(batch, event);
	if (!consumer->cold)
		consumer->cold = torsh_memory_new(RING_CONSUMER_EVENTS, sizeof(*consumer->cold));
	consumer->cold[consumer->n_events] = *event;
}

/* A free or the first half of a realloc: its stack is not used, so nothing waits for the batch. */
static inline void take_free(struct batch *batch, const struct event *event)
{
	struct consumed_event *out = next_event(batch, event);

	out->address = event->free.address;
	torsh_live_prefetch(&batch->tables->heap->live, out->address);
	batch->consumer->n_events++;
}

/*
 * Returns NULL, or the reason why the event is invalid. STACK events only change the stack; others
 * wait to be folded.
 */
static const char *stage_event(struct batch *batch, const struct event *event,
			       const struct codec_stack *stack)
{
	struct staged *staged = &batch->items[batch->n];
	const char *why = NULL;

	staged->event = NO_EVENT;
	staged->is_alloc = event->id == EVENT_ALLOC;
	staged->is_change = staged->is_unknown = false;
	staged->has_stack = stack->form != CODEC_STACK_NONE;
	if (stack->form == CODEC_STACK_GIVEN)
		why = stage_change(batch, staged, stack);
	if (!why && staged->is_alloc)
		why = take_alloc(batch, event);
	if (why)
		return why;
	batch->n++;
	if (event->id == EVENT_STACK)
		return NULL;
	if (!staged->is_alloc)
		take_cold(batch, event);
	staged->event = batch->consumer->n_events++;
	return NULL;
}

static inline const char *take_event(struct batch *batch, const struct event *event,
				     const struct codec_stack *stack)
{
	struct ring_consumer *consumer = batch->consumer;
	const char *why;

	if (event->id == EVENT_FREE || event->id == EVENT_REALLOC_BEGIN) {
		take_free(batch, event);
		return NULL;
	}
	if (event->id != EVENT_ALLOC || stack->form != CODEC_STACK_SAME || batch->n ||
	    !consumer->site)
		return stage_event(batch, event, stack);
	/* Nothing was staged: the consumer's site is that of its stack. */
	why = take_alloc(batch, event);
	consumer->n_events += !why;
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
							staged->numbers[i], staged->hashes[i]);
		if (staged->recent != CODEC_NOT_RECENT)
			keep_change(consumer, staged, path);
	}
	consumer->stack = path[staged->n];
}

/* Returns true if the site of an allocation must be looked up. */
static bool find_stacks(struct batch *batch)
{
	struct ring_consumer *consumer = batch->consumer;
	struct stack_table *stacks = batch->tables->stacks;
	struct heap *heap = batch->tables->heap;
	bool is_known = consumer->site != 0, is_any_unknown = false;

	for (uint32_t i = 0; i < batch->n_frames; i++)
		torsh_stacks_prefetch_row(stacks, batch->hashes[i]);
	for (uint32_t i = 0; i < batch->n_frames; i++)
		torsh_stacks_prefetch_follower(stacks, batch->hashes[i]);
	for (uint32_t i = 0; i < batch->n; i++) {
		struct staged *staged = &batch->items[i];

		if (staged->is_change) {
			follow_change(batch, staged);
			is_known = staged->site != 0;
		}
		staged->stack = staged->has_stack ? consumer->stack : 0;
		if (!staged->is_alloc || !staged->has_stack || is_known)
			continue;
		torsh_site_prefetch(&heap->site_index, staged->stack);
		staged->is_unknown = is_known = is_any_unknown = true;
	}
	return is_any_unknown;
}

/* ---- from stacks to sites -------------------------------------------------------------------- */

static void prefetch_sites(struct batch *batch)
{
	struct heap *heap = batch->tables->heap;

	for (uint32_t i = 0; i < batch->n; i++) {
		if (batch->items[i].is_unknown)
			torsh_site_prefetch_item(&heap->site_index, torsh_heap_site_stacks(heap),
						 batch->items[i].stack);
	}
}

/* Sets the consumer's site. */
static void find_site(struct batch *batch, const struct staged *staged)
{
	struct consumer_change *change = staged->is_change ? staged->change : NULL;
	uint32_t site = torsh_heap_site(batch->tables->heap, staged->stack);

	batch->consumer->site = site;
	/* A later change of the batch may have replaced this one. */
	if (change && change->n && change->path[change->n - 1] == staged->stack)
		change->site = site;
}

/* Give each event its stack or site. */
static void take_sites(struct batch *batch)
{
	struct ring_consumer *consumer = batch->consumer;
	struct heap *heap = batch->tables->heap;

	for (uint32_t i = 0; i < batch->n; i++) {
		const struct staged *staged = &batch->items[i];

		if (staged->is_change)
			consumer->site = staged->site;
		if (staged->event == NO_EVENT)
			continue;
		if (!staged->is_alloc) {
			consumer->events[staged->event].stack_or_site = staged->stack;
			continue;
		}
		if (staged->is_unknown)
			find_site(batch, staged);
		consumer->events[staged->event].stack_or_site =
			staged->has_stack ? consumer->site : 0;
		torsh_site_totals_prefetch(&heap->totals, &heap->sites[consumer->site]);
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static inline bool has_room(const struct batch *batch)
{
	return batch->n < BATCH_EVENTS && batch->n_frames <= BATCH_FRAMES - CODEC_STACK_IDS;
}

/* Decode events until the batch is full. Returns true if there may be more. */
static bool fill_batch(struct batch *batch, const char **why)
{
	struct ring_consumer *consumer = batch->consumer;
	const uint8_t *at = consumer->bytes + consumer->begin,
		      *end = consumer->bytes + consumer->end;
	struct codec_stack stack;
	struct event event;
	bool has_more = true;

	batch->n = batch->n_frames = 0;
	while (has_room(batch)) {
		long n = 0;

		if (at < end && consumer->n_events < RING_CONSUMER_EVENTS)
			n = torsh_codec_decode(&consumer->codec, at, (size_t)(end - at), &event,
					       &stack);
		if (n < 0)
			*why = "it sent bytes that are no event";
		else if (n > 0)
			*why = take_event(batch, &event, &stack);
		/*
		 * Copies end at event boundaries; an event is cut only if the ring was not copied
		 * whole.
		 */
		has_more = n > 0 && !*why;
		if (!has_more)
			break;
		consumer->n_decoded++;
		at += n;
	}
	consumer->begin = (uint32_t)(at - consumer->bytes);
	return has_more;
}

/* Not initialised whole: its arrays are large. */
static void start_batches(struct batch *batch, struct ring_consumer *consumer,
			  struct consumer_tables *tables)
{
	batch->consumer = consumer;
	batch->tables = tables;
}

static void decode(struct ring_consumer *consumer, struct consumer_tables *tables)
{
	struct batch batch;
	const char *why = NULL;
	bool has_more;

	start_batches(&batch, consumer, tables);
	do {
		has_more = fill_batch(&batch, &why);
		if (find_stacks(&batch))
			prefetch_sites(&batch);
		take_sites(&batch);
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
