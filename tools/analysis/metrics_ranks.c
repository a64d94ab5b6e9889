/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ranks that wait for each other: in a collective, the last rank to arrive spends the shortest
 * time, and the others spend as much more as they wait. Only durations are compared, so that
 * clocks need not agree.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/analysis/metrics.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"

void torsh_metrics_collective(struct metrics_process *of, const struct device_activity *activity)
{
	const char *name = torsh_timeline_label(activity->process, activity->record.name);

	/* A send has only two participants: not all ranks run the same ones. */
	if (!of->process->rank || strstr(name, "SendRecv"))
		return;
	of->collectives = torsh_array_reserve(of->collectives, of->n_collectives,
					      &of->collectives_room, sizeof(*of->collectives));
	of->collectives[of->n_collectives++] =
		(struct metrics_collective){.begin_ns = activity->record.begin_ns,
					    .duration_ns = activity->record.duration_ns,
					    .name = XXH64(name, strlen(name), 0)};
}

static int compare_begins(const void *a, const void *b)
{
	const struct metrics_collective *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool is_same_sequence(const struct metrics_process *a, const struct metrics_process *b)
{
	if (a->n_collectives != b->n_collectives)
		return false;
	for (size_t i = 0; i < a->n_collectives; i++) {
		if (a->collectives[i].name != b->collectives[i].name)
			return false;
	}
	return true;
}

/* ---- ranks with the same collectives --------------------------------------------------------- */

struct group {
	struct metrics_process **ranks;
	size_t n;
};

/* Collect `first` and the later processes that ran the same collectives. */
static void find_group(struct group *group, struct metrics *metrics, size_t first)
{
	group->n = 0;
	for (size_t i = first; i < metrics->n; i++) {
		struct metrics_process *of = &metrics->processes[i];

		if (of->n_collectives && !of->waiting.reason && !of->waiting.n &&
		    is_same_sequence(&metrics->processes[first], of))
			group->ranks[group->n++] = of;
	}
}

static const char *why_not_compared(const struct group *group)
{
	if (group->n == 1)
		return "no other rank with the same collectives was recorded";
	for (size_t i = 0; i < group->n; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(group->ranks[i]->process->rank,
				   group->ranks[k]->process->rank) == 0)
				return "several processes have the same rank";
		}
	}
	return NULL;
}

/* Returns the rank with the shortest time in a collective: it arrived last. */
static size_t last_of(const struct group *group, size_t collective)
{
	size_t last = 0;

	for (size_t i = 1; i < group->n; i++) {
		if (group->ranks[i]->collectives[collective].duration_ns <
		    group->ranks[last]->collectives[collective].duration_ns)
			last = i;
	}
	return last;
}

/* waited_ns: how long each rank (row) waited for each other one (column). */
static void compare_group(const struct group *group, uint64_t *waited_ns)
{
	for (size_t c = 0; c < group->ranks[0]->n_collectives; c++) {
		size_t last = last_of(group, c);
		uint64_t least_ns = group->ranks[last]->collectives[c].duration_ns;

		for (size_t i = 0; i < group->n; i++)
			waited_ns[i * group->n + last] +=
				group->ranks[i]->collectives[c].duration_ns - least_ns;
	}
	for (size_t i = 0; i < group->n; i++) {
		struct metrics_waiting *waiting = &group->ranks[i]->waiting;
		uint64_t most_ns = 0;

		waiting->n = group->ranks[i]->n_collectives;
		for (size_t k = 0; k < group->n; k++) {
			uint64_t ns = waited_ns[i * group->n + k];

			waiting->ns += ns;
			if (ns > most_ns)
				waiting->late = group->ranks[k]->process;
			most_ns = ns > most_ns ? ns : most_ns;
		}
	}
}

static void settle_group(const struct group *group)
{
	const char *reason = why_not_compared(group);
	uint64_t *waited_ns;

	for (size_t i = 0; i < group->n; i++)
		group->ranks[i]->waiting.reason = reason;
	if (reason)
		return;
	waited_ns = torsh_need_items(NULL, 0, group->n * group->n, sizeof(*waited_ns));
	compare_group(group, waited_ns);
	free(waited_ns);
}

void torsh_metrics_ranks(struct metrics *metrics)
{
	struct group group = {.ranks = torsh_need_items(NULL, 0, metrics->n, sizeof(*group.ranks))};

	for (size_t i = 0; i < metrics->n; i++) {
		struct metrics_process *of = &metrics->processes[i];

		if (of->n_collectives)
			qsort(of->collectives, of->n_collectives, sizeof(*of->collectives),
			      compare_begins);
		else
			of->waiting.reason = of->process->rank
						     ? "no collectives were seen on its devices"
						     : "no launcher gave the process a rank";
	}
	for (size_t i = 0; i < metrics->n; i++) {
		if (metrics->processes[i].waiting.reason || metrics->processes[i].waiting.n)
			continue;
		find_group(&group, metrics, i);
		settle_group(&group);
	}
	free(group.ranks);
}
