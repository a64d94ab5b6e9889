/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Offsets of clocks from collectives. If rank i entered one at e_i and rank j left it at l_j, then
 * e_i + o_i <= l_j + o_j. All calls together bound each difference of offsets from both sides; the
 * bounds of several clocks are closed over (o_i - o_k <= (o_i - o_j) + (o_j - o_k)).
 */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/clocks/clock_estimate.h"
#include "tools/ranks/job/job.h"

#define NO_BOUND INT64_MAX
/* More clocks are only compared with clock 0 directly: closing over takes the cube of them. */
#define CLOSED_MAX 200u

/* Bounds of o_i - o_j from calls whose time lies in a part of the job. */
struct bounds {
	size_t n;
	bool is_star; /* only those with i or j 0 */
	int64_t *upper; /* see slot_of */
	int64_t from_ns, to_ns;
	int64_t *entered, *left; /* by clock: scratch of a call */
	double *at_ns; /* by clock: sums of calls' times, and their number */
	uint64_t *n_calls;
};

static int64_t *slot_of(const struct bounds *bounds, size_t i, size_t j)
{
	return &bounds->upper[bounds->is_star ? (i ? i : bounds->n + j) : i * bounds->n + j];
}

static struct bounds bounds_create(size_t n)
{
	size_t n_slots = n > CLOSED_MAX ? 2 * n : n * n;
	struct bounds bounds = {.n = n,
				.is_star = n > CLOSED_MAX,
				.upper = torsh_need_items(NULL, 0, n_slots, sizeof(int64_t)),
				.from_ns = INT64_MIN,
				.to_ns = INT64_MAX,
				.entered = torsh_need_items(NULL, 0, n, sizeof(int64_t)),
				.left = torsh_need_items(NULL, 0, n, sizeof(int64_t)),
				.at_ns = torsh_need_items(NULL, 0, n, sizeof(double)),
				.n_calls = torsh_need_items(NULL, 0, n, sizeof(uint64_t))};

	for (size_t i = 0; i < n_slots; i++)
		bounds.upper[i] = NO_BOUND;
	return bounds;
}

static void bounds_free(struct bounds *bounds)
{
	free(bounds->upper);
	free(bounds->entered);
	free(bounds->left);
	free(bounds->at_ns);
	free(bounds->n_calls);
}

static int64_t difference(int64_t a, int64_t b)
{
	int64_t result;

	return __builtin_sub_overflow(a, b, &result) ? (a > b ? INT64_MAX / 4 : INT64_MIN / 4)
						     : result;
}

static int64_t drifted(const struct job_clock *clock, int64_t at_ns)
{
	return at_ns + (int64_t)(clock->drift * (double)at_ns);
}

static void use_call(struct bounds *bounds, const struct job *job, const struct job_call *call)
{
	size_t n = bounds->n;

	for (size_t i = 0; i < n; i++) {
		bounds->entered[i] = INT64_MIN;
		bounds->left[i] = INT64_MAX;
	}
	for (size_t i = 0; i < call->n; i++) {
		const struct job_entry *entry = &job->entries[call->first + i];
		uint32_t clock = job->ranks[entry->rank].clock;
		int64_t entered = drifted(&job->clocks[clock], entry->entered_ns),
			left = drifted(&job->clocks[clock], entry->left_ns);

		if (entered > bounds->entered[clock])
			bounds->entered[clock] = entered;
		if (left < bounds->left[clock])
			bounds->left[clock] = left;
	}
	for (size_t i = 0; i < n; i++) {
		if (bounds->entered[i] == INT64_MIN)
			continue;
		bounds->at_ns[i] += (double)bounds->entered[i];
		bounds->n_calls[i]++;
		for (size_t j = 0; j < (bounds->is_star && i ? 1 : n); j++) {
			int64_t upper = difference(bounds->left[j], bounds->entered[i]);

			if (i != j && bounds->left[j] != INT64_MAX &&
			    upper < *slot_of(bounds, i, j))
				*slot_of(bounds, i, j) = upper;
		}
	}
}

static bool spans_clocks(const struct job *job, const struct job_call *call)
{
	for (size_t i = 1; i < call->n; i++) {
		if (job->ranks[job->entries[call->first + i].rank].clock !=
		    job->ranks[job->entries[call->first].rank].clock)
			return true;
	}
	return false;
}

static void collect(struct bounds *bounds, const struct job *job)
{
	for (size_t i = 0; i < job->n_calls; i++) {
		const struct job_call *call = &job->calls[i];
		int64_t at_ns = job->entries[call->first].entered_ns;

		if (call->joins && call->all_end && at_ns >= bounds->from_ns &&
		    at_ns <= bounds->to_ns && spans_clocks(job, call))
			use_call(bounds, job, call);
	}
}

static void close_over(struct bounds *bounds)
{
	size_t n = bounds->n;

	for (size_t k = 0; k < n && !bounds->is_star; k++) {
		for (size_t i = 0; i < n; i++) {
			int64_t first = bounds->upper[i * n + k];

			for (size_t j = 0; j < n && first != NO_BOUND; j++) {
				int64_t then = bounds->upper[k * n + j];

				if (i != j && then != NO_BOUND &&
				    first + then < bounds->upper[i * n + j])
					bounds->upper[i * n + j] = first + then;
			}
		}
	}
}

/* Returns whether clock i is bounded against clock 0. */
static bool get_bounds(const struct bounds *bounds, size_t i, int64_t *low, int64_t *high)
{
	int64_t high_ns = *slot_of(bounds, i, 0), low_ns = *slot_of(bounds, 0, i);

	if (high_ns == NO_BOUND || low_ns == NO_BOUND)
		return false;
	*low = -low_ns;
	*high = high_ns;
	return true;
}

/* ---- drift ----------------------------------------------------------------------------------- */

/*
 * Offsets of the first and the last third of the calls differ by more than both errors: the clock
 * drifts. Without that none is assumed.
 */
static void find_drift(struct job *job, const struct bounds *early, const struct bounds *late,
		       size_t i)
{
	int64_t low[2], high[2];
	double apart_ns, change_ns;

	if (!get_bounds(early, i, &low[0], &high[0]) || !get_bounds(late, i, &low[1], &high[1]) ||
	    (low[1] <= high[0] && low[0] <= high[1]))
		return;
	apart_ns = late->at_ns[i] / (double)late->n_calls[i] -
		   early->at_ns[i] / (double)early->n_calls[i];
	change_ns = ((double)low[1] + (double)high[1] - (double)low[0] - (double)high[0]) / 2;
	if (apart_ns < 1e9)
		return;
	job->clocks[i].drift = change_ns / apart_ns;
	job->clocks[i].has_drift = true;
}

static void find_drifts(struct job *job)
{
	struct bounds early = bounds_create(job->n_clocks), late = bounds_create(job->n_clocks);
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	for (size_t i = 0; i < job->n_calls; i++) {
		int64_t at_ns = job->entries[job->calls[i].first].entered_ns;

		first_ns = at_ns < first_ns ? at_ns : first_ns;
		last_ns = at_ns > last_ns ? at_ns : last_ns;
	}
	if (last_ns > first_ns) {
		early.to_ns = first_ns + (last_ns - first_ns) / 3;
		late.from_ns = last_ns - (last_ns - first_ns) / 3;
		collect(&early, job);
		collect(&late, job);
		for (size_t i = 1; i < job->n_clocks; i++)
			find_drift(job, &early, &late, i);
	}
	bounds_free(&early);
	bounds_free(&late);
}

/* ---- offsets --------------------------------------------------------------------------------- */

static void find_offset(struct job_clock *clock, const struct bounds *bounds, size_t i)
{
	int64_t low, high;

	if (!get_bounds(bounds, i, &low, &high))
		return;
	clock->source = CLOCK_BY_COLLECTIVES;
	clock->offset_ns = low + (high - low) / 2;
	/* Bounds that contradict each other are off by as much. */
	clock->error_ns = (uint64_t)(high > low ? (high - low + 1) / 2 : low - high);
}

void torsh_job_align(struct job *job)
{
	struct bounds bounds;

	if (!job->n_clocks)
		return;
	job->clocks[0].source = CLOCK_BY_KERNEL;
	if (job->n_clocks == 1)
		return;
	find_drifts(job);
	bounds = bounds_create(job->n_clocks);
	collect(&bounds, job);
	close_over(&bounds);
	for (size_t i = 1; i < job->n_clocks; i++)
		find_offset(&job->clocks[i], &bounds, i);
	bounds_free(&bounds);
}

/* Returns the point whose line has the time: the first one, the last one where it is outside. */
static const struct job_clock_point *point_at(const struct job_clock *clock, int64_t at_ns)
{
	size_t i = 0;

	while (i + 1 < JOB_CLOCK_POINTS && clock->points[i + 1].at_ns <= at_ns)
		i++;
	return &clock->points[i];
}

static int64_t offset_at(const struct job_clock *clock, int64_t at_ns)
{
	const struct job_clock_point *from = point_at(clock, at_ns),
				     *last = &clock->points[JOB_CLOCK_POINTS - 1];

	if (from == last || at_ns <= from->at_ns || from[1].at_ns <= from->at_ns)
		return from->offset_ns;
	return from->offset_ns +
	       (int64_t)((double)(from[1].offset_ns - from->offset_ns) *
			 (double)(at_ns - from->at_ns) / (double)(from[1].at_ns - from->at_ns));
}

int64_t torsh_job_time(const struct job *job, uint32_t rank, int64_t at_ns)
{
	const struct job_clock *clock = &job->clocks[job->ranks[rank].clock];

	if (clock->points)
		return at_ns + offset_at(clock, at_ns);
	return drifted(clock, at_ns) + clock->offset_ns;
}

/* Outside of the points the clock may drift as much as any. */
static uint64_t error_at(const struct job_clock *clock, int64_t at_ns)
{
	const struct job_clock_point *first = clock->points,
				     *last = &clock->points[JOB_CLOCK_POINTS - 1];
	int64_t beyond_ns = at_ns < first->at_ns  ? first->at_ns - at_ns
			    : at_ns > last->at_ns ? at_ns - last->at_ns
						  : 0;

	return point_at(clock, at_ns)->error_ns + (uint64_t)((double)beyond_ns * CLOCK_DRIFT_MAX);
}

uint64_t torsh_job_time_error(const struct job *job, uint32_t rank, int64_t at_ns)
{
	const struct job_clock *clock = &job->clocks[job->ranks[rank].clock];

	if (clock->source == CLOCK_IS_UNKNOWN)
		return UINT64_MAX;
	return clock->points ? error_at(clock, at_ns) : clock->error_ns;
}

uint64_t torsh_job_error(const struct job *job, const struct job_entry *a,
			 const struct job_entry *b)
{
	uint64_t first, second;

	if (job->ranks[a->rank].clock == job->ranks[b->rank].clock)
		return 0;
	first = torsh_job_time_error(job, a->rank, a->entered_ns);
	second = torsh_job_time_error(job, b->rank, b->entered_ns);
	return first > UINT64_MAX - second ? UINT64_MAX : first + second;
}
