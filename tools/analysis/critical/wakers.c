/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who ends a thread's wait for other threads. Where it is not recorded: for a join the thread that
 * ended, else the thread whose operator ended right before, or the main thread where a worker
 * waits. Where none of these did, the wait stays what it is. A wait for what another thread writes
 * ends by that where it is recorded only: others write, too.
 */
#include "tools/analysis/critical/lanes.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

/* Where waits are not recorded, a thread that does nothing for so long waits for the main one. */
#define IDLE_NS_MIN 50000u
#define OPERATORS_TRIED 256u

/* Returns the first operator that ends after the moment. */
static size_t ends_after(const struct lanes *lanes, uint64_t at_ns)
{
	size_t low = 0, high = lanes->n_ends;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lanes->ends[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void set_waker(struct lanes *lanes, struct segment *wait, uint32_t thread, uint64_t at_ns)
{
	wait->has_waker = true;
	wait->waker = thread;
	wait->waker_ns = at_ns;
	torsh_lane_cut(lanes, thread, at_ns);
}

static bool is_wait(enum critical_kind kind)
{
	return kind == CRITICAL_GIL || kind == CRITICAL_LOCKS || kind == CRITICAL_IO ||
	       kind == CRITICAL_SLEEP;
}

/* Of a longer wait, a tenth of it is not long before its end. */
static uint64_t not_long(const struct segment *wait)
{
	uint64_t tenth_ns = (wait->end_ns - wait->begin_ns) / 10;

	return tenth_ns > WAKE_NS_MAX ? tenth_ns : WAKE_NS_MAX;
}

/*
 * Returns whether the thread may have ended the wait: it runs at its end, or began to wait, or
 * ended, not long before. *at_ns: until when it ran.
 */
static bool may_have_ended(const struct lanes *lanes, uint32_t thread, const struct segment *wait,
			   uint64_t *at_ns)
{
	const struct lane *lane = &lanes->items[thread];
	const struct segment *at = torsh_lane_at(lane, wait->end_ns);

	*at_ns = at ? wait->end_ns : lane->end_ns;
	if (at && is_wait(at->kind))
		*at_ns = at->begin_ns;
	return *at_ns > wait->begin_ns && *at_ns + not_long(wait) >= wait->end_ns;
}

/*
 * The thread whose operator ended last in the wait and that may have ended it. The main one goes on
 * after its operators, and is looked at by itself. Without records of waits, a thread waits where
 * its operators end.
 */
static bool find_operator(const struct lanes *lanes, const struct segment *wait, uint32_t own,
			  uint32_t *thread, uint64_t *at_ns)
{
	for (size_t i = ends_after(lanes, wait->end_ns), n = 0; i-- && n < OPERATORS_TRIED; n++) {
		const struct operator_end *end = &lanes->ends[i];

		if (end->end_ns <= wait->begin_ns)
			return false;
		if (end->thread == own || end->thread == lanes->main)
			continue;
		*thread = end->thread;
		*at_ns = end->end_ns;
		if (lanes->collected->has_waits ? may_have_ended(lanes, *thread, wait, at_ns)
						: *at_ns + not_long(wait) >= wait->end_ns)
			return true;
	}
	return false;
}

/* The thread that ended last in the wait; is_join: it may be long before the wait's end. */
static bool find_end(const struct lanes *lanes, const struct segment *wait, uint32_t own,
		     bool is_join, uint32_t *thread, uint64_t *at_ns)
{
	const struct recorded_process *process = lanes->collected->process;
	uint64_t from_ns = wait->begin_ns;
	bool is_found = false;

	if (!is_join && wait->end_ns > from_ns + WAKE_NS_MAX)
		from_ns = wait->end_ns - WAKE_NS_MAX;
	for (uint32_t i = 0; i < lanes->n; i++) {
		const struct recorded_thread *other = &process->threads[i];

		if (i == own || !other->is_known || !lanes->items[i].n ||
		    other->end_ns <= from_ns || other->end_ns > wait->end_ns)
			continue;
		from_ns = other->end_ns;
		*thread = i;
		*at_ns = other->end_ns;
		is_found = true;
	}
	return is_found;
}

/* Returns whether the thread runs in the wait; *at_ns: until when it last did. */
static bool runs_in(const struct lane *lane, const struct segment *wait, uint64_t *at_ns)
{
	const struct segment *at = torsh_lane_at(lane, wait->begin_ns);
	bool runs = false;

	for (at = at ? at : lane->segments;
	     at < lane->segments + lane->n && at->begin_ns < wait->end_ns; at++) {
		if (is_wait(at->kind) || at->end_ns <= wait->begin_ns)
			continue;
		runs = true;
		*at_ns = at->end_ns;
	}
	return runs;
}

/*
 * The only other thread that ran in the wait, if it waits itself from then on until after that: the
 * waiting thread got its processor late. By more than half of the wait, it waited for time.
 */
static bool find_only(const struct lanes *lanes, const struct segment *wait, uint32_t own,
		      uint32_t *thread, uint64_t *at_ns)
{
	uint64_t last_ns;
	bool is_found = false;

	if (lanes->has_wakers || !lanes->collected->has_waits)
		return false;
	for (uint32_t i = 0; i < lanes->n; i++) {
		if (i == own || !lanes->items[i].n || !runs_in(&lanes->items[i], wait, &last_ns))
			continue;
		if (is_found || last_ns >= wait->end_ns)
			return false;
		*thread = i;
		*at_ns = last_ns;
		is_found = true;
	}
	return is_found && wait->end_ns - *at_ns <= (wait->end_ns - wait->begin_ns) / 2;
}

/*
 * For a join the thread that ended; else one that ran an operator meanwhile; a worker waits for the
 * main thread, unless another one's operator ended right before.
 */
static void find_waker(struct lanes *lanes, uint32_t own, struct segment *wait)
{
	bool is_join = wait->wait == THREAD_WAIT_JOIN + 1;
	uint32_t thread = 0, ended = 0;
	uint64_t at_ns = 0, ended_ns = 0, main_ns = 0;
	bool has_operator = !is_join && find_operator(lanes, wait, own, &thread, &at_ns);
	bool has_main = own != lanes->main && may_have_ended(lanes, lanes->main, wait, &main_ns);

	if (has_operator && has_main && at_ns + IDLE_NS_MIN < main_ns)
		has_operator = false;
	at_ns = has_operator ? at_ns : 0;
	if (find_end(lanes, wait, own, is_join, &ended, &ended_ns) && ended_ns >= at_ns) {
		set_waker(lanes, wait, ended, ended_ns);
		lanes->n_guessed += !is_join;
	} else if (has_operator) {
		set_waker(lanes, wait, thread, at_ns);
		lanes->n_guessed++;
	} else if (has_main) {
		set_waker(lanes, wait, lanes->main, main_ns);
		lanes->n_guessed++;
	} else if (!is_join && find_only(lanes, wait, own, &thread, &at_ns)) {
		set_waker(lanes, wait, thread, at_ns);
		lanes->n_guessed++;
	}
}

/*
 * A recorded waker of which nothing else is known explains nothing, nor one that ended the wait
 * before or after the time that is looked at.
 */
static void check_waker(struct lanes *lanes, struct segment *wait)
{
	wait->has_waker = wait->waker_ns >= wait->begin_ns && wait->waker_ns <= wait->end_ns &&
			  lanes->items[wait->waker].n &&
			  wait->waker_ns >= lanes->items[wait->waker].begin_ns;
	if (wait->has_waker)
		torsh_lane_cut(lanes, wait->waker, wait->waker_ns);
}

/* ---- waits that were not recorded ------------------------------------------------------------ */

/*
 * Other threads' operators in a time in which the main thread runs none: autograd's, for which it
 * waits, and in a long time any. They last from *begin_ns until *last's end.
 */
static const struct operator_end *find_others(const struct lanes *lanes,
					      const struct segment *segment, uint64_t *begin_ns)
{
	const struct operator_end *last = NULL;

	*begin_ns = segment->end_ns;
	for (size_t i = ends_after(lanes, segment->begin_ns);
	     i < lanes->n_ends && lanes->ends[i].end_ns <= segment->end_ns; i++) {
		const struct operator_end *end = &lanes->ends[i];

		if (end->thread == lanes->main || end->begin_ns < segment->begin_ns ||
		    (!end->is_backward && segment->kind != CRITICAL_GAPS))
			continue;
		*begin_ns = end->begin_ns < *begin_ns ? end->begin_ns : *begin_ns;
		last = end;
	}
	return last;
}

static void put(struct lane *lane, struct segment segment)
{
	if (segment.begin_ns >= segment.end_ns)
		return;
	if (segment.kind == CRITICAL_GAPS && segment.end_ns - segment.begin_ns < GAP_NS_MIN)
		segment.kind = CRITICAL_PYTHON;
	lane->segments = torsh_array_reserve(lane->segments, lane->n, &lane->n_room,
					     sizeof(*lane->segments));
	lane->segments[lane->n++] = segment;
}

/* Put a gap of the main thread: where other threads run operators, a wait for the last of these. */
static void put_gap(struct lanes *lanes, struct lane *lane, struct segment gap)
{
	struct segment before = gap, wait = gap, after = gap;
	const struct operator_end *last = find_others(lanes, &gap, &before.end_ns);

	if (!last) {
		put(lane, gap);
		return;
	}
	wait.kind = CRITICAL_LOCKS;
	wait.begin_ns = before.end_ns;
	wait.end_ns = after.begin_ns = last->end_ns;
	set_waker(lanes, &wait, last->thread, last->end_ns);
	lanes->n_guessed += !last->is_backward;
	put(lane, before);
	put(lane, wait);
	put(lane, after);
}

/* The main thread runs where a step begins: a gap ends there, and another one begins. */
static void split_gaps(struct lanes *lanes, const struct step *steps, size_t n_steps)
{
	struct lane *lane = &lanes->items[lanes->main];
	struct segment *old = lane->segments;
	size_t n = lane->n;

	lane->segments = NULL;
	lane->n = lane->n_room = 0;
	for (size_t i = 0; i < n; i++) {
		struct segment gap = old[i];

		if (gap.kind != CRITICAL_PYTHON && gap.kind != CRITICAL_GAPS) {
			put(lane, gap);
			continue;
		}
		for (size_t k = torsh_steps_after(steps, n_steps, gap.begin_ns);
		     k < n_steps && steps[k].end_ns < old[i].end_ns; k++) {
			gap.end_ns = steps[k].end_ns;
			put_gap(lanes, lane, gap);
			gap.begin_ns = gap.end_ns;
		}
		gap.end_ns = old[i].end_ns;
		put_gap(lanes, lane, gap);
	}
	free(old);
}

/* Make of a worker's gaps waits for the main thread. */
static void find_idle(struct lanes *lanes, struct lane *lane)
{
	for (size_t i = 0; i < lane->n; i++) {
		struct segment *segment = &lane->segments[i];

		if ((segment->kind != CRITICAL_PYTHON && segment->kind != CRITICAL_GAPS) ||
		    segment->end_ns - segment->begin_ns < IDLE_NS_MIN || i + 1 == lane->n)
			continue;
		segment->kind = CRITICAL_LOCKS;
		find_waker(lanes, lane->thread, segment);
	}
}

void torsh_lanes_find_wakers(struct lanes *lanes, const struct step *steps, size_t n_steps)
{
	if (lanes->main < lanes->n)
		split_gaps(lanes, steps, n_steps);
	for (uint32_t thread = 0; thread < lanes->n; thread++) {
		struct lane *lane = &lanes->items[thread];

		for (size_t i = 0; i < lane->n; i++) {
			struct segment *segment = &lane->segments[i];

			if (segment->kind != CRITICAL_LOCKS && segment->kind != CRITICAL_IO)
				continue;
			if (segment->is_waker_recorded)
				check_waker(lanes, segment);
			else if (segment->kind == CRITICAL_LOCKS && !segment->has_waker)
				find_waker(lanes, thread, segment);
		}
		if (thread != lanes->main && !lanes->collected->has_waits)
			find_idle(lanes, lane);
	}
}
