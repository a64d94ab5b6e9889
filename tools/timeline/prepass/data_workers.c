/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/timeline/prepass/data_workers.h. */
#include "tools/timeline/prepass/data_workers.h"

#include <stdlib.h>

#include "tools/base/die.h"

/* What the calls of a process show. */
struct signs {
	bool is_added; /* its calls were reported */
	bool has_calls;
	bool has_own; /* batches, or a part of a training that no worker has */
	bool has_workers; /* it got batches from workers, then: */
	uint64_t first_batch_ns, last_batch_ns;
};

struct data_workers {
	const struct profile *profile;
	struct signs *signs; /* by place in the profile's processes */
};

struct data_workers *torsh_data_workers_create(const struct profile *profile)
{
	struct data_workers *workers = torsh_need(calloc(1, sizeof(*workers)));

	workers->profile = profile;
	workers->signs = torsh_need_items(NULL, 0, profile->n_processes, sizeof(*workers->signs));
	return workers;
}

void torsh_data_workers_destroy(struct data_workers *workers)
{
	free(workers->signs);
	free(workers);
}

/* The place of the process with that number, or n_processes: they are in the order of their numbers. */
static size_t find_number(const struct profile *profile, uint32_t number)
{
	size_t low = 0, high = profile->n_processes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (profile->processes[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < profile->n_processes && profile->processes[low]->number == number ? low : profile->n_processes;
}

/* What a process was before an exec or a fork, else who has its parent's pid; n_processes: nobody. Always before it. */
static size_t find_parent(const struct profile *profile, size_t child)
{
	const struct profile_process *process = profile->processes[child];
	uint32_t number = process->executed_from ? process->executed_from : process->forked_from;
	size_t i = number ? find_number(profile, number) : profile->n_processes;

	if (i < child)
		return i;
	for (i = child; i-- > 0;) {
		if (profile->processes[i]->pid == process->parent_pid)
			return i;
	}
	return profile->n_processes;
}

void torsh_data_workers_add(struct data_workers *workers, const struct call *call)
{
	size_t i = find_number(workers->profile, call->process->number);
	struct signs *signs = &workers->signs[i];

	signs->has_calls = true;
	signs->has_own = signs->has_own || call->traits & (NAME_DATA | NAME_OPTIMIZER) || call->phase == PHASE_BACKWARD;
	if (!(call->traits & NAME_DATA_OF_WORKERS))
		return;
	if (!signs->has_workers || call->start_ns < signs->first_batch_ns)
		signs->first_batch_ns = call->start_ns;
	if (call->start_ns > signs->last_batch_ns)
		signs->last_batch_ns = call->start_ns;
	signs->has_workers = true;
}

static bool may_be_worker(const struct signs *signs)
{
	return signs->has_calls && !signs->has_own;
}

/* ---- processes that were not among those reported ----------------------------------------------------------------- */

static void see_begin(void *context, struct call *call)
{
	torsh_data_workers_add(context, call);
}

/* Read what the ancestors of possible workers did, as far as nobody reported it. */
static int add_ancestors(struct data_workers *workers)
{
	static const struct calls_visitor visitor = {.begin = see_begin};
	const struct profile *profile = workers->profile;
	struct profile_process **ancestors =
		torsh_need_items(NULL, 0, profile->n_processes, sizeof(struct profile_process *));
	size_t n = 0;
	int rc = 0;

	for (size_t child = 0; child < profile->n_processes; child++) {
		if (!may_be_worker(&workers->signs[child]))
			continue;
		for (size_t i = find_parent(profile, child); i < profile->n_processes; i = find_parent(profile, i)) {
			if (workers->signs[i].is_added)
				continue;
			workers->signs[i].is_added = true;
			ancestors[n++] = profile->processes[i];
		}
	}
	if (n)
		rc = torsh_calls_walk(profile, ancestors, n, NULL, NULL, &visitor, workers, NULL);
	free(ancestors);
	return rc;
}

/* ---- the decision ------------------------------------------------------------------------------------------------- */

/* Does the process live while that one gets batches from workers? */
static bool lives_with(const struct profile_process *process, const struct signs *of)
{
	return of->has_workers && process->start_ns <= of->last_batch_ns &&
	       (!process->has_end_ns || process->end_ns >= of->first_batch_ns);
}

static bool is_worker(const struct data_workers *workers, size_t child)
{
	const struct profile *profile = workers->profile;

	if (!may_be_worker(&workers->signs[child]))
		return false;
	for (size_t i = find_parent(profile, child); i < profile->n_processes; i = find_parent(profile, i)) {
		if (lives_with(profile->processes[child], &workers->signs[i]))
			return true;
	}
	return false;
}

int torsh_data_workers_decide(struct data_workers *workers, struct profile_process *const *processes,
			      size_t n_processes)
{
	int rc;

	for (size_t i = 0; i < n_processes; i++)
		workers->signs[find_number(workers->profile, processes[i]->number)].is_added = true;
	rc = add_ancestors(workers);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n_processes; i++)
		processes[i]->is_data_worker = is_worker(workers, find_number(workers->profile, processes[i]->number));
	return 0;
}
