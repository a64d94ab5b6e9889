/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/containers/live_table.h"
#include "tools/base/die.h"

const char *const torsh_tensor_group_names[N_TENSOR_GROUPS] = {
#define GROUP(NAME, name, text) #name,
	TENSOR_GROUPS
#undef GROUP
};

/* The state of a pass for one device. */
struct device_state {
	struct live_table live; /* site: index of the allocation site */
	struct key_index keys; /* of allocation sites */
	uint64_t bytes, n_changes;
	/* from the first pass: the number of the change that made the peak */
	uint64_t peak_bytes, peak_change;
};

struct walker {
	struct tensors *tensors;
	struct device_state *states; /* parallel to tensors->items */
	size_t states_room;
	enum tensor_group group;
	bool is_second;
};

static size_t find_device(struct walker *walker, const struct recorded_process *process,
			  uint32_t device)
{
	struct tensors *tensors = walker->tensors;

	for (size_t i = 0; i < tensors->n; i++) {
		if (tensors->items[i].process == process && tensors->items[i].device == device)
			return i;
	}
	tensors->items = torsh_array_reserve(tensors->items, tensors->n, &tensors->n_room,
					     sizeof(*tensors->items));
	walker->states = torsh_array_reserve(walker->states, tensors->n, &walker->states_room,
					     sizeof(*walker->states));
	tensors->items[tensors->n].process = process;
	tensors->items[tensors->n].device = device;
	torsh_live_create(&walker->states[tensors->n].live);
	torsh_key_index_create(&walker->states[tensors->n].keys);
	return tensors->n++;
}

/* Returns the allocation site of the current allocation, and creates it if it is new. */
_Static_assert(N_PHASES <= 8,
	       "a phase has three bits of a key; labels have 29, more than any recording has");

static uint32_t find_site(struct walker *walker, size_t device, const struct timeline_event *event,
			  const struct span *innermost)
{
	struct tensor_device *of = &walker->tensors->items[device];
	struct device_state *state = &walker->states[device];
	const struct span *span = torsh_span_attributed(innermost);
	uint64_t key =
		walker->group == TENSORS_BY_STACK ? (uint64_t)event->stack + 1
		: span ? ((uint64_t)span->name << 35 | (uint64_t)span->module << 3 | span->phase) +
				 2
		       : 1;
	struct key_slot *slot = torsh_key_index_find(&state->keys, key);
	struct tensor_site *site;

	if (slot->key)
		return slot->number;
	of->sites =
		torsh_array_reserve(of->sites, of->n_sites, &of->holders_room, sizeof(*of->sites));
	site = &of->sites[of->n_sites];
	if (walker->group == TENSORS_BY_STACK) {
		site->stack = event->stack;
	} else if (span) {
		site->operator_name = torsh_span_name(span);
		site->module = torsh_timeline_label(of->process, span->module);
		site->phase = span->phase;
	}
	torsh_key_index_fill(&state->keys, slot, key, (uint32_t)of->n_sites);
	return (uint32_t)of->n_sites++;
}

/* A block is allocated, or freed if is_gone. */
static void change_site(struct walker *walker, size_t device, uint32_t site, uint64_t bytes,
			bool is_gone)
{
	struct tensor_site *of;

	if (!walker->is_second)
		return;
	of = &walker->tensors->items[device].sites[site];
	of->current_blocks += is_gone ? -UINT64_C(1) : 1;
	of->current_bytes += is_gone ? -bytes : bytes;
}

static void take_alloc(struct walker *walker, size_t device, const struct timeline_event *event,
		       const struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct device_state *state = &walker->states[device];
	uint32_t site = walker->is_second ? find_site(walker, device, event, innermost) : 0;
	uint64_t bytes = tensor->bytes <= LIVE_SIZE_MAX ? tensor->bytes : LIVE_SIZE_MAX;
	struct live_block old, block = {.address = tensor->address, .size = bytes, .site = site};

	if (!tensor->address)
		return;
	if (torsh_live_put(&state->live, &block, &old)) {
		/* The free of the old block was lost. */
		state->bytes -= old.size;
		change_site(walker, device, old.site, old.size, true);
	}
	state->bytes += bytes;
	change_site(walker, device, site, bytes, false);
}

static void take_free(struct walker *walker, size_t device, const struct event_tensor *tensor)
{
	struct device_state *state = &walker->states[device];
	struct live_block block;

	if (!tensor->address || !torsh_live_take(&state->live, tensor->address, &block)) {
		walker->tensors->items[device].unknown_frees += !walker->is_second;
		return;
	}
	state->bytes -= block.size;
	change_site(walker, device, block.site, block.size, true);
}

static void see_peak(struct walker *walker, size_t device, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct tensor_device *of = &walker->tensors->items[device];
	struct device_state *state = &walker->states[device];

	state->n_changes++;
	if (!walker->is_second && state->bytes > state->peak_bytes) {
		state->peak_bytes = of->peak_bytes = state->bytes;
		state->peak_change = state->n_changes;
		of->peak_blocks = state->live.n_blocks;
		of->peak_ns = event->at_ns;
		if (torsh_tensor_has_sums(tensor))
			of->at_peak = (struct tensor_sums){.allocated = tensor->allocated,
							   .reserved = tensor->reserved};
	}
	if (!walker->is_second || state->n_changes != state->peak_change)
		return;
	for (size_t i = 0; i < of->n_sites; i++) {
		of->sites[i].blocks = of->sites[i].current_blocks;
		of->sites[i].bytes = of->sites[i].current_bytes;
	}
}

static void count_sums(struct tensor_device *of, const struct event_tensor *tensor, uint64_t at_ns)
{
	uint64_t fragmentation =
		tensor->reserved > tensor->allocated ? tensor->reserved - tensor->allocated : 0;

	of->at_end =
		(struct tensor_sums){.allocated = tensor->allocated, .reserved = tensor->reserved};
	if (fragmentation > of->largest_fragmentation) {
		of->largest_fragmentation = fragmentation;
		of->fragmentation_ns = at_ns;
	}
}

static void count_tensor(struct tensor_device *of, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;

	of->allocs += !tensor->is_free;
	of->frees += tensor->is_free != 0;
	if (!torsh_tensor_has_sums(tensor))
		return;
	count_sums(of, tensor, event->at_ns);
	if (tensor->allocated > of->largest_allocated)
		of->largest_allocated = tensor->allocated;
	if (tensor->reserved > of->largest_reserved) {
		of->largest_reserved = tensor->reserved;
		of->allocated_then = tensor->allocated;
	}
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct walker *walker = context;
	size_t device;

	if (event->event.id == EVENT_OUT_OF_MEMORY && !walker->is_second) {
		device = find_device(walker, process, event->event.out_of_memory.device);
		walker->tensors->items[device].out_of_memory++;
	}
	if (event->event.id != EVENT_TENSOR)
		return;
	device = find_device(walker, process, tensor->device);
	if (!walker->is_second)
		count_tensor(&walker->tensors->items[device], event);
	if (tensor->is_free)
		take_free(walker, device, tensor);
	else
		take_alloc(walker, device, event, innermost);
	see_peak(walker, device, event);
}

static void start_again(struct walker *walker)
{
	for (size_t i = 0; i < walker->tensors->n; i++) {
		struct device_state *state = &walker->states[i];

		walker->tensors->items[i].held_bytes = state->bytes;
		walker->tensors->items[i].held_blocks = state->live.n_blocks;
		torsh_live_destroy(&state->live);
		torsh_live_create(&state->live);
		state->bytes = state->n_changes = 0;
	}
	walker->is_second = true;
}

void torsh_tensors_collect(struct tensors *tensors, enum tensor_group group,
			   const struct recording *recording,
			   struct recorded_process *const *processes, size_t n_processes,
			   const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.event = see_event};
	struct walker walker = {.tensors = tensors, .group = group};
	int rc;

	*tensors = (struct tensors){0};
	rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			       &walker, NULL);
	start_again(&walker);
	if (rc == 0)
		rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL,
				       &visitor, &walker, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	for (size_t i = 0; i < tensors->n; i++) {
		torsh_live_destroy(&walker.states[i].live);
		torsh_key_index_destroy(&walker.states[i].keys);
	}
	free(walker.states);
}

void torsh_tensors_free(struct tensors *tensors)
{
	for (size_t i = 0; i < tensors->n; i++)
		free(tensors->items[i].sites);
	free(tensors->items);
}
