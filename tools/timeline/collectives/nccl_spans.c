/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/collectives/nccl_spans.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* NCCL's number of the state in which a kernel's channel has stopped. */
#define STATE_KERNEL_STOP 22

const char *const torsh_nccl_kind_names[N_NCCL_KINDS] = {
	[NCCL_COLLECTIVE] = "collective",
	[NCCL_MESSAGE] = "message",
	[NCCL_COLLECTIVE_API] = "collective_call",
	[NCCL_MESSAGE_API] = "message_call",
	[NCCL_CE_COLLECTIVE] = "copy_engine_collective",
	[NCCL_GROUP] = "group",
	[NCCL_GROUP_API] = "group_call",
	[NCCL_LAUNCH] = "launch",
	[NCCL_CE_SYNC] = "copy_engine_sync",
	[NCCL_CE_BATCH] = "copy_engine_batch",
	[NCCL_PROXY_OPERATION] = "proxy_operation",
	[NCCL_PROXY_STEP] = "proxy_step",
	[NCCL_NETWORK] = "network",
	[NCCL_KERNEL_CHANNEL] = "kernel_channel",
};

struct span_key {
	uint64_t process, number;
};

const char *torsh_nccl_span_name(const struct nccl_span *span)
{
	return span->function ? span->function : torsh_nccl_kind_names[span->kind];
}

/* ---- Communicators --------------------------------------------------------------------------- */

static struct nccl_communicator *find_communicator(const struct nccl_spans *spans,
						   const struct recorded_process *process,
						   uint32_t number)
{
	for (size_t i = spans->n_communicators; i-- > 0;)
		if (spans->communicators[i].process == process &&
		    spans->communicators[i].event.number == number)
			return &spans->communicators[i];
	return NULL;
}

const struct nccl_communicator *torsh_nccl_communicator(const struct nccl_spans *spans,
							const struct recorded_process *process,
							uint32_t number)
{
	return number ? find_communicator(spans, process, number) : NULL;
}

const char *torsh_nccl_source_name(const struct nccl_communicator *communicator)
{
	return communicator->event.version ? "plugin" : "calls";
}

static void see_communicator(struct nccl_spans *spans, const struct recorded_process *process,
			     const struct event_nccl_communicator *event)
{
	struct nccl_communicator *communicator = find_communicator(spans, process, event->number);

	if (!communicator) {
		spans->communicators = torsh_array_reserve(
			spans->communicators, spans->n_communicators, &spans->communicators_room,
			sizeof(*spans->communicators));
		communicator = &spans->communicators[spans->n_communicators++];
	}
	*communicator = (struct nccl_communicator){
		.process = process,
		.event = *event,
		.name = torsh_timeline_label(process, event->name),
	};
}

/* ---- Begins ---------------------------------------------------------------------------------- */

static bool read_call(struct nccl_span *span, const struct event_nccl_call *call)
{
	const struct recorded_process *process = span->process;

	span->number = call->number;
	span->parent = call->parent;
	span->communicator = call->communicator;
	span->kind = (enum nccl_kind)call->kind;
	span->function = torsh_timeline_label(process, call->function);
	span->datatype = torsh_timeline_label(process, call->datatype);
	span->algorithm = torsh_timeline_label(process, call->algorithm);
	span->protocol = torsh_timeline_label(process, call->protocol);
	span->count = call->count;
	span->has_bytes = call->bytes != UINT64_MAX;
	span->bytes = span->has_bytes ? call->bytes : 0;
	span->root = call->root;
	span->peer = call->peer;
	span->channels = call->channels;
	span->warps = call->warps;
	span->sequence = call->sequence;
	span->stream = call->stream;
	span->is_captured = call->is_captured;
	span->collective = call->collective;
	return call->kind <= NCCL_CE_COLLECTIVE;
}

static bool read_work(struct nccl_span *span, const struct event_nccl_work *work)
{
	span->number = work->number;
	span->parent = work->parent;
	span->communicator = work->communicator;
	span->kind = (enum nccl_kind)work->kind;
	span->is_captured = work->is_captured;
	span->stream = work->stream;
	span->operations = work->operations;
	span->has_bytes = work->kind == NCCL_CE_BATCH;
	span->bytes = work->bytes;
	return work->kind >= NCCL_GROUP && work->kind <= NCCL_CE_BATCH;
}

static bool read_transfer(struct nccl_span *span, const struct event_nccl_transfer *transfer)
{
	span->number = transfer->number;
	span->parent = transfer->parent;
	span->communicator = transfer->communicator;
	span->kind = (enum nccl_kind)transfer->kind;
	span->has_channel = transfer->kind == NCCL_PROXY_OPERATION;
	span->channel = transfer->channel;
	span->peer = transfer->peer;
	span->steps = transfer->steps;
	span->step = transfer->step;
	span->is_send = transfer->is_send;
	span->has_bytes = transfer->kind == NCCL_NETWORK;
	span->bytes = transfer->bytes;
	return transfer->kind >= NCCL_PROXY_OPERATION && transfer->kind <= NCCL_NETWORK;
}

static bool read_kernel(struct nccl_span *span, const struct event_nccl_kernel *kernel)
{
	span->number = kernel->number;
	span->parent = kernel->parent;
	span->communicator = kernel->communicator;
	span->kind = NCCL_KERNEL_CHANNEL;
	span->has_channel = true;
	span->channel = kernel->channel;
	span->device_start_ns = kernel->device_ns;
	return true;
}

static struct nccl_span *begin_span(struct nccl_spans *spans,
				    const struct recorded_process *process,
				    const struct timeline_event *event)
{
	struct nccl_span made = {.process = process,
				 .thread = event->thread,
				 .start_ns = event->at_ns,
				 .sequence = COLLECTIVE_NO_SEQUENCE};
	struct nccl_span *span;
	struct span_key key = {.process = process->number};
	bool is_known =
		event->event.id == EVENT_NCCL_CALL   ? read_call(&made, &event->event.nccl_call)
		: event->event.id == EVENT_NCCL_WORK ? read_work(&made, &event->event.nccl_work)
		: event->event.id == EVENT_NCCL_TRANSFER
			? read_transfer(&made, &event->event.nccl_transfer)
			: read_kernel(&made, &event->event.nccl_kernel);

	key.number = made.number;
	if (!is_known || torsh_hash_map_find(&spans->open, &key, sizeof(key)))
		return NULL;
	span = torsh_need(malloc(sizeof(*span)));
	*span = made;
	torsh_hash_map_put(&spans->open, &key, sizeof(key), (uintptr_t)span);
	return span;
}

/* ---- States and ends ------------------------------------------------------------------------- */

static void see_state(struct nccl_spans *spans, const struct recorded_process *process,
		      const struct event_nccl_state *state)
{
	const struct span_key key = {process->number, state->number};
	const struct hash_entry *entry = torsh_hash_map_find(&spans->open, &key, sizeof(key));
	struct nccl_span *span = entry ? (struct nccl_span *)entry->value : NULL;

	if (!span)
		return;
	if (span->kind == NCCL_KERNEL_CHANNEL && state->state == STATE_KERNEL_STOP) {
		span->device_end_ns = state->value;
	} else if (span->kind == NCCL_PROXY_STEP || span->kind == NCCL_PROXY_OPERATION) {
		/* A sum that grows; some states have none. */
		span->has_bytes |= state->value != 0;
		span->bytes = state->value > span->bytes ? state->value : span->bytes;
	}
}

static struct nccl_span *end_span(struct nccl_spans *spans, const struct recorded_process *process,
				  const struct timeline_event *event)
{
	const struct span_key key = {process->number, event->event.nccl_end.number};
	size_t value;

	if (!torsh_hash_map_remove(&spans->open, &key, sizeof(key), &value))
		return NULL;
	spans->ended = *(struct nccl_span *)value;
	free((void *)value);
	spans->ended.end_ns = event->at_ns;
	spans->ended.end_thread = event->thread;
	return &spans->ended;
}

struct nccl_span *torsh_nccl_spans_see(struct nccl_spans *spans,
				       const struct recorded_process *process,
				       const struct timeline_event *event, bool *is_end)
{
	*is_end = event->event.id == EVENT_NCCL_END;
	switch (event->event.id) {
	case EVENT_NCCL_COMMUNICATOR:
		see_communicator(spans, process, &event->event.nccl_communicator);
		return NULL;
	case EVENT_NCCL_CALL:
	case EVENT_NCCL_WORK:
	case EVENT_NCCL_TRANSFER:
	case EVENT_NCCL_KERNEL:
		return begin_span(spans, process, event);
	case EVENT_NCCL_STATE:
		see_state(spans, process, &event->event.nccl_state);
		return NULL;
	case EVENT_NCCL_END:
		return end_span(spans, process, event);
	default:
		return NULL;
	}
}

static int compare_begins(const void *a, const void *b)
{
	const struct nccl_span *x = *(struct nccl_span *const *)a;
	const struct nccl_span *y = *(struct nccl_span *const *)b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void cut_open(struct nccl_spans *spans)
{
	const struct hash_entry *entry;

	spans->cut = torsh_need_items(NULL, 0, spans->open.n + 1, sizeof(*spans->cut));
	for (size_t at = 0; (entry = torsh_hash_map_next(&spans->open, &at));)
		spans->cut[spans->n_cut++] = (struct nccl_span *)entry->value;
	torsh_hash_map_free(&spans->open);
	qsort(spans->cut, spans->n_cut, sizeof(*spans->cut), compare_begins);
}

struct nccl_span *torsh_nccl_spans_cut(struct nccl_spans *spans)
{
	struct nccl_span *span;

	if (!spans->cut)
		cut_open(spans);
	if (spans->next_cut == spans->n_cut)
		return NULL;
	span = spans->cut[spans->next_cut++];
	span->is_cut = true;
	span->end_thread = span->thread;
	span->end_ns =
		span->process->end_ns > span->start_ns ? span->process->end_ns : span->start_ns;
	return span;
}

void torsh_nccl_spans_free(struct nccl_spans *spans)
{
	for (size_t i = 0; i < spans->n_cut; i++)
		free(spans->cut[i]);
	free(spans->cut);
	torsh_hash_map_free_values(&spans->open, free);
	free(spans->communicators);
	*spans = (struct nccl_spans){0};
}
