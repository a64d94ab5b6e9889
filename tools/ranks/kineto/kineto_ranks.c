/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/kineto/kineto_ranks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/memory.h"
#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/kineto/kineto_fold.h"
#include "tools/ranks/make/rank_row.h"

/* Of a rank with fewer than two steps of its own: HTA looks at the steps of all ranks. */
struct one_step {
	bool is_there;
	struct breakdown without_it;
};

struct reading {
	struct kineto_ranks *ranks;
	struct one_step *one_steps; /* by item */
	struct hash_map step_names; /* of all ranks */
	size_t next;
	pthread_mutex_t lock; /* guards all of this */
};

static void keep(struct reading *reading, const struct kineto_trace *trace, struct fold *fold)
{
	const struct hash_entry *entry;
	size_t at = 0;

	pthread_mutex_lock(&reading->lock);
	while ((entry = torsh_hash_map_next(&trace->step_names, &at)))
		torsh_hash_map_put_text(&reading->step_names, entry->key, 0);
	torsh_fold_merge(reading->ranks->fold, fold);
	pthread_mutex_unlock(&reading->lock);
}

static void read_one(struct reading *reading, size_t i)
{
	struct kineto_rank *rank = &reading->ranks->items[i];
	struct fold *fold = torsh_fold_create();
	struct kineto_trace trace;
	char error[512];

	if (!torsh_kineto_read(&trace, rank->path, error, sizeof(error)))
		torsh_die("%s", error);
	rank->has_rank = trace.has_rank;
	rank->rank = trace.rank;
	rank->n_events = trace.n_events;
	rank->n_steps = trace.n_steps;
	rank->row = torsh_kineto_fold(fold, &trace);
	torsh_breakdown_make(&rank->breakdown, &trace, trace.step_names.n > 1 && trace.has_step);
	if (trace.step_names.n == 1 && trace.has_step) {
		reading->one_steps[i].is_there = true;
		torsh_breakdown_make(&reading->one_steps[i].without_it, &trace, true);
	}
	keep(reading, &trace, fold);
	torsh_kineto_free(&trace);
	torsh_fold_destroy(fold);
	torsh_memory_trim();
}

static void *read_some(void *data)
{
	struct reading *reading = data;

	for (;;) {
		size_t i;

		pthread_mutex_lock(&reading->lock);
		i = reading->next++;
		pthread_mutex_unlock(&reading->lock);
		if (i >= reading->ranks->n)
			return NULL;
		read_one(reading, i);
	}
}

static void read_all(struct reading *reading, size_t n_jobs)
{
	pthread_t *threads = torsh_need_items(NULL, 0, n_jobs, sizeof(*threads));
	size_t n = 0;

	/* Without a thread, those that there are, or this one, read all. */
	while (n + 1 < n_jobs && n + 1 < reading->ranks->n &&
	       !pthread_create(&threads[n], NULL, read_some, reading))
		n++;
	read_some(reading);
	while (n)
		pthread_join(threads[--n], NULL);
	free(threads);
}

/* ---- which ranks ----------------------------------------------------------------------------- */

static int compare_ranks(const void *a, const void *b)
{
	const struct kineto_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void check_ranks(struct kineto_ranks *ranks)
{
	for (size_t i = 0; i < ranks->n; i++) {
		struct kineto_rank *rank = &ranks->items[i];

		if (rank->has_rank)
			continue;
		if (ranks->n > 1)
			torsh_die(
				"%s: it has no rank in \"distributedInfo\", so that it can't be told from the others",
				rank->path);
		torsh_warn("%s: it has no rank in \"distributedInfo\": taken for rank 0",
			   rank->path);
	}
	qsort(ranks->items, ranks->n, sizeof(*ranks->items), compare_ranks);
	for (size_t i = 1; i < ranks->n; i++) {
		if (ranks->items[i].rank == ranks->items[i - 1].rank)
			torsh_die("%s and %s are both of rank %" PRIu32, ranks->items[i - 1].path,
				  ranks->items[i].path, ranks->items[i].rank);
	}
}

/* HTA leaves the last step out where all ranks together have two. */
static void settle_steps(struct reading *reading)
{
	for (size_t i = 0; i < reading->ranks->n; i++) {
		struct one_step *one = &reading->one_steps[i];
		struct breakdown *breakdown = &reading->ranks->items[i].breakdown;

		if (!one->is_there)
			continue;
		if (reading->step_names.n > 1) {
			torsh_breakdown_free(breakdown);
			*breakdown = one->without_it;
		} else {
			torsh_breakdown_free(&one->without_it);
		}
	}
}

void torsh_kineto_ranks_read(struct kineto_ranks *ranks, char *const *paths, size_t n,
			     size_t n_jobs)
{
	struct reading reading = {.ranks = ranks, .lock = PTHREAD_MUTEX_INITIALIZER};

	*ranks = (struct kineto_ranks){.items = torsh_need_items(NULL, 0, n, sizeof(*ranks->items)),
				       .n = n,
				       .fold = torsh_fold_create()};
	for (size_t i = 0; i < n; i++)
		ranks->items[i].path = paths[i];
	reading.one_steps = torsh_need_items(NULL, 0, n, sizeof(*reading.one_steps));
	read_all(&reading, n_jobs);
	settle_steps(&reading);
	check_ranks(ranks);
	free(reading.one_steps);
	torsh_hash_map_free(&reading.step_names);
	pthread_mutex_destroy(&reading.lock);
}

void torsh_kineto_ranks_write(struct kineto_ranks *ranks, const char *path)
{
	struct fold_writer *writer = torsh_fold_write(path);

	for (size_t i = 0; i < ranks->n; i++)
		torsh_fold_write_rank(writer, ranks->items[i].row);
	torsh_fold_write_end(writer, ranks->fold);
}

void torsh_kineto_ranks_free(struct kineto_ranks *ranks)
{
	for (size_t i = 0; i < ranks->n; i++) {
		torsh_breakdown_free(&ranks->items[i].breakdown);
		torsh_rank_row_free(ranks->items[i].row);
	}
	free(ranks->items);
	torsh_fold_destroy(ranks->fold);
	*ranks = (struct kineto_ranks){0};
}
