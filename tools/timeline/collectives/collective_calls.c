/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/collectives/collective_calls.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

const char *const torsh_collective_kind_names[] = {"collective", "send", "receive", "put",  "get",
						   "update",	 "sync", "read",    "write"};

struct call_key {
	uint32_t process, number;
};

/* Bytes of an element, by the names of PROTOCOL.md; 0: unknown. */
static uint64_t element_bytes(const char *type, size_t n)
{
	static const struct {
		const char *type;
		uint64_t bytes;
	} types[] = {
		{"float32", 4},	  {"float16", 2},	{"bfloat16", 2},    {"float64", 8},
		{"int64", 8},	  {"int32", 4},		{"int16", 2},	    {"int8", 1},
		{"uint8", 1},	  {"bool", 1},		{"complex64", 8},   {"complex128", 16},
		{"complex32", 4}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].type) == n && !strncmp(types[i].type, type, n))
			return types[i].bytes;
	return 0;
}

static struct collective_call *find_call(struct collective_calls *calls,
					 const struct recorded_process *process, uint32_t number)
{
	struct call_key key = {process->number, number};
	const struct hash_entry *entry = torsh_hash_map_find(&calls->numbers, &key, sizeof(key));

	return entry ? &calls->items[entry->value] : NULL;
}

/* The group with that number, and how many of its name the process had before. */
static const struct process_group *find_group(const struct process_groups *groups,
					      const struct recorded_process *process,
					      uint32_t number, uint32_t *instance)
{
	const struct process_group *found = NULL;

	for (size_t i = 0; i < groups->n && !found; i++)
		if (groups->items[i].process == process && groups->items[i].number == number)
			found = &groups->items[i];
	*instance = 0;
	for (size_t i = 0; found && &groups->items[i] != found; i++)
		*instance += groups->items[i].process == process && groups->items[i].name &&
			     found->name && !strcmp(groups->items[i].name, found->name);
	return found;
}

/* What the operator moved, which is around the event. */
static void describe(struct collective_calls *calls, struct collective_call *call,
		     const struct span *operator)
{
	struct collective moved;
	uint64_t bytes;

	if (!operator|| !torsh_collectives_read(&calls->operators, operator, & moved))
		return;
	call->call_ns = operator->start_ns;
	call->name = moved.name;
	call->n_name = moved.n_name;
	if (!moved.tensor) {
		call->has_bytes = true;
		return;
	}
	call->dtype = moved.tensor->text;
	call->n_dtype = moved.tensor->n_type;
	bytes = element_bytes(call->dtype, call->n_dtype);
	call->has_bytes = bytes != 0;
	call->in_bytes = call->kind == COLLECTIVE_RECEIVE ? 0 : moved.in_elements * bytes;
	call->out_bytes = call->kind == COLLECTIVE_SEND ? 0 : moved.out_elements * bytes;
}

static void add_call(struct collective_calls *calls, const struct recorded_process *process,
		     const struct timeline_event *event, const struct span *innermost)
{
	const struct event_collective *begun = &event->event.collective;
	struct call_key key = {process->number, begun->number};
	struct collective_call *call;
	const struct process_group *group;

	if (begun->kind >= N_COLLECTIVE_KINDS)
		return;
	calls->items =
		torsh_array_reserve(calls->items, calls->n, &calls->n_room, sizeof(*calls->items));
	call = &calls->items[calls->n];
	*call = (struct collective_call){.process = process,
					 .number = begun->number,
					 .kind = (enum collective_kind)begun->kind,
					 .sequence = begun->sequence,
					 .peer = begun->peer,
					 .tag = begun->tag,
					 .thread = event->thread,
					 .call_ns = event->at_ns};
	group = find_group(&calls->operators.groups, process, begun->group, &call->instance);
	if (group) {
		call->group = group->name;
		call->backend = group->backend;
		call->group_size = group->n_ranks;
		call->own_rank = group->own_rank;
	}
	if (begun->source == COLLECTIVE_BY_C10D)
		describe(calls, call, innermost);
	if (begun->name) {
		call->name = torsh_timeline_label(process, begun->name);
		call->n_name = call->name ? strlen(call->name) : 0;
	}
	torsh_hash_map_put(&calls->numbers, &key, sizeof(key), calls->n++);
}

static void move(struct collective_call *call, const struct event_collective_moved *moved)
{
	call->has_bytes = moved->has_bytes;
	call->in_bytes = moved->in_bytes;
	call->out_bytes = moved->out_bytes;
	if (!moved->is_matched)
		return;
	call->peer = moved->peer;
	call->tag = moved->tag;
	call->sequence = moved->sequence;
}

static void end_call(struct collective_call *call, const struct timeline_event *event)
{
	const struct event_collective_end *end = &event->event.collective_end;

	call->has_end = true;
	call->has_failed = end->has_failed;
	call->end_ns = event->at_ns;
	call->has_begin = end->has_begin;
	call->begin_ns = end->has_begin ? end->begin : 0;
}

static void add_wait(struct collective_call *call, const struct timeline_event *event)
{
	const struct event_collective_wait *wait = &event->event.collective_wait;

	if (!call->n_waits++) {
		call->wait_begin_ns = wait->begin;
		call->wait_thread = event->thread;
	}
	call->wait_ns += wait->duration_ns;
}

/* NCCL's part in it. Several calls that c10d makes of one are added up. */
static void add_nccl(struct collective_call *call, const struct event_nccl_call *event)
{
	if (event->kind != NCCL_COLLECTIVE && event->kind != NCCL_MESSAGE &&
	    event->kind != NCCL_CE_COLLECTIVE)
		return;
	if (event->algorithm)
		call->algorithm = torsh_timeline_label(call->process, event->algorithm);
	if (event->protocol)
		call->protocol = torsh_timeline_label(call->process, event->protocol);
	if (event->channels > call->channels)
		call->channels = event->channels;
	if (event->bytes != UINT64_MAX) {
		call->has_nccl_bytes = true;
		call->nccl_bytes += event->bytes;
	}
}

const struct collective_call *torsh_collective_calls_see(struct collective_calls *calls,
							 const struct recorded_process *process,
							 const struct timeline_event *event,
							 const struct span *innermost)
{
	struct collective_call *call;

	switch (event->event.id) {
	case EVENT_PROCESS_GROUP:
		torsh_groups_add(&calls->operators.groups, process, &event->event.process_group);
		break;
	case EVENT_COLLECTIVE:
		add_call(calls, process, event, innermost);
		break;
	case EVENT_COLLECTIVE_MOVED:
		call = find_call(calls, process, event->event.collective_moved.number);
		if (call)
			move(call, &event->event.collective_moved);
		break;
	case EVENT_COLLECTIVE_END:
		call = find_call(calls, process, event->event.collective_end.number);
		if (call)
			end_call(call, event);
		break;
	case EVENT_NCCL_CALL:
		call = find_call(calls, process, event->event.nccl_call.collective);
		if (call)
			add_nccl(call, &event->event.nccl_call);
		break;
	case EVENT_COLLECTIVE_WAIT:
		call = find_call(calls, process, event->event.collective_wait.number);
		if (call)
			add_wait(call, event);
		return call;
	}
	return NULL;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	torsh_collective_calls_see(context, process, event, innermost);
}

int torsh_collective_calls_read(struct collective_calls *calls, const struct recording *recording,
				struct recorded_process *const *processes, size_t n_processes)
{
	static const struct span_visitor visitor = {.event = see_event};

	return torsh_spans_visit(recording, processes, n_processes, NULL, NULL, &visitor, calls,
				 NULL);
}

void torsh_collective_calls_free(struct collective_calls *calls)
{
	free(calls->items);
	torsh_groups_free(&calls->operators.groups);
	torsh_hash_map_free(&calls->numbers);
	*calls = (struct collective_calls){0};
}

static void put_name(struct json_writer *json, const char *name, const char *text, size_t n)
{
	if (text)
		torsh_json_put_text_n(json, name, text, n);
	else
		torsh_json_put_null(json, name);
}

void torsh_collective_call_put_json(struct json_writer *json, const struct collective_call *call)
{
	bool is_message = call->kind != COLLECTIVE_OF_ALL;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", call->process->number);
	torsh_json_put_u64(json, "number", call->number);
	torsh_json_put_text(json, "kind", torsh_collective_kind_names[call->kind]);
	put_name(json, "name", call->name, call->n_name);
	put_name(json, "dtype", call->dtype, call->n_dtype);
	torsh_json_put_text(json, "group", call->group);
	torsh_json_put_u64(json, "instance", call->instance);
	torsh_json_put_text(json, "backend", call->backend);
	torsh_json_put_known(json, "group_size", call->group_size, call->group_size);
	torsh_json_put_known(json, "group_rank", call->own_rank, call->own_rank - 1);
	torsh_json_put_known(json, "sequence", call->sequence != COLLECTIVE_NO_SEQUENCE,
			     call->sequence);
	torsh_json_put_known(json, "peer", call->peer, call->peer - 1);
	torsh_json_put_known(json, "tag", is_message && call->tag != COLLECTIVE_ANY_TAG, call->tag);
	torsh_json_put_known(json, "in_bytes", call->has_bytes, call->in_bytes);
	torsh_json_put_known(json, "out_bytes", call->has_bytes, call->out_bytes);
	torsh_json_put_text(json, "algorithm", call->algorithm);
	torsh_json_put_text(json, "protocol", call->protocol);
	torsh_json_put_known(json, "channels", call->channels, call->channels);
	torsh_json_put_known(json, "nccl_bytes", call->has_nccl_bytes, call->nccl_bytes);
	torsh_json_put_u64(json, "call_ns", call->call_ns);
	torsh_json_put_known(json, "begin_ns", call->has_begin, call->begin_ns);
	torsh_json_put_known(json, "end_ns", call->has_end, call->end_ns);
	torsh_json_put_u64(json, "waits", call->n_waits);
	torsh_json_put_known(json, "wait_begin_ns", call->n_waits, call->wait_begin_ns);
	torsh_json_put_known(json, "wait_ns", call->n_waits, call->wait_ns);
	torsh_json_put_bool(json, "failed", call->has_failed);
	torsh_json_end_object(json);
}
