/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/ranks/ranks_view.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

const struct ranks_phase torsh_ranks_phases[] = {
	{FOLD_PHASE_wall_ns, "step"},
	{FOLD_PHASE_forward_ns, "forward"},
	{FOLD_PHASE_loss_ns, "loss"},
	{FOLD_PHASE_backward_ns, "backward"},
	{FOLD_PHASE_optimizer_ns, "optimizer"},
	{FOLD_PHASE_data_ns, "data"},
	{FOLD_PHASE_other_ns, "other"},
	{FOLD_PHASE_compute_ns, "compute"},
	{FOLD_PHASE_gc_ns, "gc"},
	{FOLD_PHASE_exposed_ns, "exposed communication"},
};
const size_t torsh_ranks_n_phases = sizeof(torsh_ranks_phases) / sizeof(*torsh_ranks_phases);

size_t torsh_ranks_shown(const struct ranks_view *view, size_t n)
{
	return view->limit && view->limit < n ? view->limit : n;
}

uint64_t torsh_ranks_own_ns(const struct job *job, uint32_t rank, uint32_t bucket)
{
	uint64_t n = torsh_job_phase(job, rank, FOLD_PHASE_steps, bucket);
	uint64_t wall = torsh_job_phase(job, rank, FOLD_PHASE_wall_ns, bucket);
	uint64_t exposed = torsh_job_phase(job, rank, FOLD_PHASE_exposed_ns, bucket);

	return n && wall > exposed ? (wall - exposed) / n : 0;
}

static int compare_collectives(const void *a, const void *b)
{
	const struct ranks_collective *x = a, *y = b;
	uint64_t x_ns = x->row->values[FOLD_COLLECTIVES_exposed_ns],
		 y_ns = y->row->values[FOLD_COLLECTIVES_exposed_ns];
	int rc;

	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	rc = (x->row->node > y->row->node) - (x->row->node < y->row->node);
	return rc ? rc : (x->row->sub > y->row->sub) - (x->row->sub < y->row->sub);
}

static const struct job_bandwidth *find_bandwidth(const struct job *job,
						  const struct fold_node *node, uint32_t size_class)
{
	for (size_t i = 0; i < job->n_bandwidths; i++) {
		const struct job_bandwidth *row = &job->bandwidths[i];

		if (row->size_class == size_class &&
		    strcmp(job->texts[row->name], job->fold->texts[node->function]) == 0 &&
		    strcmp(job->texts[row->group], job->fold->texts[node->file]) == 0)
			return row;
	}
	return NULL;
}

size_t torsh_ranks_collectives(const struct job *job, struct ranks_collective **items)
{
	const struct fold_table *table = &job->fold->tables[FOLD_COLLECTIVES];

	*items = torsh_need_items(NULL, 0, table->n, sizeof(**items));
	for (size_t i = 0; i < table->n; i++) {
		const struct fold_node *node = &job->fold->nodes[table->rows[i].node];

		(*items)[i] = (struct ranks_collective){
			.node = node,
			.row = &table->rows[i],
			.bandwidth = find_bandwidth(job, node, table->rows[i].sub)};
	}
	if (table->n)
		qsort(*items, table->n, sizeof(**items), compare_collectives);
	return table->n;
}

size_t torsh_ranks_first_out(const struct job *job, const char **reason)
{
	size_t first = SIZE_MAX;
	double least = 0;

	*reason = "no rank's device reported how much memory it has";
	for (uint32_t i = 0; i < job->n_ranks; i++) {
		struct job_memory memory;

		torsh_job_memory(job, i, &memory);
		if (!memory.has_capacity)
			continue;
		if (first == SIZE_MAX)
			*reason = "no rank's memory grows";
		if (!memory.has_growth || memory.growth <= 0)
			continue;
		if (first == SIZE_MAX || memory.steps_left < least) {
			first = i;
			least = memory.steps_left;
		}
	}
	return first;
}

size_t torsh_ranks_largest(const struct job *job)
{
	size_t largest = SIZE_MAX;
	uint64_t most = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		struct job_memory memory;

		torsh_job_memory(job, i, &memory);
		if (memory.of && memory.peak_bytes > most) {
			most = memory.peak_bytes;
			largest = i;
		}
	}
	return largest;
}
