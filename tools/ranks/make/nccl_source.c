/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/nccl_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NCCL's functions by c10d's names. by_ranks: one rank's part is what is counted. */
static const struct function {
	const char *nccl, *name;
	bool by_ranks;
} functions[] = {
	{"AllReduce", "allreduce", false},
	{"AllGather", "allgather", true},
	{"ReduceScatter", "reduce_scatter", true},
	{"Broadcast", "broadcast", false},
	{"Reduce", "reduce", false},
	{"AlltoAll", "alltoall", true},
};

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; name && i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(functions[i].nccl, name))
			return &functions[i];
	return NULL;
}

/* The communicator's name and hash: names repeat. */
static const char *name_group(struct nccl_source *source,
			      const struct nccl_communicator *communicator)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%.64s%s%016" PRIx64,
			 communicator->name ? communicator->name : "",
			 communicator->name ? " " : "", communicator->event.hash);

	return torsh_rank_collectives_text(source->all, text, (size_t)n);
}

static void begin(struct nccl_source *source, const struct nccl_span *span, uint64_t n_operators)
{
	const struct nccl_communicator *communicator =
		torsh_nccl_communicator(&source->spans, span->process, span->communicator);
	const struct function *function = find_function(span->function);
	struct rank_collective added = {.issued_ns = span->start_ns,
					.entered_ns = span->start_ns,
					.n_operators = n_operators};
	uint64_t parts, number = span->number;

	if (!communicator || !communicator->event.hash || !function)
		return;
	parts = function->by_ranks && communicator->event.n_ranks ? communicator->event.n_ranks : 1;
	added.group = name_group(source, communicator);
	added.name =
		torsh_rank_collectives_text(source->all, function->name, strlen(function->name));
	if (!span->has_bytes || __builtin_mul_overflow(span->bytes, parts, &added.bytes))
		added.bytes = 0;
	added.group_size = communicator->event.n_ranks;
	if (torsh_collective_joins(added.name))
		added.flags |= FOLD_SAMPLE_JOINS;
	torsh_hash_map_put(&source->numbers, &number, sizeof(number),
			   torsh_rank_collectives_add(source->all, &added));
}

static void end_channel(struct nccl_source *source, const struct nccl_span *channel)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&source->numbers, &channel->parent, sizeof(channel->parent));
	struct rank_collective *of = entry ? &source->all->items[entry->value] : NULL;
	bool is_first = of && !(of->flags & FOLD_SAMPLE_ENDS);

	if (!of)
		return;
	if (is_first || channel->start_ns < of->entered_ns)
		of->entered_ns = channel->start_ns;
	if (is_first || channel->end_ns > of->end_ns)
		of->end_ns = channel->end_ns;
	of->flags |= FOLD_SAMPLE_ENDS;
}

void torsh_nccl_source_event(struct nccl_source *source, const struct recorded_process *process,
			     const struct timeline_event *event, uint64_t n_operators)
{
	bool is_end;
	const struct nccl_span *span =
		torsh_nccl_spans_see(&source->spans, process, event, &is_end);

	if (!span)
		return;
	if (!is_end && (span->kind == NCCL_COLLECTIVE || span->kind == NCCL_CE_COLLECTIVE))
		begin(source, span, n_operators);
	else if (is_end && span->kind == NCCL_KERNEL_CHANNEL)
		end_channel(source, span);
}

void torsh_nccl_source_free(struct nccl_source *source)
{
	torsh_nccl_spans_free(&source->spans);
	torsh_hash_map_free(&source->numbers);
}
