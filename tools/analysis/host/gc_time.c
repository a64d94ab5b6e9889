/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/host/gc_time.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/stack_line.h"
#include "tools/base/containers/array.h"

static void add_run(struct gc_sums *sums, const struct event_python_gc *run, uint64_t step)
{
	uint32_t generation =
		run->generation < GC_GENERATIONS ? run->generation : GC_GENERATIONS - 1;

	sums->n[generation]++;
	sums->ns[generation] += run->duration_ns;
	sums->collected += run->collected;
	sums->uncollectable += run->uncollectable;
	if (run->duration_ns <= sums->longest_ns)
		return;
	sums->longest_ns = run->duration_ns;
	sums->longest_at_ns = run->begin;
	sums->longest_generation = generation;
	sums->longest_step = step;
}

static void add_place(struct gc_time *time, const struct recorded_process *process,
		      const struct timeline_event *event, const struct span *innermost)
{
	uint64_t ns = event->event.python_gc.duration_ns;
	uint64_t key[] = {innermost ? innermost->name : 0, torsh_stack_line(process, event->stack)};
	size_t i = torsh_hash_map_put(&time->known_places, key, sizeof(key), time->n_places)->value;
	struct gc_place *place;

	if (i == time->n_places) {
		time->places = torsh_array_reserve(time->places, time->n_places, &time->places_room,
						   sizeof(*time->places));
		time->places[time->n_places++] = (struct gc_place){
			.operator_name = innermost ? torsh_span_name(innermost) : NULL};
	}
	place = &time->places[i];
	place->ns += ns;
	if (ns < place->longest_ns)
		return;
	place->longest_ns = ns;
	place->stack = event->stack;
}

void torsh_gc_time_add(struct gc_time *time, const struct time_scope *scope,
		       const struct recorded_process *process, const struct timeline_event *event,
		       const struct span *innermost)
{
	const struct event_python_gc *run = &event->event.python_gc;
	size_t interval = torsh_scope_at(scope, run->begin);

	add_run(&time->all, run, 0);
	if (scope->is_of_steps &&
	    (interval == STEP_NONE || interval < scope->first_steady || interval >= scope->n_whole))
		return;
	add_run(&time->steady, run, scope->is_of_steps ? scope->intervals[interval].number : 0);
	add_place(time, process, event, innermost);
}

uint64_t torsh_gc_runs(const struct gc_sums *sums)
{
	uint64_t n = 0;

	for (size_t i = 0; i < GC_GENERATIONS; i++)
		n += sums->n[i];
	return n;
}

uint64_t torsh_gc_ns(const struct gc_sums *sums)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < GC_GENERATIONS; i++)
		ns += sums->ns[i];
	return ns;
}

const struct gc_place *torsh_gc_time_place(const struct gc_time *time)
{
	for (size_t i = 0; i < time->n_places; i++) {
		if (time->places[i].ns * 2 >= torsh_gc_ns(&time->steady))
			return &time->places[i];
	}
	return NULL;
}

void torsh_gc_time_free(struct gc_time *time)
{
	torsh_hash_map_free(&time->known_places);
	free(time->places);
}
