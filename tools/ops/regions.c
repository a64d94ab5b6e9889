/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/regions.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* A hash table of 64-bit keys, not 0, with removal, so that only open ranges take memory. */
struct map_entry {
	uint64_t key, value, at_ns;
	const struct recorded_process *process;
};

struct map {
	struct map_entry *entries;
	size_t n, n_slots; /* a power of two, at most half of it used */
};

/* Open ranges of one domain and source on a thread, innermost last. */
struct open_stack {
	const struct recorded_process *process;
	struct open_range {
		size_t region;
		uint64_t at_ns;
	} * ranges;
	size_t n, n_room;
};

struct region_tables {
	struct map by_label; /* within one process -> number of the region */
	struct map by_text; /* over all processes -> number of the region */
	struct map threads; /* (region, thread): a set */
	struct map stack_of; /* thread, domain and source -> index of an open_stack */
	struct map started; /* number of a range -> its region and begin */
	struct map thread_names; /* process and tid -> text */
	struct map last_ns; /* process -> time of its last event */
	struct open_stack *stacks;
	size_t n_stacks, stacks_room;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xc2b2ae3d27d4eb4f);

	h = (h ^ h >> 32) * UINT64_C(0x165667b19e3779f9);
	return (h ^ h >> 29) | 1;
}

static size_t place_of(const struct map *map, uint64_t key)
{
	size_t i = key >> 7 & (map->n_slots - 1);

	while (map->entries[i].key && map->entries[i].key != key)
		i = (i + 1) & (map->n_slots - 1);
	return i;
}

static struct map_entry *map_find(const struct map *map, uint64_t key)
{
	struct map_entry *entry = map->n_slots ? &map->entries[place_of(map, key)] : NULL;

	return entry && entry->key ? entry : NULL;
}

static void map_grow(struct map *map)
{
	struct map larger = {.n = map->n, .n_slots = map->n_slots ? map->n_slots * 2 : 256};

	larger.entries = torsh_need_items(NULL, 0, larger.n_slots, sizeof(*larger.entries));
	for (size_t i = 0; i < map->n_slots; i++)
		if (map->entries[i].key)
			larger.entries[place_of(&larger, map->entries[i].key)] = map->entries[i];
	free(map->entries);
	*map = larger;
}

/* Returns the entry of key; if it is new, it has value 0 and *is_new is set. */
static struct map_entry *map_add(struct map *map, uint64_t key, bool *is_new)
{
	struct map_entry *entry;

	if (map->n * 2 >= map->n_slots)
		map_grow(map);
	entry = &map->entries[place_of(map, key)];
	*is_new = !entry->key;
	map->n += *is_new;
	entry->key = key;
	return entry;
}

/* Later entries of the probe sequence move up into the hole, unless they belong after it. */
static void map_remove(struct map *map, struct map_entry *entry)
{
	size_t hole = (size_t)(entry - map->entries), mask = map->n_slots - 1;

	for (size_t i = (hole + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
		size_t own = map->entries[i].key >> 7 & mask;

		if (((i - own) & mask) < ((i - hole) & mask))
			continue;
		map->entries[hole] = map->entries[i];
		hole = i;
	}
	map->entries[hole] = (struct map_entry){0};
	map->n--;
}

const char *torsh_regions_source(uint32_t source)
{
	static const char *const names[] = {[RANGE_BY_TORSH] = "torsh",
					    [RANGE_BY_NVTX] = "nvtx",
					    [RANGE_BY_ITT] = "itt",
					    [RANGE_BY_MODULE] = "module"};

	return source < sizeof(names) / sizeof(*names) ? names[source] : "unknown";
}

/* The identity that an event gives to its region, for all kinds of events. */
struct said {
	enum region_kind kind;
	uint32_t name, domain, category, source; /* labels; source: enum range_source */
};

/* The context of an event. */
struct walk {
	struct regions *regions;
	const struct recorded_process *process;
	const struct timeline_event *event;
	const struct prepass *prepass;
};

static size_t make_region(struct walk *walk, const struct said *said)
{
	struct regions *regions = walk->regions;
	const char *name =
		torsh_intern(&regions->texts, torsh_timeline_label(walk->process, said->name));
	const char *domain =
		torsh_intern(&regions->texts, torsh_timeline_label(walk->process, said->domain));
	const char *category =
		torsh_intern(&regions->texts, torsh_timeline_label(walk->process, said->category));
	uint64_t key = mix(mix(mix(said->kind, said->source), (uintptr_t)name),
			   mix((uintptr_t)domain, (uintptr_t)category));
	struct map_entry *entry;
	bool is_new;

	if (regions->by_thread)
		key = mix(mix(key, walk->process->number), walk->event->thread);
	entry = map_add(&regions->tables->by_text, key, &is_new);
	if (!is_new)
		return entry->value;
	entry->value = regions->n;
	regions->items = torsh_array_reserve(regions->items, regions->n, &regions->n_room,
					     sizeof(*regions->items));
	regions->items[regions->n] = (struct region){
		.kind = said->kind,
		.source = said->source,
		.name = name,
		.domain = domain,
		.category = category,
		.process = regions->by_thread ? walk->process : NULL,
		.thread = walk->event->thread,
	};
	return regions->n++;
}

static size_t find_region(struct walk *walk, const struct said *said)
{
	struct region_tables *tables = walk->regions->tables;
	uint64_t thread = mix(walk->process->number, walk->event->thread);
	uint64_t key = mix(mix(said->kind << 8 | said->source,
			       walk->regions->by_thread ? thread : walk->process->number),
			   mix((uint64_t)said->name << 32 | said->domain, said->category));
	struct map_entry *entry;
	size_t region;
	bool is_new;

	entry = map_find(&tables->by_label, key);
	if (entry) {
		region = entry->value;
	} else {
		region = make_region(walk, said);
		map_add(&tables->by_label, key, &is_new)->value = region;
	}
	map_add(&tables->threads, mix(thread, region), &is_new);
	walk->regions->items[region].n_threads += is_new;
	return region;
}

static struct open_stack *stack_of(struct walk *walk, uint32_t source, uint32_t domain)
{
	struct region_tables *tables = walk->regions->tables;
	uint64_t key = mix(mix(walk->process->number, walk->event->thread),
			   (uint64_t)source << 32 | domain);
	bool is_new;
	struct map_entry *entry = map_add(&tables->stack_of, key, &is_new);

	if (is_new) {
		entry->value = tables->n_stacks;
		tables->stacks = torsh_array_reserve(tables->stacks, tables->n_stacks,
						     &tables->stacks_room, sizeof(*tables->stacks));
		tables->stacks[tables->n_stacks++] = (struct open_stack){.process = walk->process};
	}
	return &tables->stacks[entry->value];
}

static void add_span(const struct walk *walk, size_t number, uint64_t begin_ns, uint64_t end_ns)
{
	struct region *region = &walk->regions->items[number];
	uint64_t ns = end_ns > begin_ns ? end_ns - begin_ns : 0;

	if (!torsh_prepass_has(walk->prepass, walk->process, begin_ns))
		return;
	region->min_ns = region->n && region->min_ns < ns ? region->min_ns : ns;
	region->max_ns = region->max_ns > ns ? region->max_ns : ns;
	region->total_ns += ns;
	region->n++;
}

static void push(struct walk *walk)
{
	const struct event_range_push *push = &walk->event->event.range_push;
	struct said said = {REGION_RANGE, push->name, push->domain, push->category, push->source};
	size_t region = find_region(walk, &said);
	struct open_stack *stack = stack_of(walk, push->source, push->domain);

	stack->ranges = torsh_array_reserve(stack->ranges, stack->n, &stack->n_room,
					    sizeof(*stack->ranges));
	stack->ranges[stack->n++] =
		(struct open_range){.region = region, .at_ns = walk->event->at_ns};
}

static void pop(struct walk *walk)
{
	const struct event_range_pop *pop = &walk->event->event.range_pop;
	struct open_stack *stack = stack_of(walk, pop->source, pop->domain);

	if (!stack->n) {
		walk->regions->n_unpaired_ends++;
		return;
	}
	stack->n--;
	add_span(walk, stack->ranges[stack->n].region, stack->ranges[stack->n].at_ns,
		 walk->event->at_ns);
}

static void start(struct walk *walk)
{
	const struct event_range_start *start = &walk->event->event.range_start;
	struct said said = {REGION_RANGE, start->name, start->domain, start->category,
			    start->source};
	size_t region = find_region(walk, &said);
	bool is_new;
	struct map_entry *entry = map_add(&walk->regions->tables->started,
					  mix(walk->process->number, start->range), &is_new);
	entry->at_ns = walk->event->at_ns;
	entry->process = walk->process;
	entry->value = region;
}

static void end(struct walk *walk)
{
	struct map *started = &walk->regions->tables->started;
	struct map_entry *entry =
		map_find(started, mix(walk->process->number, walk->event->event.range_end.range));

	/* Its source was not requested, so that its begin was ignored. */
	if (!entry) {
		walk->regions->n_unpaired_ends += !walk->regions->has_source;
		return;
	}
	add_span(walk, entry->value, entry->at_ns, walk->event->at_ns);
	map_remove(started, entry);
}

static void see_deferred(struct walk *walk)
{
	const struct event_deferred *deferred = &walk->event->event.deferred;
	const struct said said = {deferred->is_mark ? REGION_MARK : REGION_RANGE, deferred->name,
				  deferred->domain, deferred->category, deferred->source};
	size_t region = find_region(walk, &said);

	/* A mark is a span without a length, of which only the number is read. */
	add_span(walk, region, deferred->begin, deferred->begin + deferred->duration_ns);
}

static void mark(struct walk *walk)
{
	const struct event_mark *mark = &walk->event->event.mark;
	const struct said said = {REGION_MARK, mark->name, mark->domain, mark->category,
				  mark->source};

	size_t region;

	if (!torsh_prepass_has(walk->prepass, walk->process, walk->event->at_ns))
		return;
	/* Before the item is accessed: this may move the items. */
	region = find_region(walk, &said);
	walk->regions->items[region].n++;
}

static double number_of(const struct event_value *value)
{
	double number;

	memcpy(&number, &value->payload, sizeof(number));
	return value->payload_type == PAYLOAD_F64   ? number
	       : value->payload_type == PAYLOAD_I64 ? (double)(int64_t)value->payload
						    : (double)value->payload;
}

static void value(struct walk *walk)
{
	const struct event_value *value = &walk->event->event.value;
	enum region_kind kind = value->kind == VALUE_COUNTER  ? REGION_COUNTER
				: value->kind == VALUE_SAMPLE ? REGION_SAMPLE
							      : REGION_SCALAR;
	struct said said = {kind, value->name, value->domain, 0, value->source};
	size_t found = find_region(walk, &said);
	struct region *region = &walk->regions->items[found];
	double number = number_of(value);

	if (!region->n)
		region->first = region->min = region->max = number;
	region->min = number < region->min ? number : region->min;
	region->max = number > region->max ? number : region->max;
	region->last = number;
	region->sum += number;
	region->n++;
}

static void name_thread(struct walk *walk)
{
	const struct event_thread_name *named = &walk->event->event.thread_name;
	const char *name = torsh_intern(&walk->regions->texts,
					torsh_timeline_label(walk->process, named->name));
	bool is_new;

	map_add(&walk->regions->tables->thread_names, mix(walk->process->number, named->tid),
		&is_new)
		->value = (uintptr_t)name;
}

/* Get the source of an event, if it has one. */
static bool source_of(const struct event *event, uint32_t *source)
{
	switch (event->id) {
	case EVENT_RANGE_PUSH:
		*source = event->range_push.source;
		return true;
	case EVENT_RANGE_POP:
		*source = event->range_pop.source;
		return true;
	case EVENT_RANGE_START:
		*source = event->range_start.source;
		return true;
	case EVENT_MARK:
		*source = event->mark.source;
		return true;
	case EVENT_DEFERRED:
		*source = event->deferred.source;
		return true;
	case EVENT_VALUE:
		*source = event->value.source;
		return true;
	default:
		return false;
	}
}

static bool is_wanted(const struct walk *walk)
{
	uint32_t source;

	return torsh_prepass_of(walk->prepass, walk->process) &&
	       (!walk->regions->has_source || !source_of(&walk->event->event, &source) ||
		source == walk->regions->source);
}

static int visit(void *context, const struct recorded_process *process,
		 const struct timeline_event *event)
{
	struct walk *walk = context;
	bool is_new;

	walk->process = process;
	walk->event = event;
	if (!is_wanted(walk))
		return 0;
	map_add(&walk->regions->tables->last_ns, mix(process->number, 0), &is_new)->at_ns =
		event->at_ns;
	switch (event->event.id) {
	case EVENT_RANGE_PUSH:
		push(walk);
		break;
	case EVENT_RANGE_POP:
		pop(walk);
		break;
	case EVENT_RANGE_START:
		start(walk);
		break;
	case EVENT_RANGE_END:
		end(walk);
		break;
	case EVENT_MARK:
		mark(walk);
		break;
	case EVENT_DEFERRED:
		see_deferred(walk);
		break;
	case EVENT_VALUE:
		value(walk);
		break;
	case EVENT_STEP:
		walk->regions->n_steps++;
		break;
	case EVENT_THREAD_NAME:
		name_thread(walk);
		break;
	}
	return 0;
}

/* A range without an end ends with its process, or when that was last seen. */
static void close_range(struct walk *walk, const struct recorded_process *process, size_t region,
			uint64_t begin_ns)
{
	struct regions *regions = walk->regions;
	const struct map_entry *last = map_find(&regions->tables->last_ns, mix(process->number, 0));
	uint64_t n = regions->items[region].n;

	walk->process = process;
	add_span(walk, region, begin_ns,
		 process->end_ns ? process->end_ns
		 : last		 ? last->at_ns
				 : begin_ns);
	regions->items[region].n_left_open += regions->items[region].n - n;
}

static void close_ranges(struct walk *walk)
{
	const struct region_tables *tables = walk->regions->tables;

	for (size_t i = 0; i < tables->n_stacks; i++) {
		const struct open_stack *stack = &tables->stacks[i];

		for (size_t k = 0; k < stack->n; k++)
			close_range(walk, stack->process, stack->ranges[k].region,
				    stack->ranges[k].at_ns);
	}
	for (size_t i = 0; i < tables->started.n_slots; i++) {
		const struct map_entry *entry = &tables->started.entries[i];

		if (entry->key)
			close_range(walk, entry->process, entry->value, entry->at_ns);
	}
}

/* Drop regions without any remaining call. */
static void drop_empty(struct regions *regions)
{
	size_t n = 0;

	for (size_t i = 0; i < regions->n; i++) {
		if (regions->items[i].n)
			regions->items[n++] = regions->items[i];
	}
	regions->n = n;
}

int torsh_regions_find(struct regions *regions, const struct recording *recording,
		       const struct prepass *prepass)
{
	struct walk walk = {.regions = regions, .prepass = prepass};
	int rc;

	regions->tables = torsh_need_items(NULL, 0, 1, sizeof(*regions->tables));
	rc = torsh_timeline_visit(recording, visit, &walk);
	close_ranges(&walk);
	drop_empty(regions);
	return rc;
}

void torsh_regions_free(struct regions *regions)
{
	struct region_tables *tables = regions->tables;

	for (size_t i = 0; i < tables->n_stacks; i++)
		free(tables->stacks[i].ranges);
	free(tables->stacks);
	free(tables->by_label.entries);
	free(tables->by_text.entries);
	free(tables->threads.entries);
	free(tables->stack_of.entries);
	free(tables->started.entries);
	free(tables->thread_names.entries);
	free(tables->last_ns.entries);
	free(tables);
	free(regions->items);
	torsh_intern_free(&regions->texts);
	*regions = (struct regions){0};
}

const char *torsh_regions_thread_name(const struct regions *regions,
				      const struct recorded_process *process, uint32_t thread)
{
	const struct map_entry *entry;

	if (thread >= process->n_threads)
		return NULL;
	entry = map_find(&regions->tables->thread_names,
			 mix(process->number, process->threads[thread].tid));
	return entry ? (const char *)(uintptr_t)entry->value : process->threads[thread].name;
}
