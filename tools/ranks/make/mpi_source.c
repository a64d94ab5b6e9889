/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/mpi_source.h"

#include <string.h>

static const struct process_group *find_group(const struct mpi_source *source, uint32_t number)
{
	for (size_t i = source->groups.n; i-- > 0;) {
		if (source->groups.items[i].number == number)
			return &source->groups.items[i];
	}
	return NULL;
}

static struct rank_collective *find(struct mpi_source *source, uint32_t by, uint32_t number)
{
	const struct hash_entry *entry =
		by == COLLECTIVE_BY_MPI
			? torsh_hash_map_find(&source->numbers, &number, sizeof(number))
			: NULL;

	return entry ? &source->all->items[entry->value] : NULL;
}

static void begin(struct mpi_source *source, const struct recorded_process *process,
		  const struct timeline_event *event, uint64_t n_operators)
{
	const struct event_collective *begun = &event->event.collective;
	const struct process_group *group = find_group(source, begun->group);
	const char *name = torsh_timeline_label(process, begun->name);
	struct rank_collective added;

	/* Without a key no other rank has the same call. */
	if (begun->source != COLLECTIVE_BY_MPI || begun->kind != COLLECTIVE_OF_ALL || !group ||
	    begun->sequence == COLLECTIVE_NO_SEQUENCE || !name)
		return;
	added = (struct rank_collective){
		.group = torsh_rank_collectives_group(source->all, group),
		.name = torsh_rank_collectives_text(source->all, name, strlen(name)),
		.backend = "mpi",
		.sequence = begun->sequence,
		.has_sequence = true,
		.has_wait = true,
		.group_size = group->n_ranks,
		.issued_ns = event->at_ns,
		.entered_ns = event->at_ns,
		.n_operators = n_operators,
	};
	if (torsh_collective_joins(added.name))
		added.flags |= FOLD_SAMPLE_JOINS;
	torsh_hash_map_put(&source->numbers, &begun->number, sizeof(begun->number),
			   torsh_rank_collectives_add(source->all, &added));
}

static void move(struct rank_collective *of, const struct event_collective_moved *moved)
{
	if (of && moved->has_bytes)
		of->bytes = moved->in_bytes > moved->out_bytes ? moved->in_bytes : moved->out_bytes;
}

static void end(struct rank_collective *of, const struct timeline_event *event)
{
	if (!of || event->event.collective_end.has_failed)
		return;
	of->end_ns = event->at_ns;
	of->flags |= FOLD_SAMPLE_ENDS;
}

static void wait(struct rank_collective *of, const struct event_collective_wait *waited)
{
	if (!of)
		return;
	of->wait_begin_ns = waited->begin;
	of->waited_ns = waited->duration_ns;
}

void torsh_mpi_source_event(struct mpi_source *source, const struct recorded_process *process,
			    const struct timeline_event *event, uint64_t n_operators)
{
	const struct event *of = &event->event;

	switch (of->id) {
	case EVENT_PROCESS_GROUP:
		torsh_groups_add(&source->groups, process, &of->process_group);
		break;
	case EVENT_COLLECTIVE:
		begin(source, process, event, n_operators);
		break;
	case EVENT_COLLECTIVE_MOVED:
		move(find(source, of->collective_moved.source, of->collective_moved.number),
		     &of->collective_moved);
		break;
	case EVENT_COLLECTIVE_END:
		end(find(source, of->collective_end.source, of->collective_end.number), event);
		break;
	case EVENT_COLLECTIVE_WAIT:
		wait(find(source, of->collective_wait.source, of->collective_wait.number),
		     &of->collective_wait);
		break;
	}
}

void torsh_mpi_source_free(struct mpi_source *source)
{
	torsh_groups_free(&source->groups);
	torsh_hash_map_free(&source->numbers);
	*source = (struct mpi_source){0};
}
