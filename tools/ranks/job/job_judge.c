/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who was last into each collective, what that cost, and the critical path through all of them. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/job/job.h"

/* Steps that are left out at the begin: what is set up there is late once. */
#define WARM_UP_STEPS 1u

static int compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_verdicts(const void *a, const void *b)
{
	const struct job_verdict *x = a, *y = b;

	if (x->entered_ns != y->entered_ns)
		return x->entered_ns < y->entered_ns ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* Entering times of a call's ranks on clock 0, of all but one (SIZE_MAX: of all), ascending. */
static size_t sort_times(const struct job *job, const struct job_call *call, uint32_t without,
			 int64_t *times)
{
	size_t n = 0;

	for (size_t i = 0; i < call->n; i++) {
		const struct job_entry *entry = &job->entries[call->first + i];

		if (entry->rank != without)
			times[n++] = torsh_job_time(job, entry->rank, entry->entered_ns);
	}
	qsort(times, n, sizeof(*times), compare_times);
	return n;
}

/* Returns the call before this one in its group, or NULL. */
static const struct job_call *call_before(const struct job *job, size_t call)
{
	const struct job_call *of = &job->calls[call], *before = of - 1;

	if (!call || before->group != of->group || before->sequence + 1 != of->sequence)
		return NULL;
	return before;
}

/*
 * Returns by how much a rank was late in the call before this one, as far as that is still to be
 * seen: the others entered this call before they could leave that one, so nothing made them wait.
 */
static int64_t carried(const struct job *job, size_t call, uint32_t rank, int64_t median_ns,
		       int64_t *times)
{
	const struct job_call *before = call_before(job, call);
	int64_t late_ns = 0, left_ns = INT64_MAX;
	size_t n;

	if (!before || !before->all_end)
		return 0;
	n = sort_times(job, before, rank, times);
	for (size_t i = 0; i < before->n; i++) {
		const struct job_entry *entry = &job->entries[before->first + i];
		int64_t left = torsh_job_time(job, entry->rank, entry->left_ns);

		left_ns = left < left_ns ? left : left_ns;
		if (entry->rank == rank)
			late_ns = torsh_job_time(job, rank, entry->entered_ns) - times[(n - 1) / 2];
	}
	return left_ns >= median_ns && late_ns > 0 ? late_ns : 0;
}

/* Returns the index in the call's entries of the last rank. */
static size_t find_last(const struct job *job, const struct job_call *call)
{
	const struct job_entry *entries = &job->entries[call->first];
	size_t last = 0;

	for (size_t i = 1; i < call->n; i++) {
		if (torsh_job_time(job, entries[i].rank, entries[i].entered_ns) >
		    torsh_job_time(job, entries[last].rank, entries[last].entered_ns))
			last = i;
	}
	return last;
}

/* Returns whether the last rank is later than each other one by more than their clocks' error. */
static bool is_certain(const struct job *job, const struct job_call *call, size_t last)
{
	const struct job_entry *entries = &job->entries[call->first];
	int64_t last_ns = torsh_job_time(job, entries[last].rank, entries[last].entered_ns);

	for (size_t i = 0; i < call->n; i++) {
		uint64_t error_ns = torsh_job_error(job, &entries[i], &entries[last]);
		int64_t at_ns = torsh_job_time(job, entries[i].rank, entries[i].entered_ns);

		if (i != last && (error_ns > INT64_MAX || last_ns - at_ns <= (int64_t)error_ns))
			return false;
	}
	return true;
}

static uint64_t sum_waits(const struct job_verdict *verdict, const int64_t *times, size_t n)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < n; i++)
		ns += (uint64_t)(verdict->entered_ns - times[i]);
	return ns;
}

static void judge_call(struct job *job, size_t call, int64_t *times)
{
	const struct job_call *of = &job->calls[call];
	const struct job_entry *entries = &job->entries[of->first];
	size_t last = find_last(job, of), n;
	struct job_verdict *verdict = &job->verdicts[job->n_verdicts++];
	int64_t left_ns = INT64_MAX, late_ns;

	*verdict = (struct job_verdict){
		.call = call, .last = entries[last].rank, .is_judged = is_certain(job, of, last)};
	verdict->entered_ns = torsh_job_time(job, verdict->last, entries[last].entered_ns);
	n = sort_times(job, of, verdict->last, times);
	verdict->median_ns = times[(n - 1) / 2];
	verdict->waited_ns = sum_waits(verdict, times, n);
	for (size_t i = 0; i < of->n && of->all_end; i++) {
		int64_t left = torsh_job_time(job, entries[i].rank, entries[i].left_ns);

		left_ns = left < left_ns ? left : left_ns;
	}
	if (of->all_end && left_ns > verdict->entered_ns)
		verdict->transfer_ns = (uint64_t)(left_ns - verdict->entered_ns);
	late_ns = verdict->entered_ns - verdict->median_ns -
		  carried(job, call, verdict->last, verdict->median_ns, times);
	verdict->cost_ns = verdict->is_judged && late_ns > 0 ? (uint64_t)late_ns : 0;
	if (!verdict->is_judged) {
		verdict->waited_ns = 0;
		job->n_ties++;
	}
}

/* Whether calls are only compared within steps: startup and evaluation are no steady state. */
static bool has_steps(const struct job *job)
{
	for (size_t i = 0; i < job->n_calls; i++) {
		if (job->calls[i].step > WARM_UP_STEPS + 1)
			return true;
	}
	return false;
}

/* ---- critical path --------------------------------------------------------------------------- */

static int compare_path(const void *a, const void *b)
{
	const struct job_path_rank *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* From verdict to verdict the way leads through the last rank; first the transfer before that. */
static void follow_path(struct job *job)
{
	struct job_path_rank *path = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*path));

	for (size_t i = 0; i < job->n_ranks; i++)
		path[i].rank = (uint32_t)i;
	for (size_t i = 1; i < job->n_verdicts; i++) {
		struct job_verdict *verdict = &job->verdicts[i], *before = verdict - 1;
		uint64_t ns, transfer_ns = before->transfer_ns;
		const struct job_call *call = &job->calls[verdict->call],
				      *last = &job->calls[before->call];

		/* Kept blocks of collectives are apart: what lies between is not known. */
		if (call->group == last->group && call->sequence != last->sequence + 1)
			continue;
		ns = (uint64_t)(verdict->entered_ns - before->entered_ns);
		transfer_ns = transfer_ns < ns ? transfer_ns : ns;
		verdict->before_ns = before->entered_ns;
		job->compared_ns += ns;
		job->communicated_ns += transfer_ns;
		path[verdict->last].ns += ns - transfer_ns;
		path[verdict->last].calls++;
	}
	qsort(path, job->n_ranks, sizeof(*path), compare_path);
	job->path = path;
	while (job->n_path < job->n_ranks && path[job->n_path].calls)
		job->n_path++;
}

void torsh_job_judge(struct job *job)
{
	int64_t *times = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*times));
	bool only_steps = has_steps(job);

	job->verdicts = torsh_need_items(NULL, 0, job->n_calls, sizeof(*job->verdicts));
	for (size_t i = 0; i < job->n_calls; i++) {
		if (job->calls[i].joins && (!only_steps || job->calls[i].step > WARM_UP_STEPS))
			judge_call(job, i, times);
	}
	if (job->n_verdicts)
		qsort(job->verdicts, job->n_verdicts, sizeof(*job->verdicts), compare_verdicts);
	if (job->n_ranks)
		follow_path(job);
	free(times);
}
