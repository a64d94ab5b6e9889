/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From intervals, in which a thread is in something, to segments: one thing at each moment. */
#include "tools/analysis/critical/lanes.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* Of several that hold, the first is the segment's. */
enum layer {
	LAYER_SYNC,
	LAYER_COLLECTIVE,
	LAYER_GC,
	LAYER_DATA_WAIT,
	LAYER_LOAD,
	LAYER_WAIT,
	LAYER_OPERATOR,
	N_LAYERS
};

struct interval {
	uint64_t begin_ns, end_ns;
	uint32_t thread;
	enum layer layer;
	struct segment is;
};

struct intervals {
	struct interval *items;
	size_t n;
};

static enum critical_kind kind_of(enum step_part part)
{
	switch (part) {
	case PART_GC:
		return CRITICAL_GC;
	case PART_DATA:
		return CRITICAL_DATA;
	case PART_GIL:
		return CRITICAL_GIL;
	case PART_LOCKS:
		return CRITICAL_LOCKS;
	case PART_IO:
		return CRITICAL_IO;
	case PART_OTHER_WAITS:
		return CRITICAL_SLEEP;
	default:
		return CRITICAL_OPERATORS;
	}
}

static enum layer layer_of(const struct thread_stay *stay)
{
	if (stay->part == PART_GC)
		return LAYER_GC;
	if (stay->part == PART_DATA)
		return LAYER_DATA_WAIT;
	return stay->wait ? LAYER_WAIT : LAYER_OPERATOR;
}

static void add(struct intervals *all, const struct collected *collected, uint32_t thread,
		uint64_t begin_ns, uint64_t end_ns, enum layer layer, struct segment is)
{
	begin_ns = begin_ns > collected->from_ns ? begin_ns : collected->from_ns;
	end_ns = end_ns < collected->to_ns ? end_ns : collected->to_ns;
	if (begin_ns < end_ns && thread < collected->process->n_threads)
		all->items[all->n++] = (struct interval){.begin_ns = begin_ns,
							 .end_ns = end_ns,
							 .thread = thread,
							 .layer = layer,
							 .is = is};
}

static void add_hosts(struct intervals *all, const struct collected *collected,
		      const struct host_interval *items, size_t n, enum layer layer,
		      enum critical_kind kind, const char *name)
{
	for (size_t i = 0; i < n; i++)
		add(all, collected, items[i].thread, items[i].begin_ns, items[i].end_ns, layer,
		    (struct segment){.kind = kind, .name = name});
}

/* A thread's own signal handler may end its wait, too: nothing is learnt from that. */
static bool has_waker(const struct collected *collected, const struct thread_stay *stay)
{
	return stay->waker && stay->waker <= collected->process->n_threads &&
	       stay->waker - 1 != stay->thread;
}

static void add_all(struct intervals *all, const struct collected *collected)
{
	const struct thread_stays *stays = &collected->stays;

	for (size_t i = 0; i < stays->n; i++) {
		const struct thread_stay *stay = &stays->items[i];

		add(all, collected, stay->thread, stay->begin_ns, stay->end_ns, layer_of(stay),
		    (struct segment){.kind = kind_of(stay->part),
				     .name = torsh_timeline_label(collected->process, stay->name),
				     .wait = stay->wait,
				     .is_waker_recorded = has_waker(collected, stay),
				     .waker = stay->waker - 1,
				     .waker_ns = stay->woken_ns});
	}
	add_hosts(all, collected, collected->loads, collected->n_loads, LAYER_LOAD, CRITICAL_DATA,
		  "loading data");
	add_hosts(all, collected, collected->collectives, collected->n_collectives,
		  LAYER_COLLECTIVE, CRITICAL_COLLECTIVES, NULL);
	for (size_t i = 0; i < collected->n_syncs; i++) {
		const struct device_sync *sync = &collected->syncs[i];

		add(all, collected, sync->call.thread, sync->call.begin_ns, sync->call.end_ns,
		    LAYER_SYNC,
		    (struct segment){.kind = CRITICAL_SYNC, .name = sync->call.name, .sync = sync});
	}
}

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void append(struct lane *lane, const struct segment *is, uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns >= end_ns)
		return;
	lane->segments = torsh_array_reserve(lane->segments, lane->n, &lane->n_room,
					     sizeof(*lane->segments));
	lane->segments[lane->n] = *is;
	lane->segments[lane->n].begin_ns = begin_ns;
	lane->segments[lane->n++].end_ns = end_ns;
}

static void append_gap(struct lane *lane, const struct collected *collected, uint64_t begin_ns,
		       uint64_t end_ns)
{
	bool is_gap = !collected->has_waits && end_ns - begin_ns >= GAP_NS_MIN;

	append(lane, &(struct segment){.kind = is_gap ? CRITICAL_GAPS : CRITICAL_PYTHON}, begin_ns,
	       end_ns);
}

/* What is open on each layer: until when, and what; last: what the last segment is of. */
struct open {
	uint64_t end_ns[N_LAYERS];
	const struct segment *is[N_LAYERS], *last;
};

/* Something that begins below what is open doesn't end that. */
static void append_open(struct lane *lane, struct open *open, int layer, uint64_t begin_ns,
			uint64_t end_ns)
{
	if (lane->n && open->last == open->is[layer] &&
	    lane->segments[lane->n - 1].end_ns == begin_ns)
		lane->segments[lane->n - 1].end_ns = end_ns;
	else
		append(lane, open->is[layer], begin_ns, end_ns);
	open->last = open->is[layer];
}

/* Append what is open from *at_ns on until until_ns, and what follows as it ends. */
static void advance(struct lane *lane, const struct collected *collected, struct open *open,
		    uint64_t *at_ns, uint64_t until_ns)
{
	while (*at_ns < until_ns) {
		uint64_t end_ns = until_ns;
		int top = 0;

		while (top < N_LAYERS && open->end_ns[top] <= *at_ns)
			top++;
		if (top == N_LAYERS) {
			append_gap(lane, collected, *at_ns, until_ns);
			open->last = NULL;
			*at_ns = until_ns;
			return;
		}
		end_ns = open->end_ns[top] < end_ns ? open->end_ns[top] : end_ns;
		append_open(lane, open, top, *at_ns, end_ns);
		*at_ns = end_ns;
	}
}

/* Intervals of one layer on one thread follow each other; of two that overlap the later counts. */
static void make_segments(struct lane *lane, const struct collected *collected,
			  const struct interval *items, size_t n)
{
	struct open open = {.end_ns = {0}};
	uint64_t at_ns = lane->begin_ns;

	for (size_t i = 0; i < n; i++) {
		advance(lane, collected, &open, &at_ns, items[i].begin_ns);
		open.end_ns[items[i].layer] = items[i].end_ns;
		open.is[items[i].layer] = &items[i].is;
	}
	advance(lane, collected, &open, &at_ns, lane->end_ns);
}

/* The main thread is in the whole time; others from their start, or from what they did first. */
static void set_bounds(struct lane *lane, const struct lanes *lanes, const struct interval *items,
		       size_t n)
{
	const struct collected *collected = lanes->collected;
	const struct recorded_thread *thread = &collected->process->threads[lane->thread];
	bool has_end = thread->is_known && thread->end_ns && thread->end_ns < collected->to_ns;

	lane->begin_ns = collected->from_ns;
	lane->end_ns = collected->to_ns;
	if (lane->thread == lanes->main)
		return;
	lane->is_begun = thread->is_known && thread->start_ns > collected->from_ns;
	lane->begin_ns = lane->is_begun ? thread->start_ns : collected->from_ns;
	if (n && (!lane->is_begun || items[0].begin_ns < lane->begin_ns))
		lane->begin_ns = items[0].begin_ns;
	lane->end_ns = lane->begin_ns;
	for (size_t i = 0; i < n; i++)
		lane->end_ns = items[i].end_ns > lane->end_ns ? items[i].end_ns : lane->end_ns;
	if (has_end && thread->end_ns > lane->end_ns)
		lane->end_ns = thread->end_ns;
	if (lane->woke_ns > lane->end_ns)
		lane->end_ns = lane->woke_ns;
}

/* A thread that ends a wait is there, whatever it does. */
static void find_wakes(struct lanes *lanes)
{
	const struct collected *collected = lanes->collected;

	for (size_t i = 0; i < collected->stays.n; i++) {
		const struct thread_stay *stay = &collected->stays.items[i];
		struct lane *waker;

		if (!has_waker(collected, stay))
			continue;
		lanes->has_wakers = true;
		waker = &lanes->items[stay->waker - 1];
		if (stay->woken_ns > waker->woke_ns && stay->woken_ns < collected->to_ns)
			waker->woke_ns = stay->woken_ns;
	}
}

static int compare_ends(const void *a, const void *b)
{
	const struct operator_end *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static void collect_ends(struct lanes *lanes)
{
	const struct thread_stays *stays = &lanes->collected->stays;

	lanes->ends = torsh_need_items(NULL, 0, stays->n + 1, sizeof(*lanes->ends));
	for (size_t i = 0; i < stays->n; i++) {
		const struct thread_stay *stay = &stays->items[i];

		if (stay->part == PART_OPERATORS)
			lanes->ends[lanes->n_ends++] =
				(struct operator_end){.begin_ns = stay->begin_ns,
						      .end_ns = stay->end_ns,
						      .thread = stay->thread,
						      .is_backward = stay->is_backward};
	}
	if (lanes->n_ends)
		qsort(lanes->ends, lanes->n_ends, sizeof(*lanes->ends), compare_ends);
}

void torsh_lanes_make(struct lanes *lanes, const struct collected *collected, uint32_t main)
{
	struct intervals all = {.items = torsh_need_items(NULL, 0,
							  collected->stays.n + collected->n_loads +
								  collected->n_collectives +
								  collected->n_syncs + 1,
							  sizeof(*all.items))};
	size_t from = 0;

	*lanes = (struct lanes){
		.collected = collected, .n = collected->process->n_threads, .main = main};
	lanes->items = torsh_need_items(NULL, 0, lanes->n + 1, sizeof(*lanes->items));
	add_all(&all, collected);
	find_wakes(lanes);
	if (all.n)
		qsort(all.items, all.n, sizeof(*all.items), compare_intervals);
	for (uint32_t thread = 0; thread < lanes->n; thread++) {
		struct lane *lane = &lanes->items[thread];
		size_t to = from;

		while (to < all.n && all.items[to].thread == thread)
			to++;
		lane->thread = thread;
		set_bounds(lane, lanes, all.items + from, to - from);
		if (to > from || thread == main || lane->is_begun)
			make_segments(lane, collected, all.items + from, to - from);
		from = to;
	}
	free(all.items);
	collect_ends(lanes);
}

void torsh_lane_cut(struct lanes *lanes, uint32_t thread, uint64_t at_ns)
{
	struct lane *lane = &lanes->items[thread];

	if (thread >= lanes->n || at_ns < lane->begin_ns || at_ns > lane->end_ns)
		return;
	lane->cuts = torsh_array_reserve(lane->cuts, lane->n_cuts, &lane->cuts_room,
					 sizeof(*lane->cuts));
	lane->cuts[lane->n_cuts++] = at_ns;
}

struct segment *torsh_lane_at(const struct lane *lane, uint64_t at_ns)
{
	size_t low = 0, high = lane->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lane->segments[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lane->n && lane->segments[low].begin_ns <= at_ns ? &lane->segments[low] : NULL;
}

void torsh_lanes_free(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n; i++) {
		free(lanes->items[i].segments);
		free(lanes->items[i].cuts);
	}
	free(lanes->items);
	free(lanes->ends);
	*lanes = (struct lanes){0};
}
