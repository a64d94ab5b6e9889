/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/timeline/steps/anchor.h"
#include "tools/timeline/steps/certainty.h"

#define ALIKE_PERCENT 50u /* of the body's operators, in a repetition that differs from it */

/* The body of the repetitions, turned so that `turned` of its symbols come before the anchor. */
struct body {
	const struct symbols *symbols;
	const size_t *anchors;
	size_t n_anchors;
	struct segment segment;
	size_t turned;
	size_t *bag; /* number of each symbol in the body */
	bool is_of_modules;
};

/* ---- turning it ------------------------------------------------------------------------------ */

static uint32_t symbol_of(const struct body *body, size_t i)
{
	return body->symbols->items[body->segment.first + i];
}

/* Returns how many symbols before the anchor equal the end of the body. */
static size_t count_before(const struct body *body, size_t anchor, size_t floor)
{
	size_t n = 0, most = body->segment.n - 1;

	most = anchor - floor < most ? anchor - floor : most;
	while (n < most &&
	       body->symbols->items[anchor - n - 1] == symbol_of(body, body->segment.n - n - 1))
		n++;
	return n;
}

/* Returns how many symbols from the anchor on equal the body. */
static size_t count_after(const struct body *body, size_t anchor)
{
	size_t n = 0, most = body->symbols->n - anchor;

	most = most < body->segment.n ? most : body->segment.n;
	while (n < most && body->symbols->items[anchor + n] == symbol_of(body, n))
		n++;
	return n;
}

/* By how many symbols the repetitions may be turned. */
struct turns {
	size_t *n_whole; /* by turn: number of whole repetitions */
	uint64_t *pause_ns; /* sum of the pauses before these */
	size_t *end; /* place behind the last one */
};

/* A repetition is whole if `turn` symbols before its anchor and the rest from there on fit. */
static void add_turns(const struct body *body, size_t anchor, size_t floor, struct turns *turns)
{
	size_t before = count_before(body, anchor, floor), after = count_after(body, anchor);
	size_t least = body->segment.n - after;

	for (size_t turn = least; turn <= before; turn++) {
		turns->n_whole[turn]++;
		turns->pause_ns[turn] += body->symbols->places[anchor - turn].pause_ns;
		turns->end[turn] = anchor - turn + body->segment.n;
	}
}

/* Returns whether turn a is better than b. */
static bool is_better(const struct turns *turns, size_t a, size_t b)
{
	if (turns->n_whole[a] != turns->n_whole[b])
		return turns->n_whole[a] > turns->n_whole[b];
	if (turns->pause_ns[a] != turns->pause_ns[b])
		return turns->pause_ns[a] > turns->pause_ns[b];
	return turns->end[a] > turns->end[b];
}

/*
 * Turn the body so that most repetitions are whole; of equal ones with the longest pauses before
 * them, then with the latest end.
 */
static void turn(struct body *body)
{
	size_t n = body->segment.n, best = 0;
	struct turns turns = {
		.n_whole = torsh_need_items(NULL, 0, n, sizeof(*turns.n_whole)),
		.pause_ns = torsh_need_items(NULL, 0, n, sizeof(*turns.pause_ns)),
		.end = torsh_need_items(NULL, 0, n, sizeof(*turns.end)),
	};

	for (size_t i = 0; i < body->n_anchors; i++)
		add_turns(body, body->anchors[i], i ? body->anchors[i - 1] + 1 : 0, &turns);
	for (size_t i = 1; i < n; i++) {
		if (is_better(&turns, i, best))
			best = i;
	}
	body->turned = best;
	free(turns.n_whole);
	free(turns.pause_ns);
	free(turns.end);
}

/* ---- repetitions ----------------------------------------------------------------------------- */

/* Returns the end of the places that began within the module at that place, or at + 1. */
static size_t end_of_module(const struct symbols *symbols, size_t at)
{
	size_t end = at + 1;

	while (torsh_op_place_is_module(&symbols->places[at]) && end < symbols->n &&
	       symbols->places[end].start_ns < symbols->places[at].end_ns)
		end++;
	return end;
}

/*
 * A repetition that differs from the body ends with the last operator that the body has, too.
 * Returns false if it is none: it has too few of those.
 */
static bool find_different(const struct body *body, size_t anchor, size_t limit,
			   struct repeat *repeat)
{
	const struct symbols *symbols = body->symbols;
	size_t *left = torsh_need_items(NULL, 0, symbols->n_different, sizeof(*left));
	size_t n_alike = 0;

	memcpy(left, body->bag, symbols->n_different * sizeof(*left));
	repeat->end = end_of_module(symbols, anchor);
	for (size_t i = repeat->first; i < limit; i++) {
		size_t *of = &left[symbols->items[i]];

		if (!*of)
			continue;
		--*of;
		n_alike++;
		repeat->end = i + 1 > repeat->end ? i + 1 : repeat->end;
	}
	free(left);
	return body->is_of_modules || n_alike * 100 >= body->segment.n * ALIKE_PERCENT;
}

/* Find the repetition of anchor i. Returns false if it is none. */
static bool find_repeat(const struct body *body, size_t i, size_t floor, struct repeat *repeat)
{
	size_t anchor = body->anchors[i], n = body->segment.n;
	size_t before = count_before(body, anchor, floor), limit = body->symbols->n;

	if (before >= body->turned && count_after(body, anchor) + body->turned >= n) {
		repeat->first = anchor - body->turned;
		repeat->end = repeat->first + n;
		return true;
	}
	if (i + 1 < body->n_anchors) {
		size_t next = body->anchors[i + 1];
		size_t of_next = count_before(body, next, anchor + 1);

		limit = next - (of_next < body->turned ? of_next : body->turned);
	}
	repeat->first = anchor - (before < body->turned ? before : body->turned);
	return find_different(body, anchor, limit, repeat);
}

static void set_times(const struct symbols *symbols, struct repeat *repeat)
{
	repeat->start_ns = symbols->places[repeat->first].start_ns;
	for (size_t i = repeat->first; i < repeat->end; i++) {
		if (symbols->places[i].end_ns > repeat->end_ns)
			repeat->end_ns = symbols->places[i].end_ns;
	}
}

static void list_repeats(const struct body *body, struct repeats *repeats)
{
	size_t floor = 0;

	repeats->items = torsh_need_items(NULL, 0, body->n_anchors, sizeof(*repeats->items));
	for (size_t i = 0; i < body->n_anchors; i++) {
		struct repeat repeat = {0};

		if (!find_repeat(body, i, floor, &repeat))
			continue;
		floor = repeat.end;
		set_times(body->symbols, &repeat);
		repeats->items[repeats->n++] = repeat;
	}
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void fill_bag(struct body *body)
{
	body->bag = torsh_need_items(NULL, 0, body->symbols->n_different, sizeof(*body->bag));
	for (size_t i = 0; i < body->segment.n; i++)
		body->bag[symbol_of(body, i)]++;
}

static bool find_by(struct repeats *repeats, const struct symbols *symbols, bool is_of_modules)
{
	uint32_t anchor = torsh_anchor_choose(symbols, is_of_modules);
	struct body body = {.symbols = symbols, .is_of_modules = is_of_modules};
	size_t *anchors;
	bool is_regular;

	if (anchor == ANCHOR_NONE)
		return false;
	body.anchors = anchors = torsh_anchor_places(symbols, anchor, &body.n_anchors);
	body.segment = torsh_anchor_segment(symbols, anchors, body.n_anchors);
	turn(&body);
	fill_bag(&body);
	list_repeats(&body, repeats);
	is_regular = torsh_certainty_find(repeats, symbols, is_of_modules);
	free(anchors);
	free(body.bag);
	if (is_regular)
		return true;
	free(repeats->items);
	*repeats = (struct repeats){0};
	return false;
}

void torsh_repeats_find(struct repeats *repeats, const struct op_place *places, size_t n)
{
	struct symbols symbols;

	*repeats = (struct repeats){0};
	torsh_symbols_make(&symbols, places, n);
	/* A call of a module shows where a repetition begins. */
	if (!find_by(repeats, &symbols, true))
		find_by(repeats, &symbols, false);
	torsh_symbols_free(&symbols);
}
