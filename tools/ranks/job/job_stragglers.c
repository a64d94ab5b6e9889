/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ranks that others wait for more than chance explains. */
#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/job/job.h"

#define LEAST_SHARE 0.05 /* of the compared time */
#define LEAST_TIMES 3u
/*
 * Standard errors above what the other ranks cost. Ranks that are late in turn are at 0; at 3.5
 * chance makes a straggler of one rank in 4,000.
 */
#define LEAST_CERTAINTY 3.5

/*
 * Sums of what a rank cost in each call less what each other rank of the group cost on average:
 * their mean is 0 for ranks that are late in turn.
 */
struct scores {
	uint64_t n, times_last, cost_ns, waited_ns;
	double sum, squares;
};

static void score_call(struct scores *scores, const struct job *job,
		       const struct job_verdict *verdict)
{
	const struct job_call *call = &job->calls[verdict->call];

	for (size_t i = 0; i < call->n; i++) {
		uint32_t rank = job->entries[call->first + i].rank;
		struct scores *of = &scores[rank];
		double score = (double)verdict->cost_ns;

		if (rank != verdict->last)
			score /= -(double)(call->n - 1);
		of->n++;
		of->sum += score;
		of->squares += score * score;
	}
	if (!verdict->is_judged)
		return;
	scores[verdict->last].times_last++;
	scores[verdict->last].cost_ns += verdict->cost_ns;
	scores[verdict->last].waited_ns += verdict->waited_ns;
}

static double certainty_of(const struct scores *scores)
{
	double n = (double)scores->n, mean = n ? scores->sum / n : 0, variance;

	if (n < 2)
		return 0;
	variance = (scores->squares / n - mean * mean) / (n - 1);
	return variance > 0 ? mean / sqrt(variance) : mean > 0 ? HUGE_VAL : 0;
}

static int compare_stragglers(const void *a, const void *b)
{
	const struct job_straggler *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

void torsh_job_find_stragglers(struct job *job)
{
	struct scores *scores = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*scores));

	job->stragglers = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*job->stragglers));
	for (size_t i = 0; i < job->n_verdicts; i++)
		score_call(scores, job, &job->verdicts[i]);
	for (size_t i = 0; i < job->n_ranks; i++) {
		double share =
			job->compared_ns ? (double)scores[i].cost_ns / (double)job->compared_ns : 0;
		double certainty = certainty_of(&scores[i]);

		if (share < LEAST_SHARE || scores[i].times_last < LEAST_TIMES ||
		    certainty < LEAST_CERTAINTY)
			continue;
		job->stragglers[job->n_stragglers++] =
			(struct job_straggler){.rank = (uint32_t)i,
					       .times_last = scores[i].times_last,
					       .compared = scores[i].n,
					       .cost_ns = scores[i].cost_ns,
					       .waited_ns = scores[i].waited_ns,
					       .share = share,
					       .certainty = certainty};
	}
	if (job->n_stragglers)
		qsort(job->stragglers, job->n_stragglers, sizeof(*job->stragglers),
		      compare_stragglers);
	for (size_t i = 0; i < job->n_stragglers; i++)
		torsh_job_find_causes(job, &job->stragglers[i]);
	free(scores);
}
