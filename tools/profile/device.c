/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/device.h. */
#include "tools/profile/device.h"

#include <stdlib.h>

#include "tools/die.h"

const char *const torsh_device_what_names[N_DEVICE_WHATS] = {"kernel", "copy", "memset"};

const char *torsh_copy_name(uint32_t kind)
{
	static const char *const names[N_COPY_KINDS] = {
		[COPY_HTOD] = "HtoD", [COPY_DTOH] = "DtoH", [COPY_HTOA] = "HtoA", [COPY_ATOH] = "AtoH",
		[COPY_ATOA] = "AtoA", [COPY_ATOD] = "AtoD", [COPY_DTOA] = "DtoA", [COPY_DTOD] = "DtoD",
		[COPY_HTOH] = "HtoH", [COPY_PTOP] = "PtoP",
	};

	return kind < N_COPY_KINDS && names[kind] ? names[kind] : "?";
}

/* What the three have in common. */
#define COMMON(event)                                                                                               \
	.begin_ns = (event)->begin, .duration_ns = (event)->duration_ns, .correlation = (event)->correlation,       \
	.device = (event)->device, .context = (event)->context, .stream = (event)->stream, .graph = (event)->graph, \
	.node = (event)->node

bool torsh_device_span(const struct event *event, struct device_span *span)
{
	switch (event->id) {
	case EVENT_KERNEL:
		*span = (struct device_span){.what = DEVICE_KERNEL, .name = event->kernel.name, COMMON(&event->kernel)};
		return true;
	case EVENT_COPY:
		*span = (struct device_span){.what = DEVICE_COPY,
					     .kind = event->copy.kind,
					     .bytes = event->copy.bytes,
					     COMMON(&event->copy)};
		return true;
	case EVENT_MEMSET:
		*span = (struct device_span){
			.what = DEVICE_MEMSET, .bytes = event->memset.bytes, COMMON(&event->memset)};
		return true;
	default:
		return false;
	}
}

#undef COMMON

void torsh_device_work_create(struct device_work *work)
{
	*work = (struct device_work){0};
	torsh_key_index_create(&work->index);
	torsh_graph_nodes_create(&work->captured);
}

void torsh_device_work_destroy(struct device_work *work)
{
	torsh_key_index_destroy(&work->index);
	torsh_graph_nodes_destroy(&work->captured);
	free(work->items);
}

void torsh_device_work_add(struct device_work *work, const struct event *event, bool is_in_operator)
{
	struct device_span span;
	struct key_slot *slot;

	if (event->id == EVENT_DEVICE_MODE && event->device_mode.mode != DEVICE_HOST_ONLY)
		work->is_seen = true;
	if (event->id == EVENT_GRAPH_NODE)
		torsh_graph_nodes_see(&work->captured, &event->graph_node, is_in_operator);
	if (!torsh_device_span(event, &span))
		return;
	work->is_seen = true;
	if (!span.correlation || torsh_graph_nodes_find(&work->captured, span.node))
		return;
	slot = torsh_key_index_find(&work->index, span.correlation);
	if (slot->key) {
		work->items[slot->number] += span.duration_ns;
		return;
	}
	work->items = torsh_need_room(work->items, work->n, &work->n_room, sizeof(*work->items));
	work->items[work->n] = span.duration_ns;
	torsh_key_index_fill(&work->index, slot, span.correlation, (uint32_t)work->n++);
}

uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation)
{
	const struct key_slot *slot = correlation ? torsh_key_index_find(&work->index, correlation) : NULL;

	return slot && slot->key ? work->items[slot->number] : 0;
}
