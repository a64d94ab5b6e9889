/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/request_steps.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool is_request(const struct span *span)
{
	const char *domain;

	if (span->kind != SPAN_RANGE || span->source != RANGE_BY_TORSH || !span->domain)
		return false;
	domain = torsh_timeline_label(span->process, span->domain);
	return domain && strcmp(domain, REQUEST_DOMAIN) == 0;
}

void torsh_requests_end(struct requests *requests, const struct span *span)
{
	if (!is_request(span))
		return;
	for (const struct span *outer = span->outer; outer; outer = outer->outer) {
		if (is_request(outer))
			return;
	}
	requests->items = torsh_array_reserve(requests->items, requests->n, &requests->n_room,
					      sizeof(*requests->items));
	requests->items[requests->n++] = (struct request_range){
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.number = span->payload,
		.has_number =
			span->payload_type == PAYLOAD_U64 || span->payload_type == PAYLOAD_I64,
		.thread = span->thread,
		.name = span->name,
	};
}

static int compare_starts(const void *a, const void *b)
{
	const struct request_range *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* Make a step of each request. Returns the index of the step of each range. */
static size_t *make_steps(const struct requests *requests, struct steps *steps)
{
	struct hash_map numbers = {0};
	size_t *of = torsh_need_items(NULL, 0, requests->n, sizeof(*of));

	for (size_t i = 0; i < requests->n; i++) {
		const struct request_range *range = &requests->items[i];
		struct step *step;

		of[i] = steps->n;
		if (range->has_number)
			of[i] = torsh_hash_map_put(&numbers, &range->number, sizeof(range->number),
						   steps->n)
					->value;
		if (of[i] == steps->n) {
			steps->items = torsh_array_reserve(steps->items, steps->n, &steps->n_room,
							   sizeof(*steps->items));
			steps->items[steps->n] = (struct step){.number = steps->n,
							       .start_ns = range->start_ns,
							       .name = range->name};
			steps->n++;
		}
		step = &steps->items[of[i]];
		step->end_ns = range->end_ns > step->end_ns ? range->end_ns : step->end_ns;
		if (step->end_ns - step->start_ns > steps->longest_ns)
			steps->longest_ns = step->end_ns - step->start_ns;
	}
	torsh_hash_map_free(&numbers);
	return of;
}

/* ---- slices ---------------------------------------------------------------------------------- */

struct slices {
	struct step_slice *items;
	size_t n, n_room;
};

static void add_slice(struct slices *slices, struct step_slice slice)
{
	if (slice.start_ns >= slice.end_ns)
		return;
	slices->items =
		torsh_array_reserve(slices->items, slices->n, &slices->n_room, sizeof(slice));
	slices->items[slices->n++] = slice;
}

static int compare_slices(const void *a, const void *b)
{
	const struct step_slice *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Cut the slices of one thread, in the order of their begins, so that the last one counts. */
static void cut_thread(const struct step_slice *slices, size_t n, struct slices *cut)
{
	const struct step_slice **open = torsh_need_items(NULL, 0, n, sizeof(*open)), *top;
	size_t n_open = 0;
	uint64_t from_ns = 0;

	for (size_t i = 0; i <= n; i++) {
		uint64_t until_ns = i < n ? slices[i].start_ns : UINT64_MAX;

		while (n_open && from_ns < until_ns) {
			struct step_slice part = *(top = open[n_open - 1]);

			part.start_ns = from_ns;
			part.end_ns = top->end_ns < until_ns ? top->end_ns : until_ns;
			add_slice(cut, part);
			from_ns = part.end_ns > from_ns ? part.end_ns : from_ns;
			n_open -= top->end_ns <= until_ns;
		}
		from_ns = until_ns;
		if (i < n)
			open[n_open++] = &slices[i];
	}
	free(open);
}

static void cut_slices(struct slices *slices)
{
	struct slices cut = {0};

	for (size_t i = 0, end; i < slices->n; i = end) {
		end = i;
		while (end < slices->n && slices->items[end].thread == slices->items[i].thread)
			end++;
		cut_thread(slices->items + i, end - i, &cut);
	}
	free(slices->items);
	*slices = cut;
}

/* ---- threads without requests of their own --------------------------------------------------- */

static bool has_thread(const struct requests *requests, uint32_t thread)
{
	size_t i = 0;

	while (i < requests->n && requests->items[i].thread != thread)
		i++;
	return i < requests->n;
}

/* Returns the only step that contains the time, or STEP_NONE. */
static size_t only_step_at(const struct steps *steps, uint64_t at_ns)
{
	size_t last = torsh_steps_at(steps, at_ns);

	for (size_t i = last; last != STEP_NONE && i-- > 0;) {
		if (steps->items[i].start_ns + steps->longest_ns < at_ns)
			break;
		if (steps->items[i].end_ns > at_ns)
			return STEP_NONE;
	}
	return last;
}

/* Add slices of a thread's operators, from the first one of a request to its last. */
static void add_operators(struct slices *slices, const struct steps *steps,
			  const struct op_sequence *sequence)
{
	size_t n;
	struct op_place *places = torsh_op_sequence_take(sequence, &n);
	struct step_slice slice = {.thread = sequence->thread, .step = STEP_NONE};

	for (size_t i = 0; i < n; i++) {
		size_t step = only_step_at(steps, places[i].start_ns);

		if (step != slice.step) {
			if (slice.step != STEP_NONE)
				add_slice(slices, slice);
			slice.step = step;
			slice.start_ns = places[i].start_ns;
			slice.end_ns = 0;
		}
		slice.end_ns = places[i].end_ns > slice.end_ns ? places[i].end_ns : slice.end_ns;
	}
	if (slice.step != STEP_NONE)
		add_slice(slices, slice);
	free(places);
}

void torsh_requests_make(struct requests *requests, const struct op_sequences *sequences,
			 struct steps *steps)
{
	struct slices slices = {0};
	size_t *of;

	qsort(requests->items, requests->n, sizeof(*requests->items), compare_starts);
	of = make_steps(requests, steps);
	for (size_t i = 0; i < requests->n; i++) {
		const struct request_range *range = &requests->items[i];

		add_slice(&slices, (struct step_slice){.thread = range->thread,
						       .step = of[i],
						       .start_ns = range->start_ns,
						       .end_ns = range->end_ns});
	}
	free(of);
	/* Until then, steps are looked up by their times alone. */
	steps->slices = torsh_need_items(NULL, 0, 1, sizeof(*steps->slices));
	for (size_t i = 0; i < sequences->n; i++) {
		if (!has_thread(requests, sequences->items[i].thread))
			add_operators(&slices, steps, &sequences->items[i]);
	}
	if (slices.n)
		qsort(slices.items, slices.n, sizeof(*slices.items), compare_slices);
	cut_slices(&slices);
	if (!slices.n)
		return;
	free(steps->slices);
	steps->slices = slices.items;
	steps->n_slices = slices.n;
}
