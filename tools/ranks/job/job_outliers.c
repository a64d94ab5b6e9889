/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ranks that do something else than the others: each rank's sparse pattern, calls and time of the
 * call paths with most time, is compared with the medians of all ranks, after EROICA's differential
 * observability (arXiv 2506.08528). Communication is left out, because ranks wait there for others.
 *
 * A path differs if calls do, which noise doesn't change, or its time in the median step, after
 * the whole rank's speed is taken out. The difference must be three times that of the other ranks,
 * all but the most different quarter, so that ranks which differ anyhow raise no alarm. Time must
 * differ by more than what the longer ones waited for a CPU: that falls into any path.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ranks/job/job.h"

#define LEAST_RANKS 3u /* of two, nobody knows which one is different */
#define LEAST_TIME_SHARE 0.05 /* of the time in a step's paths, that differs */
#define LEAST_CALLS_SHARE 0.02 /* of it, that the path has: more than what a row leaves out */
#define LEAST_CALLS_RATIO 0.1
#define LEAST_CALLS 3.0
#define TIMES_OTHERS 3.0

/* A path of one rank. */
struct seen {
	uint32_t node, rank;
	uint64_t calls, step_ns;
};

/* A path by rank: zeros where a rank doesn't have it. */
struct path {
	double *calls, *step_ns; /* by rank */
	double *deviations; /* scratch */
	size_t n;
};

/* Of each rank's time between collectives, the part that its threads waited for a CPU. */
struct cpu_waits {
	double *shares; /* by rank; 0: also where it isn't known */
	double median;
};

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The value that is so far up in the order of all; values are sorted into scratch. */
static double quantile(const double *values, size_t n, double at, double *scratch)
{
	memcpy(scratch, values, n * sizeof(*scratch));
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	return scratch[(size_t)(at * (double)(n - 1))];
}

/* By how much three quarters of the ranks are away from the median, at most. */
static double spread_of(const double *values, size_t n, double median, double *scratch)
{
	double *away = torsh_need_items(NULL, 0, n, sizeof(*away)), spread;

	for (size_t i = 0; i < n; i++)
		away[i] = fabs(values[i] - median);
	spread = quantile(away, n, 0.75, scratch);
	free(away);
	return spread;
}

/* ---- what is compared ------------------------------------------------------------------------ */

static bool is_text_of(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++) {
		if (strncmp(text, *beginnings, strlen(*beginnings)) == 0)
			return true;
	}
	return false;
}

static bool is_communication(const struct job *job, uint32_t node)
{
	static const char *const names[] = {
		"c10d::", "_c10d_functional::", "gloo:", "nccl:", "mpi:", "ucc:", NULL};

	for (; node; node = job->fold->nodes[node].parent) {
		if (is_text_of(job->fold->texts[job->fold->nodes[node].function], names))
			return true;
	}
	return false;
}

/* Ranks of a pipeline pass messages on, and do different work by design. */
static bool has_messages(const struct job *job)
{
	static const char *const names[] = {"send", "recv", NULL};

	for (size_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;

		for (size_t k = 0; k < row->n_name; k++) {
			if (is_text_of(row->texts[row->name[k]], names))
				return true;
		}
	}
	return false;
}

static const char *reason_for_none(const struct job *job)
{
	if (job->n_ranks < LEAST_RANKS)
		return "three ranks or more are needed to know which one is different";
	if (has_messages(job))
		return "ranks send messages to each other, as those of a pipeline, which do "
		       "different work";
	for (size_t i = 0; i < job->n_ranks; i++) {
		if (!job->ranks[i].row->n_path_calls)
			return "not all ranks have call paths with calls: no operators were "
			       "recorded, or the fold is of an older version";
	}
	return NULL;
}

static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All paths of all ranks, by path and rank; *n is how many. */
static struct seen *see_paths(const struct job *job, size_t *n)
{
	struct hash_map nodes = {0};
	struct seen *all;
	size_t n_all = 0;

	for (size_t i = 0; i < job->fold->n_nodes; i++)
		torsh_hash_map_put(&nodes, &job->fold->nodes[i].hash, sizeof(uint64_t), i);
	for (size_t i = 0; i < job->n_ranks; i++)
		n_all += job->ranks[i].row->n_path;
	all = torsh_need_items(NULL, 0, n_all, sizeof(*all));
	*n = 0;
	for (uint32_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;

		for (size_t k = 0; k < row->n_path; k++) {
			const struct hash_entry *entry =
				torsh_hash_map_find(&nodes, &row->path[k], sizeof(row->path[k]));

			if (entry && !is_communication(job, (uint32_t)entry->value))
				all[(*n)++] = (struct seen){.node = (uint32_t)entry->value,
							    .rank = i,
							    .calls = row->path_calls[k],
							    .step_ns = row->path_step_ns[k]};
		}
	}
	torsh_hash_map_free(&nodes);
	if (*n)
		qsort(all, *n, sizeof(*all), compare_seen);
	return all;
}

/* Returns how many of the items are of the first one's path, which is set. */
static size_t take_path(struct path *path, const struct seen *seen, size_t n)
{
	size_t i;

	memset(path->calls, 0, path->n * sizeof(*path->calls));
	memset(path->step_ns, 0, path->n * sizeof(*path->step_ns));
	for (i = 0; i < n && seen[i].node == seen[0].node; i++) {
		path->calls[seen[i].rank] = (double)seen[i].calls;
		path->step_ns[seen[i].rank] = (double)seen[i].step_ns;
	}
	return i;
}

/* ---- speed ----------------------------------------------------------------------------------- */

/*
 * By how much each rank is slower than the others, in the median of the paths that all have: on a
 * slower CPU it does the same.
 */
static double *find_speeds(const struct job *job, const struct seen *seen, size_t n,
			   struct path *path)
{
	size_t n_ranks = job->n_ranks, n_common = 0, most = job->ranks[0].row->n_path;
	double *ratios = torsh_need_items(NULL, 0, most * n_ranks, sizeof(*ratios));
	double *speeds = torsh_need_items(NULL, 0, n_ranks, sizeof(*speeds));

	for (size_t i = 0, taken; i < n; i += taken) {
		double median;

		taken = take_path(path, &seen[i], n - i);
		if (taken < n_ranks || n_common == most ||
		    quantile(path->step_ns, n_ranks, 0, path->deviations) <= 0)
			continue;
		median = quantile(path->step_ns, n_ranks, 0.5, path->deviations);
		for (size_t rank = 0; rank < n_ranks; rank++)
			ratios[rank * most + n_common] = path->step_ns[rank] / median;
		n_common++;
	}
	for (size_t rank = 0; rank < n_ranks; rank++) {
		double *of = ratios + rank * most;

		qsort(of, n_common, sizeof(*of), compare_doubles);
		speeds[rank] = n_common ? of[(n_common - 1) / 2] : 1;
	}
	free(ratios);
	return speeds;
}

/* The sum of the medians of all paths' times, at the speed of the median rank. */
static double total_of(const struct seen *seen, size_t n, const double *speeds, struct path *path)
{
	double total = 0;

	for (size_t i = 0, taken; i < n; i += taken) {
		taken = take_path(path, &seen[i], n - i);
		if (taken <= path->n / 2)
			continue;
		for (size_t rank = 0; rank < path->n; rank++)
			path->step_ns[rank] /= speeds[rank];
		total += quantile(path->step_ns, path->n, 0.5, path->deviations);
	}
	return total;
}

static struct cpu_waits find_cpu_waits(const struct job *job, double *scratch)
{
	struct cpu_waits waits = {torsh_need_items(NULL, 0, job->n_ranks, sizeof(double)), 0};

	for (size_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;
		double ran_ns = 0, waited_ns = 0;

		for (size_t k = 0; k < row->n_cpu_waited_ns; k++)
			waited_ns += (double)row->cpu_waited_ns[k];
		for (size_t k = 0; k < row->n_cpu_ran_ns; k++)
			ran_ns += (double)row->cpu_ran_ns[k];
		if (waited_ns > 0)
			waits.shares[i] = waited_ns / (ran_ns + waited_ns);
	}
	waits.median = quantile(waits.shares, job->n_ranks, 0.5, scratch);
	return waits;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void add_difference(struct job_outlier *outlier, const struct job_difference *difference)
{
	size_t i = outlier->n_differences;

	outlier->share += difference->share;
	if (i == JOB_DIFFERENCES && outlier->differences[i - 1].share >= difference->share)
		return;
	if (i < JOB_DIFFERENCES)
		outlier->n_differences++;
	else
		i--;
	for (; i > 0 && outlier->differences[i - 1].share < difference->share; i--)
		outlier->differences[i] = outlier->differences[i - 1];
	outlier->differences[i] = *difference;
}

static void judge_path(struct job_outlier *outliers, const struct path *path, uint32_t node,
		       double total_ns, const struct cpu_waits *waits)
{
	double calls = quantile(path->calls, path->n, 0.5, path->deviations);
	double step_ns = quantile(path->step_ns, path->n, 0.5, path->deviations);
	double calls_spread = spread_of(path->calls, path->n, calls, path->deviations);
	double ns_spread = spread_of(path->step_ns, path->n, step_ns, path->deviations);

	for (size_t i = 0; i < path->n; i++) {
		double more_calls = fabs(path->calls[i] - calls);
		double more_ns = fabs(path->step_ns[i] - step_ns);
		bool is_longer = path->step_ns[i] > step_ns;
		double most_ns = is_longer ? path->step_ns[i] : step_ns;
		double waited_ns = (is_longer ? waits->shares[i] : waits->median) * total_ns;
		bool has_calls = more_calls >= LEAST_CALLS &&
				 more_calls > LEAST_CALLS_RATIO * calls &&
				 more_calls > TIMES_OTHERS * calls_spread &&
				 most_ns > LEAST_CALLS_SHARE * total_ns;
		bool has_time = more_ns > LEAST_TIME_SHARE * total_ns + waited_ns &&
				more_ns > step_ns / 2 && more_ns > TIMES_OTHERS * ns_spread;

		if (has_calls || has_time)
			add_difference(&outliers[i], &(struct job_difference){
							     .node = node,
							     .calls = (uint64_t)path->calls[i],
							     .others_calls = (uint64_t)calls,
							     .step_ns = (uint64_t)path->step_ns[i],
							     .others_step_ns = (uint64_t)step_ns,
							     .share = more_ns / total_ns});
	}
}

static int compare_outliers(const void *a, const void *b)
{
	const struct job_outlier *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void keep_outliers(struct job *job)
{
	size_t n = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		job->outliers[i].rank = i;
		if (job->outliers[i].n_differences)
			job->outliers[n++] = job->outliers[i];
	}
	job->n_outliers = n;
	if (n)
		qsort(job->outliers, n, sizeof(*job->outliers), compare_outliers);
}

void torsh_job_find_outliers(struct job *job)
{
	size_t n, n_ranks = job->n_ranks;
	struct path path = {.n = n_ranks};
	struct cpu_waits waits;
	struct seen *seen;
	double *speeds, total_ns;

	job->no_outliers = reason_for_none(job);
	if (job->no_outliers)
		return;
	job->outliers = torsh_need_items(NULL, 0, n_ranks, sizeof(*job->outliers));
	path.calls = torsh_need_items(NULL, 0, n_ranks, sizeof(*path.calls));
	path.step_ns = torsh_need_items(NULL, 0, n_ranks, sizeof(*path.step_ns));
	path.deviations = torsh_need_items(NULL, 0, n_ranks, sizeof(*path.deviations));
	seen = see_paths(job, &n);
	speeds = find_speeds(job, seen, n, &path);
	total_ns = total_of(seen, n, speeds, &path);
	waits = find_cpu_waits(job, path.deviations);
	for (size_t i = 0, taken; i < n && total_ns > 0; i += taken) {
		double most_ns = 0;

		taken = take_path(&path, &seen[i], n - i);
		for (size_t rank = 0; rank < n_ranks; rank++) {
			path.step_ns[rank] /= speeds[rank];
			most_ns = path.step_ns[rank] > most_ns ? path.step_ns[rank] : most_ns;
		}
		if (most_ns > LEAST_CALLS_SHARE * total_ns)
			judge_path(job->outliers, &path, seen[i].node, total_ns, &waits);
	}
	keep_outliers(job);
	free(waits.shares);
	free(speeds);
	free(seen);
	free(path.calls);
	free(path.step_ns);
	free(path.deviations);
}
