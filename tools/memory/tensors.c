/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/memory/tensors.h. */
#include "tools/memory/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/key_index.h"
#include "tools/base/live_table.h"

const char *const torsh_tensor_group_names[N_TENSOR_GROUPS] = {
#define GROUP(NAME, name, text) #name,
	TENSOR_GROUPS
#undef GROUP
};

/* What a walk knows of a device. */
struct device_state {
	struct live_table live; /* site: index of the holder */
	struct key_index keys; /* of holders */
	uint64_t bytes, n_changes;
	uint64_t peak_bytes, peak_change; /* from the first walk: which change of it made the peak */
};

struct walker {
	struct tensors *tensors;
	struct device_state *states; /* as tensors->items */
	size_t states_room;
	enum tensor_group group;
	bool is_second;
};

static size_t find_device(struct walker *walker, const struct profile_process *process, uint32_t device)
{
	struct tensors *tensors = walker->tensors;

	for (size_t i = 0; i < tensors->n; i++) {
		if (tensors->items[i].process == process && tensors->items[i].device == device)
			return i;
	}
	tensors->items = torsh_need_room(tensors->items, tensors->n, &tensors->n_room, sizeof(*tensors->items));
	walker->states = torsh_need_room(walker->states, tensors->n, &walker->states_room, sizeof(*walker->states));
	tensors->items[tensors->n].process = process;
	tensors->items[tensors->n].device = device;
	torsh_live_create(&walker->states[tensors->n].live);
	torsh_key_index_create(&walker->states[tensors->n].keys);
	return tensors->n++;
}

/* The holder of what is allocated now; made where it is the first. */
_Static_assert(N_PHASES <= 8, "a phase has three bits of a key; labels have 29, more than any recording has");

static uint32_t find_holder(struct walker *walker, size_t device, const struct timeline_event *event,
			    const struct call *innermost)
{
	struct tensor_device *of = &walker->tensors->items[device];
	struct device_state *state = &walker->states[device];
	const struct call *call = torsh_call_telling(innermost);
	uint64_t key = walker->group == TENSORS_BY_STACK ? (uint64_t)event->stack + 1
		       : call ? ((uint64_t)call->name << 35 | (uint64_t)call->module << 3 | call->phase) + 2
			      : 1;
	struct key_slot *slot = torsh_key_index_find(&state->keys, key);
	struct tensor_holder *holder;

	if (slot->key)
		return slot->number;
	of->holders = torsh_need_room(of->holders, of->n_holders, &of->holders_room, sizeof(*of->holders));
	holder = &of->holders[of->n_holders];
	if (walker->group == TENSORS_BY_STACK) {
		holder->stack = event->stack;
	} else if (call) {
		holder->operator_name = torsh_call_name(call);
		holder->module = torsh_timeline_label(of->process, call->module);
		holder->phase = call->phase;
	}
	torsh_key_index_fill(&state->keys, slot, key, (uint32_t)of->n_holders);
	return (uint32_t)of->n_holders++;
}

/* A block comes or goes: is_gone. */
static void change_holder(struct walker *walker, size_t device, uint32_t holder, uint64_t bytes, bool is_gone)
{
	struct tensor_holder *of;

	if (!walker->is_second)
		return;
	of = &walker->tensors->items[device].holders[holder];
	of->current_blocks += is_gone ? -UINT64_C(1) : 1;
	of->current_bytes += is_gone ? -bytes : bytes;
}

static void take_alloc(struct walker *walker, size_t device, const struct timeline_event *event,
		       const struct call *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct device_state *state = &walker->states[device];
	uint32_t holder = walker->is_second ? find_holder(walker, device, event, innermost) : 0;
	uint64_t bytes = tensor->bytes <= LIVE_SIZE_MAX ? tensor->bytes : LIVE_SIZE_MAX;
	struct live_block *block;
	int is_there;

	if (!tensor->address)
		return;
	block = torsh_live_add(&state->live, tensor->address, &is_there);
	if (is_there) {
		/* Its free was lost. */
		state->bytes -= block->size;
		change_holder(walker, device, block->site, block->size, true);
	}
	block->size = bytes;
	block->site = holder;
	state->bytes += bytes;
	change_holder(walker, device, holder, bytes, false);
}

static void take_free(struct walker *walker, size_t device, const struct event_tensor *tensor)
{
	struct device_state *state = &walker->states[device];
	struct live_block *block = tensor->address ? torsh_live_find(&state->live, tensor->address) : NULL;

	if (!block) {
		walker->tensors->items[device].unknown_frees += !walker->is_second;
		return;
	}
	state->bytes -= block->size;
	change_holder(walker, device, block->site, block->size, true);
	torsh_live_remove(&state->live, block);
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
			of->at_peak = (struct tensor_sums){.allocated = tensor->allocated, .reserved = tensor->reserved};
	}
	if (!walker->is_second || state->n_changes != state->peak_change)
		return;
	for (size_t i = 0; i < of->n_holders; i++) {
		of->holders[i].blocks = of->holders[i].current_blocks;
		of->holders[i].bytes = of->holders[i].current_bytes;
	}
}

static void count_sums(struct tensor_device *of, const struct event_tensor *tensor, uint64_t at_ns)
{
	uint64_t fragmentation = tensor->reserved > tensor->allocated ? tensor->reserved - tensor->allocated : 0;

	of->at_end = (struct tensor_sums){.allocated = tensor->allocated, .reserved = tensor->reserved};
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

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
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

void torsh_tensors_collect(struct tensors *tensors, enum tensor_group group, const struct profile *profile,
			   struct profile_process *const *processes, size_t n_processes, const struct survey *survey)
{
	static const struct calls_visitor visitor = {.event = see_event};
	struct walker walker = {.tensors = tensors, .group = group};
	int rc;

	*tensors = (struct tensors){0};
	rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &walker, NULL);
	start_again(&walker);
	if (rc == 0)
		rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &walker,
				      NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	for (size_t i = 0; i < tensors->n; i++) {
		torsh_live_destroy(&walker.states[i].live);
		torsh_key_index_destroy(&walker.states[i].keys);
	}
	free(walker.states);
}

void torsh_tensors_free(struct tensors *tensors)
{
	for (size_t i = 0; i < tensors->n; i++)
		free(tensors->items[i].holders);
	free(tensors->items);
}
