/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_clocks.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/clocks/clock_estimate.h"

/* By which an event's stamp and the clock at that moment may differ. */
#define READING_NS 1000u

/* Exchanges with one other clock. */
struct other {
	uint64_t clock;
	struct clock_exchange *exchanges;
	size_t n;
};

struct part {
	int64_t from_ns, to_ns, from_offset_ns, to_offset_ns;
};

/* ---- exchanges by clock ---------------------------------------------------------------------- */

static struct other *find_other(struct other **others, size_t *n, uint64_t clock)
{
	for (size_t i = 0; i < *n; i++) {
		if ((*others)[i].clock == clock)
			return &(*others)[i];
	}
	*others = torsh_need_items(*others, *n, *n + 1, sizeof(**others));
	(*others)[*n] = (struct other){.clock = clock};
	return &(*others)[(*n)++];
}

static int compare_sent(const void *a, const void *b)
{
	const struct clock_exchange *x = a, *y = b;

	return (x->sent_ns > y->sent_ns) - (x->sent_ns < y->sent_ns);
}

static int compare_others(const void *a, const void *b)
{
	const struct other *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->clock > y->clock) - (x->clock < y->clock);
}

/* Returns the clocks, those with most exchanges first; the caller frees them. */
static struct other *collect(const struct recording *recording, size_t *n)
{
	struct other *others = NULL;

	*n = 0;
	for (size_t i = 0; i < RECORDED_CLOCK_PEERS_MAX; i++) {
		const struct recorded_clock_peer *peer = &recording->clocks.peers[i];

		for (size_t k = 0; k < peer->n_exchanges; k++) {
			const struct recorded_exchange *one = &peer->exchanges[k];
			struct other *other = find_other(&others, n, one->clock);

			if ((other->n & (other->n - 1)) == 0)
				other->exchanges = torsh_need_items(other->exchanges, other->n,
								    other->n ? 2 * other->n : 1,
								    sizeof(*other->exchanges));
			other->exchanges[other->n++] =
				(struct clock_exchange){.sent_ns = (int64_t)one->sent_ns,
							.received_ns = (int64_t)one->received_ns,
							.replied_ns = (int64_t)one->replied_ns,
							.returned_ns = (int64_t)one->returned_ns};
		}
	}
	for (size_t i = 0; i < *n; i++)
		qsort(others[i].exchanges, others[i].n, sizeof(*others[i].exchanges), compare_sent);
	if (*n)
		qsort(others, *n, sizeof(*others), compare_others);
	return others;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int64_t on_line(const struct part *part, int64_t at_ns)
{
	double share = part->to_ns > part->from_ns ? (double)(at_ns - part->from_ns) /
							     (double)(part->to_ns - part->from_ns)
						   : 0;

	return part->from_offset_ns +
	       (int64_t)(share * (double)(part->to_offset_ns - part->from_offset_ns));
}

/* Raise the error to what the line is off by at that time, at most. */
static void look(const struct clock_estimate *estimate, const struct part *part, int64_t at_ns,
		 uint64_t *error_ns)
{
	struct clock_offset offset;
	uint64_t off_ns;

	if (at_ns < part->from_ns || at_ns > part->to_ns ||
	    !torsh_clock_estimate_at(estimate, at_ns, &offset))
		return;
	off_ns = (uint64_t)llabs(offset.offset_ns - on_line(part, at_ns)) + offset.error_ns;
	*error_ns = off_ns > *error_ns ? off_ns : *error_ns;
}

/* The error of the line in its part: where exchanges are, between them, and at 8 other times. */
static uint64_t error_of(const struct clock_estimate *estimate, const struct part *part,
			 const struct other *other, size_t *next)
{
	uint64_t error_ns = 0;

	for (int k = 0; k <= 8; k++)
		look(estimate, part, part->from_ns + (part->to_ns - part->from_ns) / 8 * k,
		     &error_ns);
	while (*next < other->n && other->exchanges[*next].sent_ns < part->from_ns)
		++*next;
	for (size_t i = *next; i < other->n && other->exchanges[i].sent_ns <= part->to_ns; i++) {
		int64_t at_ns = other->exchanges[i].sent_ns;

		look(estimate, part, at_ns, &error_ns);
		if (i + 1 < other->n)
			look(estimate, part, at_ns + (other->exchanges[i + 1].sent_ns - at_ns) / 2,
			     &error_ns);
	}
	return error_ns + READING_NS;
}

static int64_t offset_at(const struct clock_estimate *estimate, int64_t at_ns)
{
	struct clock_offset offset = {0};

	torsh_clock_estimate_at(estimate, at_ns, &offset);
	return offset.offset_ns;
}

static Torsh__FoldClock *make_clock(const struct other *other, uint64_t own_clock, int64_t from_ns,
				    int64_t to_ns)
{
	struct clock_estimate *estimate = torsh_clock_estimate_create(other->exchanges, other->n);
	Torsh__FoldClock *clock = torsh_need(malloc(sizeof(*clock)));
	/* Of absolute times, not of times since both recordings' starts. */
	int64_t between_ns = (int64_t)(other->clock - own_clock), last_ns = 0, last_offset_ns = 0;
	size_t next = 0, n = RANK_CLOCK_PARTS + 1;

	torsh__fold_clock__init(clock);
	clock->has_clock = clock->has_exchanges = true;
	clock->clock = other->clock;
	clock->exchanges = (uint32_t)other->n;
	clock->n_at_step = clock->n_offset_step = clock->n_error_ns = n;
	clock->at_step = torsh_need_items(NULL, 0, n, sizeof(*clock->at_step));
	clock->offset_step = torsh_need_items(NULL, 0, n, sizeof(*clock->offset_step));
	clock->error_ns = torsh_need_items(NULL, 0, n, sizeof(*clock->error_ns));
	for (size_t i = 0; i < n; i++) {
		int64_t length_ns = to_ns - from_ns, k = (int64_t)i;
		struct part part = {.from_ns = from_ns + length_ns / (int64_t)RANK_CLOCK_PARTS * k,
				    .to_ns = from_ns +
					     length_ns / (int64_t)RANK_CLOCK_PARTS * (k + 1)};

		if (i == RANK_CLOCK_PARTS)
			part.to_ns = part.from_ns;
		part.from_offset_ns = offset_at(estimate, part.from_ns);
		part.to_offset_ns = offset_at(estimate, part.to_ns);
		clock->at_step[i] = (uint64_t)(part.from_ns - last_ns);
		clock->offset_step[i] = part.from_offset_ns + between_ns - last_offset_ns;
		clock->error_ns[i] = error_of(estimate, &part, other, &next);
		last_ns = part.from_ns;
		last_offset_ns = part.from_offset_ns + between_ns;
	}
	torsh_clock_estimate_destroy(estimate);
	return clock;
}

void torsh_rank_clocks(Torsh__FoldRank *row, const struct recording *recording)
{
	const struct recorded_clocks *clocks = &recording->clocks;
	int64_t from_ns = (int64_t)(row->start_ns - recording->start_realtime_ns);
	size_t n;
	struct other *others = collect(recording, &n);

	if (clocks->kernel_clock) {
		row->has_kernel_clock = row->has_clock_monotonic_ns = true;
		row->kernel_clock = clocks->kernel_clock;
		row->clock_monotonic_ns = clocks->start_monotonic_ns;
	}
	row->n_clocks = n < RANK_CLOCKS_MAX ? n : RANK_CLOCKS_MAX;
	row->clocks = torsh_need_items(NULL, 0, row->n_clocks, sizeof(*row->clocks));
	for (size_t i = 0; i < row->n_clocks; i++)
		row->clocks[i] = make_clock(&others[i], recording->start_realtime_ns, from_ns,
					    from_ns + (int64_t)row->duration_ns);
	for (size_t i = 0; i < n; i++)
		free(others[i].exchanges);
	free(others);
}
