/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/data_workers.h"

#include <stdlib.h>

#include "tools/base/die.h"

/* What the spans of a process indicate. */
struct signs {
	bool is_added; /* its spans have been added */
	bool has_spans;
	bool has_own; /* it makes batches, or runs parts of a training that no worker has */
	bool has_workers; /* it received batches from workers, in the time that follows */
	uint64_t first_batch_ns, last_batch_ns;
};

struct data_workers {
	const struct recording *recording;
	struct signs *signs; /* by index in the recording's processes */
};

struct data_workers *torsh_data_workers_create(const struct recording *recording)
{
	struct data_workers *workers = torsh_need(calloc(1, sizeof(*workers)));

	workers->recording = recording;
	workers->signs = torsh_need_items(NULL, 0, recording->n_processes, sizeof(*workers->signs));
	return workers;
}

void torsh_data_workers_destroy(struct data_workers *workers)
{
	free(workers->signs);
	free(workers);
}

/*
 * Returns the index of the process with that number, or n_processes. Processes are ordered by
 * number.
 */
static size_t find_number(const struct recording *recording, uint32_t number)
{
	size_t low = 0, high = recording->n_processes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (recording->processes[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < recording->n_processes && recording->processes[low]->number == number
		       ? low
		       : recording->n_processes;
}

/*
 * Returns the process before an exec or a fork, else the one with the parent's pid; n_processes:
 * none. Its index is always lower.
 */
static size_t find_parent(const struct recording *recording, size_t child)
{
	const struct recorded_process *process = recording->processes[child];
	uint32_t number = process->executed_from ? process->executed_from : process->forked_from;
	size_t i = number ? find_number(recording, number) : recording->n_processes;

	if (i < child)
		return i;
	for (i = child; i-- > 0;) {
		if (recording->processes[i]->pid == process->parent_pid)
			return i;
	}
	return recording->n_processes;
}

void torsh_data_workers_add(struct data_workers *workers, const struct span *span)
{
	size_t i = find_number(workers->recording, span->process->number);
	struct signs *signs = &workers->signs[i];

	signs->has_spans = true;
	signs->has_own = signs->has_own || span->traits & (NAME_DATA | NAME_OPTIMIZER) ||
			 span->phase == PHASE_BACKWARD;
	if (!(span->traits & NAME_DATA_OF_WORKERS))
		return;
	if (!signs->has_workers || span->start_ns < signs->first_batch_ns)
		signs->first_batch_ns = span->start_ns;
	if (span->start_ns > signs->last_batch_ns)
		signs->last_batch_ns = span->start_ns;
	signs->has_workers = true;
}

static bool may_be_worker(const struct signs *signs)
{
	return signs->has_spans && !signs->has_own;
}

/* ---- processes that were not among those reported -------------------------------------------- */

static void see_begin(void *context, struct span *span)
{
	torsh_data_workers_add(context, span);
}

/* Read the spans of possible workers' ancestors, as far as they have not been added. */
static int add_ancestors(struct data_workers *workers)
{
	static const struct span_visitor visitor = {.begin = see_begin};
	const struct recording *recording = workers->recording;
	struct recorded_process **ancestors = torsh_need_items(NULL, 0, recording->n_processes,
							       sizeof(struct recorded_process *));
	size_t n = 0;
	int rc = 0;

	for (size_t child = 0; child < recording->n_processes; child++) {
		if (!may_be_worker(&workers->signs[child]))
			continue;
		for (size_t i = find_parent(recording, child); i < recording->n_processes;
		     i = find_parent(recording, i)) {
			if (workers->signs[i].is_added)
				continue;
			workers->signs[i].is_added = true;
			ancestors[n++] = recording->processes[i];
		}
	}
	if (n)
		rc = torsh_spans_visit(recording, ancestors, n, NULL, NULL, &visitor, workers,
				       NULL);
	free(ancestors);
	return rc;
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* Returns whether the process lives while the other one receives batches from workers. */
static bool lives_with(const struct recorded_process *process, const struct signs *of)
{
	return of->has_workers && process->start_ns <= of->last_batch_ns &&
	       (!process->has_end_ns || process->end_ns >= of->first_batch_ns);
}

static bool is_worker(const struct data_workers *workers, size_t child)
{
	const struct recording *recording = workers->recording;

	if (!may_be_worker(&workers->signs[child]))
		return false;
	for (size_t i = find_parent(recording, child); i < recording->n_processes;
	     i = find_parent(recording, i)) {
		if (lives_with(recording->processes[child], &workers->signs[i]))
			return true;
	}
	return false;
}

int torsh_data_workers_decide(struct data_workers *workers,
			      struct recorded_process *const *processes, size_t n_processes)
{
	int rc;

	for (size_t i = 0; i < n_processes; i++)
		workers->signs[find_number(workers->recording, processes[i]->number)].is_added =
			true;
	rc = add_ancestors(workers);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n_processes; i++)
		processes[i]->is_data_worker =
			is_worker(workers, find_number(workers->recording, processes[i]->number));
	return 0;
}
