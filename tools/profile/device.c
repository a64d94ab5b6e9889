/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/device.h. */
#include "tools/profile/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

const char *const torsh_device_what_names[N_DEVICE_WHATS] = {"kernel", "copy", "memset", "graph"};

const char *torsh_copy_name(uint32_t kind)
{
	static const char *const names[N_COPY_KINDS] = {
		[COPY_HTOD] = "HtoD", [COPY_DTOH] = "DtoH",	    [COPY_HTOA] = "HtoA",
		[COPY_ATOH] = "AtoH", [COPY_ATOA] = "AtoA",	    [COPY_ATOD] = "AtoD",
		[COPY_DTOA] = "DtoA", [COPY_DTOD] = "DtoD",	    [COPY_HTOH] = "HtoH",
		[COPY_PTOP] = "PtoP", [COPY_PREFETCH] = "prefetch", [COPY_DECOMPRESSION] = "decompression",
	};

	return kind < N_COPY_KINDS && names[kind] ? names[kind] : "?";
}

/* What the three have in common. */
#define COMMON(event)                                                                                \
	.is_timed = true, .begin_ns = (event)->begin, .duration_ns = (event)->duration_ns,           \
	.correlation = (event)->correlation, .device = (event)->device, .context = (event)->context, \
	.stream = (event)->stream, .graph = (event)->graph, .node = (event)->node

static void make_submission(const struct event_submission *submission, struct device_span *span)
{
	static const enum device_what whats[] = {
		[SUBMISSION_KERNEL] = DEVICE_KERNEL,
		[SUBMISSION_COPY] = DEVICE_COPY,
		[SUBMISSION_MEMSET] = DEVICE_MEMSET,
		[SUBMISSION_GRAPH] = DEVICE_GRAPH,
	};

	*span = (struct device_span){
		.what = submission->what < N_DEVICE_WHATS ? whats[submission->what] : DEVICE_KERNEL,
		.name = submission->name,
		.kind = submission->kind,
		.bytes = submission->bytes,
		.is_timed = submission->is_timed != 0,
		.begin_ns = submission->begin,
		.duration_ns = submission->is_timed ? submission->duration_ns : 0,
		.correlation = submission->correlation,
		.device = submission->device,
		.context = submission->context,
		.stream = submission->stream,
	};
}

bool torsh_device_untimed(const struct event *event, struct device_span *span)
{
	if (event->id != EVENT_SUBMISSION || event->submission.is_timed)
		return false;
	make_submission(&event->submission, span);
	return true;
}

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
	case EVENT_SUBMISSION:
		/* Anything else that has times is an event of its own. */
		if (!event->submission.is_timed || event->submission.what != SUBMISSION_GRAPH)
			return false;
		make_submission(&event->submission, span);
		return true;
	default:
		return false;
	}
}

#undef COMMON

const char *torsh_memory_name(uint32_t memory)
{
	static const char *const names[] = {
		[MEMORY_UNKNOWN] = "Unknown",
		[MEMORY_PAGEABLE] = "Pageable",
		[MEMORY_PINNED] = "Pinned",
		[MEMORY_DEVICE] = "Device",
		[MEMORY_ARRAY] = "Array",
		[MEMORY_MANAGED] = "Managed",
		[MEMORY_DEVICE_STATIC] = "Device Static",
		[MEMORY_MANAGED_STATIC] = "Managed Static",
	};

	return names[memory < sizeof(names) / sizeof(*names) ? memory : MEMORY_UNKNOWN];
}

bool torsh_device_title(const struct event *event, char *out)
{
	if (event->id == EVENT_COPY)
		snprintf(out, DEVICE_TITLE_BYTES, "Memcpy %s (%s -> %s)", torsh_copy_name(event->copy.kind),
			 torsh_memory_name(event->copy.from), torsh_memory_name(event->copy.to));
	else if (event->id == EVENT_MEMSET)
		snprintf(out, DEVICE_TITLE_BYTES, "Memset (%s)", torsh_memory_name(event->memset.to));
	else if (event->id == EVENT_SUBMISSION)
		snprintf(out, DEVICE_TITLE_BYTES, "CUDA graph");
	return event->id != EVENT_KERNEL;
}

/* ---- sums by launch ---------------------------------------------------------------------------------------------- */

#define PAGE_NUMBERS 64u /* correlations that share a page: the bits of its mask */

/* Those of a page that came, in their order: numbers are dense, but not all of them are launches. */
struct device_page {
	uint64_t present;
	struct device_caused *items;
};

/* Operators that were marked count on their own; launches hardly come so far. */
static uint32_t accelerated_key(uint32_t number)
{
	return number | UINT32_C(1) << 31;
}

void torsh_device_work_create(struct device_work *work)
{
	*work = (struct device_work){0};
	torsh_key_index_create(&work->index);
	torsh_graph_nodes_create(&work->captured);
}

void torsh_device_work_destroy(struct device_work *work)
{
	for (size_t i = 0; i < work->n; i++)
		free(work->pages[i].items);
	torsh_key_index_destroy(&work->index);
	torsh_graph_nodes_destroy(&work->captured);
	free(work->pages);
}

static uint64_t page_key(uint32_t correlation)
{
	return correlation / PAGE_NUMBERS + UINT64_C(1);
}

static struct device_page *find_page(struct device_work *work, uint32_t correlation)
{
	struct key_slot *slot = torsh_key_index_find(&work->index, page_key(correlation));

	if (slot->key)
		return &work->pages[slot->number];
	work->pages = torsh_need_room(work->pages, work->n, &work->n_room, sizeof(*work->pages));
	torsh_key_index_fill(&work->index, slot, page_key(correlation), (uint32_t)work->n);
	return &work->pages[work->n++];
}

/* Where in its page's items a number is, or would be. */
static size_t place_in(const struct device_page *page, uint32_t correlation)
{
	uint64_t before = (UINT64_C(1) << correlation % PAGE_NUMBERS) - 1;

	return (size_t)__builtin_popcountll(page->present & before);
}

static struct device_caused *find_caused(struct device_work *work, uint32_t correlation)
{
	struct device_page *page = find_page(work, correlation);
	size_t n = (size_t)__builtin_popcountll(page->present), place = place_in(page, correlation);
	uint64_t bit = UINT64_C(1) << correlation % PAGE_NUMBERS;

	if (page->present & bit)
		return &page->items[place];
	if ((n & (n - 1)) == 0) /* none, or as many as there is room for */
		page->items = torsh_need(reallocarray(page->items, n ? 2 * n : 1, sizeof(*page->items)));
	memmove(page->items + place + 1, page->items + place, (n - place) * sizeof(*page->items));
	page->items[place] = (struct device_caused){0};
	page->present |= bit;
	return &page->items[place];
}

void torsh_device_work_add(struct device_work *work, const struct event *event, bool is_in_operator)
{
	struct device_caused *caused;
	struct device_span span;

	if (event->id == EVENT_DEVICE_MODE && event->device_mode.mode != DEVICE_HOST_ONLY)
		work->is_seen = true;
	if (event->id == EVENT_LAUNCH) {
		work->n_launches++;
		if (event->launch.correlation)
			find_caused(work, event->launch.correlation)->is_launched = true;
	}
	if (event->id == EVENT_GRAPH_NODE)
		torsh_graph_nodes_see(&work->captured, &event->graph_node, is_in_operator);
	if (event->id == EVENT_OP_ACCELERATED) {
		work->is_seen = true;
		find_caused(work, accelerated_key(event->op_accelerated.number))->ns += event->op_accelerated.own_ns;
	}
	if (torsh_device_untimed(event, &span) && span.correlation)
		find_caused(work, span.correlation)->n_untimed++;
	if (!torsh_device_span(event, &span))
		return;
	work->is_seen = true;
	work->n_spans++;
	if (!span.correlation)
		return;
	caused = find_caused(work, span.correlation);
	/* What was captured in an operator is that one's, not the launch's. */
	if (!torsh_graph_nodes_find(&work->captured, span.node))
		caused->ns += span.duration_ns;
	caused->n += caused->n < CAUSED_MAX;
}

struct device_caused torsh_device_work_by(const struct device_work *work, uint32_t correlation)
{
	const struct key_slot *slot = correlation ? torsh_key_index_find(&work->index, page_key(correlation)) : NULL;
	const struct device_page *page = slot && slot->key ? &work->pages[slot->number] : NULL;

	if (!page || !(page->present >> correlation % PAGE_NUMBERS & 1))
		return (struct device_caused){0};
	return page->items[place_in(page, correlation)];
}

uint64_t torsh_device_work_marked(const struct device_work *work, uint32_t number)
{
	return torsh_device_work_of(work, accelerated_key(number));
}

uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation)
{
	return torsh_device_work_by(work, correlation).ns;
}
