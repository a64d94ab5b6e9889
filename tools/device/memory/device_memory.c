/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_memory.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/device/memory/device_pass.h"

#define TENSOR_ON_CUDA 1u

/* ---- one pass over the timeline -------------------------------------------------------------- */

static struct device_process *find_process(struct memory_of_devices *memory,
					   const struct recorded_process *process)
{
	for (size_t i = 0; i < memory->n; i++) {
		if (memory->items[i].process == process)
			return &memory->items[i];
	}
	return NULL;
}

/* Returns the number of the current step plus 1. */
static uint32_t step_at(const struct prepass *prepass, const struct recorded_process *process,
			uint64_t at_ns)
{
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	size_t i = of ? torsh_steps_at(&of->steps, at_ns) : STEP_NONE;

	return i == STEP_NONE ? 0 : (uint32_t)of->steps.items[i].number + 1;
}

struct device_origin torsh_device_origin(const struct prepass *prepass,
					 const struct recorded_process *process,
					 const struct timeline_event *event,
					 const struct span *innermost)
{
	const struct span *span = torsh_span_attributed(innermost);

	return (struct device_origin){
		.at_ns = event->at_ns,
		.thread = event->thread,
		.stack = event->stack,
		.operator= span ? span->name : 0,
		.module = span ? span->module : 0,
		.step = step_at(prepass, process, event->at_ns),
	};
}

static struct device_framework *find_framework(struct device_process *process, uint32_t device)
{
	for (size_t i = 0; i < process->n_frameworks; i++) {
		if (process->frameworks[i].device == device)
			return &process->frameworks[i];
	}
	process->frameworks =
		torsh_array_reserve(process->frameworks, process->n_frameworks,
				    &process->frameworks_room, sizeof(*process->frameworks));
	process->frameworks[process->n_frameworks].device = device;
	return &process->frameworks[process->n_frameworks++];
}

static void see_framework(struct device_process *process, const struct event_tensor *tensor)
{
	struct device_framework *framework;

	if (tensor->device >> 8 != TENSOR_ON_CUDA)
		return;
	framework = find_framework(process, tensor->device & 0xff);
	framework->allocated = tensor->allocated;
	framework->reserved = tensor->reserved;
}

/* Gives each new scope a place. */
static void follow_scopes(struct device_process *process)
{
	while (process->n_places < process->blocks.n_scopes) {
		process->places =
			torsh_array_reserve(process->places, process->n_places,
					    &process->places_room, sizeof(*process->places));
		process->places[process->n_places++] = (struct device_location){0};
	}
}

static const struct device_framework *framework_of(const struct device_process *process,
						   const struct device_scope *scope)
{
	for (size_t i = 0; i < process->n_frameworks && scope->kind == SCOPE_CUDA; i++) {
		if (process->frameworks[i].device == scope->device)
			return &process->frameworks[i];
	}
	return NULL;
}

static void see_peaks(struct device_process *process, uint64_t at_ns)
{
	for (size_t i = 0; i < process->n_places; i++) {
		const struct device_scope *scope = &process->blocks.scopes[i];
		const struct device_framework *framework;
		struct device_location *place = &process->places[i];

		if (scope->bytes < place->peak_bytes ||
		    (scope->bytes == place->peak_bytes &&
		     scope->tensor_bytes <= place->peak_tensor_bytes))
			continue;
		place->peak =
			(struct device_moment){.at_ns = at_ns, .change = process->blocks.n_changes};
		place->peak_bytes = scope->bytes;
		place->peak_n = scope->n;
		place->peak_tensor_bytes = scope->tensor_bytes;
		framework = framework_of(process, scope);
		place->at_peak = framework ? *framework : (struct device_framework){0};
	}
}

static void keep_level(struct device_location *place, uint64_t at_ns, uint64_t bytes)
{
	uint64_t last = place->n_levels ? place->levels[place->n_levels - 1].bytes : 0;

	if (bytes == last)
		return;
	place->levels = torsh_array_reserve(place->levels, place->n_levels, &place->levels_room,
					    sizeof(*place->levels));
	place->levels[place->n_levels++] = (struct device_level){.at_ns = at_ns, .bytes = bytes};
}

static void see_levels(struct device_process *process, uint64_t at_ns)
{
	for (size_t i = 0; i < process->n_places; i++) {
		if (process->blocks.scopes[i].kind == SCOPE_CUDA)
			keep_level(&process->places[i], at_ns, process->blocks.scopes[i].bytes);
	}
}

bool torsh_device_is_joint(const struct device_scope *scope)
{
	return scope->kind == SCOPE_CUDA || scope->kind == SCOPE_MANAGED ||
	       scope->kind == SCOPE_PINNED;
}

/* The heap's highest value since the last change: meanwhile the devices had what they have now. */
static void see_joint(struct device_process *process, const struct event_heap_mark *mark)
{
	uint64_t bytes = mark->peak_bytes;

	for (size_t i = 0; i < process->blocks.n_scopes; i++) {
		if (torsh_device_is_joint(&process->blocks.scopes[i]))
			bytes += process->blocks.scopes[i].bytes;
	}
	if (process->joint.is_known && bytes <= process->joint.bytes)
		return;
	process->joint = (struct device_joint){
		.is_known = true,
		.bytes = bytes,
		.heap_bytes = mark->peak_bytes,
		.at = {.at_ns = mark->peak_ns, .change = process->blocks.n_changes},
	};
	for (size_t i = 0; i < process->n_places; i++)
		process->places[i].joint_bytes = process->blocks.scopes[i].bytes;
}

static void see_room(struct device_process *process, const struct event_device_room *room,
		     uint64_t at_ns)
{
	for (size_t i = 0; i < process->n_places; i++) {
		const struct device_scope *scope = &process->blocks.scopes[i];
		struct device_location *place = &process->places[i];

		if (scope->kind != SCOPE_CUDA || scope->device != room->device)
			continue;
		place->last_room = (struct device_room){
			.is_known = true,
			.at_ns = at_ns,
			.live_bytes = scope->bytes,
			.n_changes = scope->allocs + scope->frees,
			.said = *room,
		};
		place->rooms = torsh_array_reserve(place->rooms, place->n_rooms, &place->rooms_room,
						   sizeof(*place->rooms));
		place->rooms[place->n_rooms++] = place->last_room;
		if (!place->near_peak.is_known || scope->bytes > place->near_peak.live_bytes)
			place->near_peak = place->last_room;
	}
}

static void see_refusal(struct device_process *process, const struct event_device_refused *refused,
			const struct device_origin *origin)
{
	uint32_t scope = torsh_device_blocks_scope(&process->blocks, refused->kind, refused->flags,
						   refused->device);
	struct device_refusal refusal = {.said = *refused,
					 .origin = *origin,
					 .live_bytes = process->blocks.scopes[scope].bytes};
	const struct device_framework *framework =
		framework_of(process, &process->blocks.scopes[scope]);

	follow_scopes(process);
	refusal.has_framework = framework != NULL;
	if (framework)
		refusal.framework = *framework;
	torsh_device_refusals_add(&process->places[scope].refusals, &refusal);
}

/* A framework's allocator failed. */
static void see_out_of_memory(struct device_process *process, const struct event_out_of_memory *out)
{
	uint32_t scope;

	if (out->device >> 8 != TENSOR_ON_CUDA)
		return;
	scope = torsh_device_blocks_scope(&process->blocks, BLOCK_DEVICE, 0, out->device & 0xff);
	follow_scopes(process);
	process->places[scope].refusals.n_given_up++;
}

static void see_change(struct device_process *process, const struct event *event,
		       const struct device_origin *origin)
{
	if (!torsh_device_blocks_take(&process->blocks, event, origin))
		return;
	follow_scopes(process);
	see_peaks(process, origin->at_ns);
	if (process->has_others)
		see_levels(process, origin->at_ns);
}

/* A launch of a graph makes several changes at one time; the heap does not change between them. */
static void see_graphs_change(void *context, const struct event *event,
			      const struct device_origin *origin)
{
	struct device_process *process = context;
	struct event_heap_mark mark = {.peak_bytes = process->heap_bytes, .peak_ns = origin->at_ns};

	see_change(process, event, origin);
	see_joint(process, &mark);
}

static void see_event(void *context, const struct recorded_process *of,
		      const struct timeline_event *event, struct span *innermost)
{
	struct memory_of_devices *memory = context;
	struct device_process *process = find_process(memory, of);
	struct device_origin origin;

	if (!process)
		return;
	switch (event->event.id) {
	case EVENT_HEAP_MARK:
		process->heap_bytes = event->event.heap_mark.heap_bytes;
		see_joint(process, &event->event.heap_mark);
		return;
	case EVENT_DEVICE_ROOM:
		see_room(process, &event->event.device_room, event->at_ns);
		return;
	case EVENT_OUT_OF_MEMORY:
		see_out_of_memory(process, &event->event.out_of_memory);
		return;
	case EVENT_DEVICE_MODE:
		process->has_mode = true;
		process->mode = event->event.device_mode;
		return;
	case EVENT_TENSOR:
		see_framework(process, &event->event.tensor);
		break;
	default:
		break;
	}
	origin = torsh_device_origin(memory->prepass, of, event, innermost);
	if (event->event.id == EVENT_DEVICE_REFUSED)
		see_refusal(process, &event->event.device_refused, &origin);
	see_change(process, &event->event, &origin);
	torsh_device_graphs_take(&process->graphs, &process->blocks, &event->event, &origin,
				 see_graphs_change, process);
}

void torsh_device_memory_visit(const struct memory_of_devices *memory,
			       struct recorded_process *const *processes, size_t n_processes,
			       const struct span_visitor *visitor, void *context)
{
	int rc = torsh_spans_visit(memory->recording, processes, n_processes,
				   memory->prepass->unnested, NULL, visitor, context, NULL);

	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", memory->recording->path,
			  strerror(-rc));
}

/*
 * A process's memory ends with it. A process that ends normally queries the driver immediately
 * before; end_ns is when the writer noticed the end, and by then another process may have the
 * memory.
 */
static void end_levels(const struct device_process *process, struct device_location *place)
{
	bool has_asked = place->last_room.is_known && place->last_room.said.is_asked == ROOM_AT_END;
	uint64_t end_ns = has_asked ? place->last_room.at_ns : process->process->end_ns;

	if (!place->n_levels || !(has_asked || process->process->has_end_ns))
		return;
	if (end_ns < place->levels[place->n_levels - 1].at_ns)
		end_ns = place->levels[place->n_levels - 1].at_ns;
	keep_level(place, end_ns, 0);
}

static void end_process(struct device_process *process)
{
	for (size_t i = 0; i < process->n_places; i++) {
		const struct device_framework *framework =
			framework_of(process, &process->blocks.scopes[i]);

		end_levels(process, &process->places[i]);
		process->places[i].has_framework = framework != NULL;
		if (framework)
			process->places[i].at_end = *framework;
	}
}

void torsh_device_memory_collect(struct memory_of_devices *memory,
				 const struct recording *recording,
				 struct recorded_process *const *processes, size_t n_processes,
				 const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.event = see_event};

	*memory = (struct memory_of_devices){
		.recording = recording, .prepass = prepass, .n = n_processes};
	memory->items = torsh_need_items(NULL, 0, n_processes, sizeof(*memory->items));
	for (size_t i = 0; i < n_processes; i++) {
		memory->items[i].process = processes[i];
		memory->items[i].has_others = n_processes > 1;
		torsh_device_blocks_create(&memory->items[i].blocks);
		torsh_device_graphs_create(&memory->items[i].graphs);
	}
	torsh_device_memory_visit(memory, processes, n_processes, &visitor, memory);
	for (size_t i = 0; i < n_processes; i++)
		end_process(&memory->items[i]);
}

static void free_place(struct device_location *place)
{
	torsh_device_refusals_free(&place->refusals);
	free(place->levels);
	free(place->rooms);
}

void torsh_device_memory_free(struct memory_of_devices *memory)
{
	for (size_t i = 0; i < memory->n; i++) {
		for (size_t k = 0; k < memory->items[i].n_places; k++)
			free_place(&memory->items[i].places[k]);
		torsh_device_blocks_destroy(&memory->items[i].blocks);
		torsh_device_graphs_destroy(&memory->items[i].graphs);
		free(memory->items[i].places);
		free(memory->items[i].frameworks);
	}
	free(memory->items);
	*memory = (struct memory_of_devices){0};
}

size_t torsh_device_place(const struct device_process *process, const char *name)
{
	char buffer[DEVICE_SCOPE_NAME_BYTES];

	for (size_t i = 0; i < process->n_places; i++) {
		if (strcmp(torsh_device_scope_name(&process->blocks.scopes[i], buffer), name) == 0)
			return i;
	}
	return DEVICE_NO_PLACE;
}
