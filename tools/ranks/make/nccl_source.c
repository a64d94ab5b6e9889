/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/nccl_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

#define OF_NCCL (UINT64_C(1) << 63) /* in the value of a launch; below: 1 + its item, or 0 */
#define OF_GROUP (UINT64_C(1) << 62)

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

/* ---- PyTorch's ------------------------------------------------------------------------------- */

static bool has_number(const struct hash_map *map, uint64_t number)
{
	return torsh_hash_map_find(map, &number, sizeof(number)) != NULL;
}

static void put_number(struct hash_map *map, uint64_t number, size_t value)
{
	torsh_hash_map_put(map, &number, sizeof(number), value);
}

/* Whether the call is made by an operator of c10d: itself, or the call that it is the work of. */
static bool is_of_c10d(struct nccl_source *source, const struct nccl_span *span)
{
	if (!span->collective && !has_number(&source->of_c10d, span->parent))
		return false;
	put_number(&source->of_c10d, span->number, 0);
	put_number(&source->c10d_communicators, span->communicator, 0);
	if (span->collective)
		put_number(&source->c10d_collectives, span->collective, 0);
	return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool is_exact(const struct nccl_communicator *communicator)
{
	return communicator->event.version == 0 || communicator->event.version >= 5;
}

/* Returns the index of the collective that begins, SIZE_MAX: it can't be matched with others'. */
static size_t add_item(struct nccl_source *source, const struct nccl_span *span,
		       uint64_t n_operators)
{
	const struct nccl_communicator *communicator =
		torsh_nccl_communicator(&source->spans, span->process, span->communicator);
	const struct function *function = find_function(span->function);
	struct rank_collective added = {.backend = "nccl",
					.issued_ns = span->start_ns,
					.entered_ns = span->start_ns,
					.n_operators = n_operators};
	uint64_t parts;

	if (!communicator || !communicator->event.hash || !function)
		return SIZE_MAX;
	parts = function->by_ranks && communicator->event.n_ranks ? communicator->event.n_ranks : 1;
	added.group = name_group(source, communicator);
	added.name =
		torsh_rank_collectives_text(source->all, function->name, strlen(function->name));
	if (!span->has_bytes || __builtin_mul_overflow(span->bytes, parts, &added.bytes))
		added.bytes = 0;
	added.group_size = communicator->event.n_ranks;
	if (torsh_collective_joins(added.name))
		added.flags |= FOLD_SAMPLE_JOINS;
	source->items = torsh_array_reserve(source->items, source->n_items, &source->items_room,
					    sizeof(*source->items));
	source->items[source->n_items] = (struct nccl_item){.collective = added,
							    .communicator = span->communicator,
							    .is_exact = is_exact(communicator),
							    .previous = SIZE_MAX};
	put_number(&source->numbers, span->number, source->n_items);
	return source->n_items++;
}

static struct nccl_open *find_open(const struct nccl_source *source, uint64_t number)
{
	for (size_t i = source->n_open; number && i-- > 0;) {
		if (source->open[i].number == number)
			return &source->open[i];
	}
	return NULL;
}

static void remove_open(struct nccl_source *source, struct nccl_open *open)
{
	size_t after = source->n_open - (size_t)(open - source->open) - 1;

	memmove(open, open + 1, after * sizeof(*open));
	source->n_open--;
}

static void begin(struct nccl_source *source, const struct nccl_span *span, uint64_t n_operators)
{
	bool is_call = span->kind == NCCL_COLLECTIVE || span->kind == NCCL_CE_COLLECTIVE;
	bool is_group = span->kind == NCCL_GROUP || span->kind == NCCL_GROUP_API;
	size_t item = SIZE_MAX;
	struct nccl_open *group;

	if (span->function && is_of_c10d(source, span))
		return;
	if (!is_call && !is_group && span->kind != NCCL_MESSAGE)
		return;
	if (is_call)
		item = add_item(source, span, n_operators);
	group = find_open(source, span->parent);
	if (group && item != SIZE_MAX) {
		source->items[item].previous = group->item;
		group->item = item;
	}
	source->open = torsh_array_reserve(source->open, source->n_open, &source->open_room,
					   sizeof(*source->open));
	source->open[source->n_open++] = (struct nccl_open){.number = span->number,
							    .parent = span->parent,
							    .thread = span->thread,
							    .is_group = is_group,
							    .item = item};
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* A call of a group is launched at the group's end. */
static void end(struct nccl_source *source, const struct nccl_span *span)
{
	struct nccl_open *open = find_open(source, span->number);

	if (!open)
		return;
	if (!open->is_group && find_open(source, open->parent)) {
		open->has_ended = true;
		return;
	}
	remove_open(source, open);
	for (size_t i = source->n_open; i-- > 0;) {
		if (source->open[i].parent == span->number && source->open[i].has_ended)
			remove_open(source, &source->open[i]);
	}
}

static void extend(struct rank_collective *of, uint64_t begin_ns, uint64_t end_ns)
{
	bool is_first = !(of->flags & FOLD_SAMPLE_ENDS);

	if (is_first || begin_ns < of->entered_ns)
		of->entered_ns = begin_ns;
	if (is_first || end_ns > of->end_ns)
		of->end_ns = end_ns;
	of->flags |= FOLD_SAMPLE_ENDS;
}

static void end_channel(struct nccl_source *source, const struct nccl_span *channel)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&source->numbers, &channel->parent, sizeof(channel->parent));
	struct rank_collective *of = entry ? &source->items[entry->value].collective : NULL;

	if (of && !(of->flags & FOLD_SAMPLE_ON_DEVICE))
		extend(of, channel->start_ns, channel->end_ns);
}

void torsh_nccl_source_event(struct nccl_source *source, const struct recorded_process *process,
			     const struct timeline_event *event, uint64_t n_operators)
{
	bool is_end;
	const struct nccl_span *span =
		torsh_nccl_spans_see(&source->spans, process, event, &is_end);

	if (!span)
		return;
	if (!is_end)
		begin(source, span, n_operators);
	else if (span->kind == NCCL_KERNEL_CHANNEL)
		end_channel(source, span);
	else
		end(source, span);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The innermost call that has not returned; else, at the end of a group, all of the group. */
uint64_t torsh_nccl_source_launch(const struct nccl_source *source, uint32_t thread)
{
	uint64_t group = 0;

	for (size_t i = source->n_open; i-- > 0;) {
		const struct nccl_open *open = &source->open[i];
		uint64_t item = open->item == SIZE_MAX ? 0 : open->item + 1;

		if (open->thread != thread || open->has_ended)
			continue;
		if (!open->is_group)
			return OF_NCCL | item;
		if (!group || !(group & ~(OF_NCCL | OF_GROUP)))
			group = OF_NCCL | OF_GROUP | item;
	}
	return group;
}

static void add_kernel(struct rank_collective *of, const struct activity_record *kernel)
{
	if (!(of->flags & FOLD_SAMPLE_ON_DEVICE))
		of->flags &= ~(uint32_t)FOLD_SAMPLE_ENDS;
	extend(of, kernel->begin_ns, kernel->begin_ns + kernel->duration_ns);
	of->flags |= FOLD_SAMPLE_ON_DEVICE;
}

void torsh_nccl_source_kernel(struct nccl_source *source, uint64_t launch,
			      const struct activity_record *kernel)
{
	size_t i = (launch & ~(OF_NCCL | OF_GROUP)) - 1;

	for (; i < source->n_items; i = source->items[i].previous) {
		struct nccl_item *item = &source->items[i];

		if (!(launch & OF_GROUP)) {
			item->has_kernel = true;
			add_kernel(&item->collective, kernel);
			return;
		}
		if (!item->has_kernel)
			add_kernel(&item->collective, kernel);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

void torsh_nccl_source_finish(struct nccl_source *source, size_t n_c10d)
{
	bool has_hidden = n_c10d > source->c10d_collectives.n;

	for (size_t i = 0; i < source->n_items; i++) {
		const struct nccl_item *item = &source->items[i];

		if (!item->is_exact &&
		    (has_hidden || has_number(&source->c10d_communicators, item->communicator)))
			continue;
		torsh_rank_collectives_add(source->all, &item->collective);
	}
}

void torsh_nccl_source_free(struct nccl_source *source)
{
	torsh_nccl_spans_free(&source->spans);
	torsh_hash_map_free(&source->numbers);
	torsh_hash_map_free(&source->of_c10d);
	torsh_hash_map_free(&source->c10d_communicators);
	torsh_hash_map_free(&source->c10d_collectives);
	free(source->items);
	free(source->open);
	*source = (struct nccl_source){0};
}
