/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/c10d_source.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/memory/whatif/result_shape.h"

#define PENDING_MAX 256u

/* c10d::Work's range is named "BACKEND:collective". */
static bool is_work(const struct span *span)
{
	static const char *const backends[] = {"gloo:", "nccl:", "mpi:", "ucc:", "xccl:", "hccl:"};
	const char *name = torsh_span_name(span);

	if (span->kind != SPAN_OPERATOR || span->scope != OP_USER)
		return false;
	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
		if (strncmp(name, backends[i], strlen(backends[i])) == 0)
			return true;
	}
	return false;
}

bool torsh_c10d_is_communication(const struct span *span)
{
	return torsh_span_is_collective(span) || is_work(span);
}

static uint64_t element_bytes(const struct input *tensor)
{
	return tensor ? torsh_input_item_bytes(tensor) : 0;
}

static void push_open(struct c10d_source *source, const struct span *span, size_t collective,
		      bool is_its_work)
{
	source->open = torsh_array_reserve(source->open, source->n_open, &source->open_room,
					   sizeof(*source->open));
	source->open[source->n_open++] = (struct c10d_open){
		.ordinal = span->ordinal, .collective = collective, .is_work = is_its_work};
}

/* ---- works ----------------------------------------------------------------------------------- */

static void remove_pending(struct c10d_source *source, size_t i)
{
	memmove(&source->pending[i], &source->pending[i + 1],
		(source->n_pending - i - 1) * sizeof(*source->pending));
	source->n_pending--;
}

static void add_pending(struct c10d_source *source, size_t collective)
{
	if (source->n_pending == PENDING_MAX)
		remove_pending(source, 0);
	source->pending = torsh_array_reserve(source->pending, source->n_pending,
					      &source->pending_room, sizeof(*source->pending));
	source->pending[source->n_pending++] = collective;
}

/* Whether "_allgather_base" is the operator of "all_gather": underscores don't count. */
static bool is_work_of(const char *operator_name, const char *work)
{
	while (*operator_name == '_')
		operator_name++;
	for (; *work; work++) {
		if (*work == '_')
			continue;
		while (*operator_name == '_')
			operator_name++;
		if (*operator_name++ != *work)
			return false;
	}
	return true;
}

static void begin_work(struct c10d_source *source, const struct span *span)
{
	const char *name = strchr(torsh_span_name(span), ':') + 1;

	for (size_t i = 0; i < source->n_pending; i++) {
		size_t collective = source->pending[i];
		struct rank_collective *of = &source->all->items[collective];

		if (!is_work_of(of->name, name))
			continue;
		of->flags &= ~(uint32_t)FOLD_SAMPLE_ENDS;
		push_open(source, span, collective, true);
		remove_pending(source, i);
		return;
	}
}

void torsh_c10d_begin(struct c10d_source *source, const struct span *span, uint64_t n_operators)
{
	struct collective read;
	struct rank_collective added;
	uint64_t elements;

	if (is_work(span)) {
		begin_work(source, span);
		return;
	}
	if (!torsh_collectives_read(&source->read, span, &read))
		return;
	elements = read.in_elements > read.out_elements ? read.in_elements : read.out_elements;
	added = (struct rank_collective){
		.group = torsh_rank_collectives_group(source->all, read.group),
		.name = torsh_rank_collectives_text(source->all, read.name, read.n_name),
		.backend = read.group->backend
				   ? torsh_rank_collectives_text(source->all, read.group->backend,
								 strlen(read.group->backend))
				   : NULL,
		.bytes = elements * element_bytes(read.tensor),
		.group_size = read.group->n_ranks,
		.issued_ns = span->start_ns,
		.entered_ns = span->start_ns,
		.n_operators = n_operators,
	};
	added.is_message =
		strncmp(added.name, "send", 4) == 0 || strncmp(added.name, "recv", 4) == 0;
	if (torsh_collective_joins(added.name))
		added.flags |= FOLD_SAMPLE_JOINS;
	source->n_over_nccl += read.group->backend && strstr(read.group->backend, "nccl");
	push_open(source, span, torsh_rank_collectives_add(source->all, &added), false);
	add_pending(source, source->all->n - 1);
}

/* The work's end counts; the operator's does as long as no work has begun. */
static void end_open(struct c10d_source *source, const struct c10d_open *open, uint64_t end_ns)
{
	struct rank_collective *of = &source->all->items[open->collective];
	bool has_work = true;

	for (size_t i = 0; i < source->n_pending; i++)
		has_work &= source->pending[i] != open->collective;
	if ((has_work && !open->is_work) || of->flags & FOLD_SAMPLE_ON_DEVICE)
		return;
	of->end_ns = end_ns;
	of->flags |= FOLD_SAMPLE_ENDS;
}

void torsh_c10d_end(struct c10d_source *source, const struct span *span)
{
	for (size_t i = source->n_open; i-- > 0;) {
		if (source->open[i].ordinal != span->ordinal)
			continue;
		if (!span->is_cut)
			end_open(source, &source->open[i], span->end_ns);
		memmove(&source->open[i], &source->open[i + 1],
			(source->n_open - i - 1) * sizeof(*source->open));
		source->n_open--;
		return;
	}
}

void torsh_c10d_event(struct c10d_source *source, const struct recorded_process *process,
		      const struct event *event)
{
	if (event->id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&source->read.groups, process, &event->process_group);
}

uint64_t torsh_c10d_launch(const struct c10d_source *source, const struct enclosing_spans *around)
{
	for (const struct span *span = around->in_operator; source->n_open && span;
	     span = torsh_span_outer_operator(span)) {
		if (!torsh_span_is_collective(span))
			continue;
		for (size_t i = 0; i < source->n_open; i++) {
			if (source->open[i].ordinal == span->ordinal)
				return source->open[i].collective + 1;
		}
	}
	return 0;
}

void torsh_c10d_kernel(struct c10d_source *source, size_t collective,
		       const struct activity_record *kernel)
{
	struct rank_collective *of = &source->all->items[collective];
	uint64_t end_ns = kernel->begin_ns + kernel->duration_ns;
	bool is_first = !(of->flags & FOLD_SAMPLE_ON_DEVICE);

	if (is_first || kernel->begin_ns < of->entered_ns)
		of->entered_ns = kernel->begin_ns;
	if (is_first || end_ns > of->end_ns)
		of->end_ns = end_ns;
	of->flags |= FOLD_SAMPLE_ON_DEVICE | FOLD_SAMPLE_ENDS;
}

void torsh_c10d_free(struct c10d_source *source)
{
	torsh_groups_free(&source->read.groups);
	free(source->open);
	free(source->pending);
	*source = (struct c10d_source){0};
}
