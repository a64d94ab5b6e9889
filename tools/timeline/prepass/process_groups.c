/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/process_groups.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

static const char prefix[] = "c10d::";

#define NOTHING UINT32_MAX

/*
 * From torch/csrc/distributed/c10d/Ops.cpp: which input is sent and which is received. A barrier's
 * tensor only selects its device.
 */
static const struct {
	const char *name;
	uint32_t in, out;
} operators[] = {
	{"allreduce_", 0, 0},
	{"allreduce_coalesced_", 0, 0},
	{"broadcast_", 0, 0},
	{"reduce_", 0, 0},
	{"send", 0, 0},
	{"recv_", 0, 0},
	{"recv_any_source_", 0, 0},
	{"barrier", NOTHING, NOTHING},
	{"monitored_barrier_", NOTHING, NOTHING},
	{"allgather_", 1, 0},
	{"_allgather_base_", 1, 0},
	{"allgather_coalesced_", 1, 0},
	{"allgather_into_tensor_coalesced_", 1, 0},
	{"reduce_scatter_", 1, 0},
	{"_reduce_scatter_base_", 1, 0},
	{"reduce_scatter_tensor_coalesced_", 1, 0},
	{"gather_", 1, 0},
	{"gather_into_tensor_", 1, 0},
	{"scatter_", 1, 0},
	{"alltoall_", 1, 0},
	{"alltoall_base_", 1, 0},
};

void torsh_groups_add(struct process_groups *groups, const struct recorded_process *process,
		      const struct event_process_group *event)
{
	groups->items = torsh_array_reserve(groups->items, groups->n, &groups->n_room,
					    sizeof(*groups->items));
	groups->items[groups->n++] = (struct process_group){
		.process = process,
		.number = event->number,
		.name = torsh_timeline_label(process, event->name),
		.description = torsh_timeline_label(process, event->description),
		.backend = torsh_timeline_label(process, event->backend),
		.ranks = torsh_timeline_label(process, event->ranks),
		.n_ranks = event->n_ranks,
		.own_rank = event->own_rank,
	};
}

void torsh_groups_free(struct process_groups *groups)
{
	free(groups->items);
	*groups = (struct process_groups){0};
}

bool torsh_span_is_collective(const struct span *span)
{
	return span->kind == SPAN_OPERATOR &&
	       strncmp(torsh_span_name(span), prefix, sizeof(prefix) - 1) == 0;
}

static const struct process_group *find_group(const struct process_groups *groups,
					      const struct span *span, const struct inputs *inputs)
{
	const struct input *input = NULL;

	for (uint32_t i = 0; i < inputs->n && !input; i++) {
		if (torsh_inputs_get(inputs, i)->kind == INPUT_GROUP)
			input = torsh_inputs_get(inputs, i);
	}
	for (size_t i = 0; input && i < groups->n; i++) {
		if (groups->items[i].process == span->process &&
		    groups->items[i].number == (uint64_t)input->integer)
			return &groups->items[i];
	}
	return NULL;
}

/* Returns the number of elements of a tensor, or of all tensors in nested lists. */
static uint64_t count_elements(const struct input *input, const struct input **tensor)
{
	uint64_t n = 0;

	for (uint32_t i = 0; input && i <= (input->kind == INPUT_LIST ? input->n_items : 0); i++) {
		if (input[i].kind == INPUT_TENSOR && !*tensor)
			*tensor = &input[i];
		n += torsh_input_elements(&input[i]);
	}
	return n;
}

bool torsh_collective_read(struct collective *collective, const struct process_groups *groups,
			   const struct span *span, const struct inputs *inputs)
{
	const char *name = torsh_span_name(span) + sizeof(prefix) - 1;

	*collective = (struct collective){.group = find_group(groups, span, inputs), .name = name};
	if (!collective->group || !inputs->is_whole)
		return false;
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		if (strcmp(operators[i].name, name))
			continue;
		collective->n_name = strlen(name);
		collective->n_name -= name[collective->n_name - 1] == '_';
		collective->in_elements = count_elements(torsh_inputs_get(inputs, operators[i].in),
							 &collective->tensor);
		collective->out_elements = count_elements(
			torsh_inputs_get(inputs, operators[i].out), &collective->tensor);
		return true;
	}
	return false;
}

bool torsh_collectives_read(struct collectives *collectives, const struct span *span,
			    struct collective *collective)
{
	if (!collectives->groups.n || !torsh_span_is_collective(span))
		return false;
	torsh_inputs_parse(&collectives->inputs, torsh_timeline_label(span->process, span->inputs));
	return torsh_collective_read(collective, &collectives->groups, span, &collectives->inputs);
}
