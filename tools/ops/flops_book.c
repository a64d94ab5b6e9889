/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * FLOPs of calls: what a pair of name and inputs is worth is computed once. See
 * tools/ops/operators.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/key_index.h"
#include "tools/ops/operators.h"

/* What is known of the pairs of one process. */
struct process_pairs {
	const struct recorded_process *process;
	struct key_index index; /* by both labels: index of worth */
};

struct flops_book {
	bool is_off;
	struct process_pairs *pairs;
	size_t n_pairs, pairs_room;
	struct flops *worth;
	size_t n_worth, worth_room;
	struct inputs inputs;
};

struct flops_book *torsh_flops_book_create(const struct recording *recording)
{
	struct flops_book *book = torsh_need(calloc(1, sizeof(*book)));

	book->is_off = recording->without_flops;
	return book;
}

void torsh_flops_book_destroy(struct flops_book *book)
{
	for (size_t i = 0; i < book->n_pairs; i++)
		torsh_key_index_destroy(&book->pairs[i].index);
	free(book->pairs);
	free(book->worth);
	free(book);
}

static struct process_pairs *find_pairs(struct flops_book *book,
					const struct recorded_process *process)
{
	struct process_pairs *pairs;

	for (size_t i = 0; i < book->n_pairs; i++) {
		if (book->pairs[i].process == process)
			return &book->pairs[i];
	}
	book->pairs = torsh_need_room(book->pairs, book->n_pairs, &book->pairs_room,
				      sizeof(*book->pairs));
	pairs = &book->pairs[book->n_pairs++];
	pairs->process = process;
	torsh_key_index_create(&pairs->index);
	return pairs;
}

/* Not only its inputs: with some left out a sum would be too small. */
static struct flops compute(struct flops_book *book, const struct call *call)
{
	torsh_inputs_parse(&book->inputs, torsh_timeline_label(call->process, call->inputs));
	return torsh_flops_of(torsh_call_name(call), &book->inputs);
}

static struct flops find_worth(struct flops_book *book, const struct call *call)
{
	struct process_pairs *pairs = find_pairs(book, call->process);
	/* No label reaches 2^32 - 1: the sum is not 0. */
	uint64_t key = ((uint64_t)call->name << 32 | call->inputs) + 1;
	struct key_slot *slot = torsh_key_index_find(&pairs->index, key);

	if (!slot->key) {
		book->worth = torsh_need_room(book->worth, book->n_worth, &book->worth_room,
					      sizeof(*book->worth));
		book->worth[book->n_worth] = compute(book, call);
		torsh_key_index_fill(&pairs->index, slot, key, (uint32_t)book->n_worth++);
		return book->worth[book->n_worth - 1];
	}
	return book->worth[slot->number];
}

static void add_flops(struct call *call, const struct flops *flops)
{
	call->flops += flops->counter;
	call->flops_all += flops->all;
	call->has_counted = true;
}

void torsh_flops_book_begin(struct flops_book *book, struct call *call)
{
	struct flops flops;

	if (book->is_off || call->scope == OP_USER)
		return;
	flops = find_worth(book, call);
	call->is_traced = flops.status == FLOPS_NO_DATA;
	call->is_counted =
		call->is_counted || (flops.status == FLOPS_COUNTED && flops.place == FLOPS_HERE);
}

/*
 * A library's operator is what it computes itself, but for memory, unless something inside says
 * what it is worth.
 */
static bool is_made_of_others(const struct call *call)
{
	return call->scope == OP_BACKWARD || call->has_counted || call->has_unknown ||
	       call->is_traced || (call->n_inner && !strstr(torsh_call_name(call), "::"));
}

struct flops torsh_flops_book_end(struct flops_book *book, struct call *call)
{
	const struct call *outer = torsh_call_outer_operator(call);
	struct flops flops = {.status = FLOPS_NONE};

	if (book->is_off)
		return (struct flops){.status = FLOPS_NO_FORMULA};
	if (call->scope == OP_USER || (outer && outer->is_counted))
		return flops;
	flops = find_worth(book, call);
	if (flops.status == FLOPS_NO_FORMULA && !is_made_of_others(call))
		call->has_unknown = true;
	else if (flops.status != FLOPS_COUNTED || call->is_traced ||
		 (flops.place == FLOPS_AT_LEAF && call->has_counted))
		flops = (struct flops){.status = FLOPS_NONE};
	else
		add_flops(call, &flops);
	return flops;
}
