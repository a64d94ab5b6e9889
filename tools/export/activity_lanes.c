/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/activity_lanes.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"

#define WINDOW 65536u /* activities: one second of devices that report 65,000 kernels per second */

/* An activity in the window, by its times. */
struct place {
	uint64_t begin_ns, end_ns;
	/* arrival order, which breaks ties; compared by difference because it wraps around */
	uint32_t number;
	uint32_t slot;
};

struct stream_lanes {
	struct device_lane key;
	struct device_lane **lanes;
	size_t n, capacity;
};

struct activity_lanes {
	const struct activity_lanes_visitor *visitor;
	void *context;
	struct sparse_array slots; /* of struct device_activity */
	/*
	 * Most activities come in order and are queued in a ring; the others are in a heap, the
	 * earliest at its top.
	 */
	struct sparse_array ring; /* of struct place */
	struct place *heap;
	uint32_t *unused; /* reusable slots */
	size_t heap_room, unused_room;
	uint32_t n_slots, n_ring, first, n_heap, n_unused, n_added;
	uint64_t n_left_out;
	struct hash_map streams; /* of struct stream_lanes */
	struct stream_lanes *last;
	struct hash_map devices; /* of struct device_lane: the first lane of each device */
};

struct activity_lanes *torsh_activity_lanes_create(const struct activity_lanes_visitor *visitor,
						   void *context)
{
	struct activity_lanes *rows = torsh_need(calloc(1, sizeof(*rows)));

	rows->visitor = visitor;
	rows->context = context;
	torsh_sparse_array_create(&rows->slots, sizeof(struct device_activity));
	torsh_sparse_array_create(&rows->ring, sizeof(struct place));
	return rows;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static struct stream_lanes *find_stream(struct activity_lanes *rows,
					const struct device_activity *activity)
{
	const struct activity_record *record = &activity->record;
	const uint64_t key[] = {(uintptr_t)activity->process, record->device, record->context,
				record->stream};
	const struct device_lane *last = rows->last ? &rows->last->key : NULL;
	const struct hash_entry *entry;

	if (last && last->process == activity->process && last->device == record->device &&
	    last->context == record->context && last->stream == record->stream)
		return rows->last;
	entry = torsh_hash_map_find(&rows->streams, key, sizeof(key));
	if (!entry) {
		struct stream_lanes *made = torsh_need(calloc(1, sizeof(*made)));

		made->key = (struct device_lane){.process = activity->process,
						 .device = record->device,
						 .context = record->context,
						 .stream = record->stream};
		entry = torsh_hash_map_put(&rows->streams, key, sizeof(key), (uintptr_t)made);
	}
	return rows->last = (struct stream_lanes *)entry->value;
}

static struct device_lane *add_lane(struct activity_lanes *rows, struct stream_lanes *stream)
{
	const uint64_t device[] = {(uintptr_t)stream->key.process, stream->key.device};
	struct device_lane *lane = torsh_need(malloc(sizeof(*lane)));
	const struct hash_entry *first =
		torsh_hash_map_put(&rows->devices, device, sizeof(device), (uintptr_t)lane);

	*lane = stream->key;
	lane->number = (uint32_t)stream->n;
	lane->device_own = ((const struct device_lane *)first->value)->device_own;
	stream->lanes = torsh_array_reserve(stream->lanes, stream->n, &stream->capacity,
					    sizeof(struct device_lane *));
	stream->lanes[stream->n++] = lane;
	rows->visitor->lane(rows->context, lane);
	return lane;
}

static uint64_t shown_on(const struct device_lane *lane, const struct device_activity *activity)
{
	return lane->last_ns > activity->record.begin_ns ? lane->last_ns
							 : activity->record.begin_ns;
}

/*
 * Returns the first lane that is free at the activity's begin, or nearly so; NULL: there are too
 * many.
 */
static struct device_lane *find_lane(struct activity_lanes *rows,
				     const struct device_activity *activity)
{
	struct stream_lanes *stream = find_stream(rows, activity);

	for (size_t i = 0; i < stream->n; i++) {
		if (shown_on(stream->lanes[i], activity) - activity->record.begin_ns <= OVERLAP_NS)
			return stream->lanes[i];
	}
	return stream->n < DEVICE_LANES_MAX ? add_lane(rows, stream) : NULL;
}

static void put_row(struct activity_lanes *rows, const struct device_activity *activity)
{
	struct device_lane *lane = find_lane(rows, activity);
	uint64_t begin_ns;

	if (!lane) {
		rows->n_left_out++;
		return;
	}
	begin_ns = shown_on(lane, activity);
	lane->last_ns = begin_ns + activity->record.duration_ns;
	rows->visitor->activity(rows->context, activity, lane, begin_ns);
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_before(const struct place *a, const struct place *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns
				      : (int32_t)(a->number - b->number) < 0;
}

static void sift_up(struct place *heap, size_t i, struct place place)
{
	while (i && is_before(&place, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = place;
}

static void sift_down(struct place *heap, size_t n, struct place place)
{
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		child += child + 1 < n && is_before(&heap[child + 1], &heap[child]);
		if (!is_before(&heap[child], &place))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = place;
}

static struct place *in_ring(struct activity_lanes *rows, uint32_t i)
{
	return torsh_sparse_array_at(&rows->ring, (rows->first + i) % WINDOW);
}

static struct place take_from_heap(struct activity_lanes *rows)
{
	struct place first = rows->heap[0];

	if (--rows->n_heap)
		sift_down(rows->heap, rows->n_heap, rows->heap[rows->n_heap]);
	return first;
}

static struct place take_from_ring(struct activity_lanes *rows)
{
	struct place first = *in_ring(rows, 0);

	rows->first = (rows->first + 1) % WINDOW;
	rows->n_ring--;
	return first;
}

/* Write the earliest activity, and make its slot reusable. */
static void take_first(struct activity_lanes *rows)
{
	bool is_in_ring =
		rows->n_ring && (!rows->n_heap || is_before(in_ring(rows, 0), &rows->heap[0]));
	struct place first = is_in_ring ? take_from_ring(rows) : take_from_heap(rows);

	put_row(rows, torsh_sparse_array_find(&rows->slots, first.slot));
	rows->unused = torsh_array_reserve(rows->unused, rows->n_unused, &rows->unused_room,
					   sizeof(*rows->unused));
	rows->unused[rows->n_unused++] = first.slot;
}

static uint32_t take_slot(struct activity_lanes *rows)
{
	if (!rows->n_unused && rows->n_slots < WINDOW)
		return rows->n_slots++;
	if (!rows->n_unused)
		take_first(rows);
	return rows->unused[--rows->n_unused];
}

void torsh_activity_lanes_add(struct activity_lanes *rows, const struct device_activity *activity)
{
	struct place place = {.begin_ns = activity->record.begin_ns,
			      .end_ns = activity->record.begin_ns + activity->record.duration_ns,
			      .number = rows->n_added++};
	struct device_activity *slot;

	place.slot = take_slot(rows);
	slot = torsh_sparse_array_at(&rows->slots, place.slot);
	*slot = *activity;
	if (!rows->n_ring || !is_before(&place, in_ring(rows, rows->n_ring - 1))) {
		*in_ring(rows, rows->n_ring++) = place;
	} else {
		rows->heap = torsh_array_reserve(rows->heap, rows->n_heap, &rows->heap_room,
						 sizeof(*rows->heap));
		sift_up(rows->heap, rows->n_heap++, place);
	}
}

static void free_stream(void *item)
{
	struct stream_lanes *stream = item;

	for (size_t i = 0; i < stream->n; i++)
		free(stream->lanes[i]);
	free(stream->lanes);
	free(stream);
}

uint64_t torsh_activity_lanes_destroy(struct activity_lanes *rows)
{
	uint64_t n_left_out;

	while (rows->n_ring || rows->n_heap)
		take_first(rows);
	n_left_out = rows->n_left_out;
	torsh_hash_map_free(&rows->devices);
	torsh_hash_map_free_values(&rows->streams, free_stream);
	torsh_sparse_array_destroy(&rows->slots);
	torsh_sparse_array_destroy(&rows->ring);
	free(rows->heap);
	free(rows->unused);
	free(rows);
	return n_left_out;
}
