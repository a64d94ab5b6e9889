/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds where in the native stack each Python frame belongs, and how the merged stack differs from
 * the previous one.
 *
 * The merged stack is: native frame i, outermost first, preceded by the links of the chain with
 * `at` equal to i. So a link has number at + (ids of links outside of it), and a call to another C
 * function by the same line changes only the evaluation function's own frame and the frames inside
 * of it.
 */
#include "agent/python/python.h"

#include <string.h>

#include "agent/python/python_chain.h"
#include "agent/python/python_reader.h"
#include "agent/python/python_state.h"
#include "agent/wire/channel.h"
#include "shim/cpython/cpython.h"

#define NOWHERE UINT32_MAX
#define MISSED_CFRAMES 16u /* records without an activation, which greenlets make */

_Static_assert(STACK_MAX_FRAMES + CHAIN_MAX_LINKS <= CHANNEL_STACK_MAX,
	       "the writer takes deeper stacks");

/*
 * What one native frame of the evaluation function executes: the links from start to the next
 * activation's.
 */
struct activations {
	uint32_t n;
	uint32_t start[CHAIN_MAX_LINKS + 1];
	uint32_t at[CHAIN_MAX_LINKS]; /* number of that native frame */
};

/*
 * The innermost link and its activation, as the last capture found them: all that the most common
 * capture needs besides the proof of the other links. Its instruction and id are newer than the
 * chain's.
 */
struct innermost {
	uintptr_t frame; /* NO_FRAME: not usable */
	uintptr_t previous, code;
	uint64_t instruction;
	uint32_t version, id;
	uint32_t native; /* the native frame of its activation */
	bool starts;
};

#define NO_FRAME 1u

struct python {
	struct innermost innermost;
	struct python_chain chain;
	struct activations acts;
	uintptr_t second_state; /* python_state.h */
	/* an address in the native frame of each activation; by record 0 if none contains it */
	uintptr_t anchors[CHAIN_MAX_LINKS];
	uint32_t ids[STACK_MAX_FRAMES + CHAIN_MAX_LINKS + STACK_READABLE];
};

size_t torsh_python_bytes(void)
{
	return sizeof(struct python);
}

void torsh_python_invalidate(struct python *python)
{
	memset(python, 0, sizeof(*python));
}

/* ---- locating activations ------------------------- */

/* Where two stacks diverge: the number of common native frames and links. */
struct parting {
	uint32_t native, link;
	uint32_t old_at; /* of the first link of the old stack that isn't common; NOWHERE: none */
};

static bool holds(const struct stack_view *view, uint32_t i, uintptr_t address)
{
	return view->frames[i].sp <= address && (i == 0 || address < view->frames[i - 1].sp);
}

/* The native frame from number `from` on that contains address; guess is tried first. */
static uint32_t find_frame(const struct stack_view *view, uint32_t from, uint32_t guess,
			   uintptr_t address)
{
	if (guess >= from && guess < view->depth && holds(view, guess, address))
		return guess;
	for (uint32_t i = from; i < view->depth; i++) {
		if (holds(view, i, address))
			return i;
	}
	return NOWHERE;
}

/*
 * Read the records of the activations from number `first` on. A record names the frame in which it
 * was left, if it names one: greenlets have records that belong to no activation.
 */
static void read_cframes(struct python *python, uintptr_t tstate, uint32_t first)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	const struct activations *acts = &python->acts;
	uintptr_t cframe = *(const uintptr_t *)(tstate + at->tstate_cframe);

	for (uint32_t k = acts->n; k-- > first;) {
		uintptr_t innermost = frame_of(&python->chain, acts->start[k + 1] - 1);

		for (uint32_t missed = 0; at->cframe_frame && cframe && missed < MISSED_CFRAMES;
		     missed++) {
			if (*(const uintptr_t *)(cframe + at->cframe_frame) == innermost)
				break;
			cframe = *(const uintptr_t *)(cframe + at->cframe_previous);
		}
		python->anchors[k] = cframe;
		if (cframe)
			cframe = *(const uintptr_t *)(cframe + at->cframe_previous);
	}
}

/* An activation that moved: from its first link on the stacks differ. */
static void move(struct activations *acts, uint32_t k, uint32_t at, struct parting *parting)
{
	if (acts->at[k] == at)
		return;
	if (acts->start[k] < parting->link) {
		parting->link = acts->start[k];
		parting->old_at = acts->at[k];
	}
	acts->at[k] = at;
}

/*
 * Locate activations from `first` on by an address in the native frame of each. If that frame is
 * missing (the stack is cut, or a greenlet's) the activation goes directly inside of the next outer
 * one, or outermost.
 */
static void locate_by_address(struct python *python, const struct stack_view *view,
			      uintptr_t tstate, uint32_t first, struct parting *parting)
{
	struct activations *acts = &python->acts;
	bool by_cframe = torsh_cpython.at.activations == CPYTHON_BY_CFRAME;
	uint32_t at = first ? acts->at[first - 1] : 0;

	if (by_cframe)
		read_cframes(python, tstate, first);
	for (uint32_t k = first; k < acts->n; k++) {
		uintptr_t address =
			by_cframe ? python->anchors[k] : frame_of(&python->chain, acts->start[k]);
		uint32_t found = address ? find_frame(view, at, acts->at[k], address) : NOWHERE;

		if (found == NOWHERE)
			python->anchors[k] = 0;
		at = found != NOWHERE ? found : k ? at + 1 : 0;
		move(acts, k, at, parting);
	}
}

static bool is_evaluation(const struct stack_view *view, uint32_t i)
{
	uint64_t ip = view->frames[i].tagged_ip & ((UINT64_C(1) << STACK_IP_BITS) - 1);

	/* ip is a return address: it may follow the function's last call. */
	return ip - 1 - torsh_cpython.eval_start < torsh_cpython.eval_bytes;
}

/*
 * Locate activations from `first` on, one for each native frame of the evaluation function,
 * innermost first.
 */
static void locate_by_code(struct python *python, const struct stack_view *view, uint32_t first,
			   struct parting *parting)
{
	struct activations *acts = &python->acts;
	uint32_t from = first ? acts->at[first - 1] + 1 : 0, native = view->depth, k;

	for (k = acts->n; k > first; k--) {
		while (native > from && !is_evaluation(view, native - 1))
			native--;
		if (native <= from)
			break;
		python->anchors[k - 1] = --native;
	}
	for (uint32_t i = first; i < acts->n; i++)
		move(acts, i, i < k ? from : (uint32_t)python->anchors[i], parting);
}

/*
 * Start the activations of the links after the first n_kept; returns how many are unchanged, from
 * the outermost.
 */
static uint32_t start_activations(struct python *python, uint32_t n_kept)
{
	const struct python_chain *chain = &python->chain;
	struct activations *acts = &python->acts;
	uint32_t n = acts->n, n_same;

	while (n > 0 && acts->start[n - 1] >= n_kept)
		n--;
	n_same = n;
	for (uint32_t i = n_kept; i < chain->n; i++) {
		if (chain->links[i].starts || i == 0)
			acts->start[n++] = i;
	}
	acts->n = n;
	acts->start[n] = chain->n;
	return n_same;
}

/* ---- the difference to the previous stack ---- */

/* The activation that contains a link. */
static uint32_t find_activation(const struct activations *acts, uint32_t link)
{
	uint32_t k = acts->n - 1;

	while (acts->start[k] > link)
		k--;
	return k;
}

/*
 * Locate what may have moved: activations in native frames that changed, and new ones. The
 * unchanged ones show where the stacks diverge.
 */
static struct parting locate(struct python *python, const struct stack_view *view,
			     uint32_t n_native_kept, uintptr_t tstate,
			     const struct chain_difference *difference)
{
	struct activations *acts = &python->acts;
	struct parting parting = {
		.native = n_native_kept, .link = difference->first, .old_at = NOWHERE};
	uint32_t first;

	if (parting.link < difference->n_old)
		parting.old_at = acts->at[find_activation(acts, parting.link)];
	first = start_activations(python, difference->n_kept);
	while (first > 0 && acts->at[first - 1] >= n_native_kept)
		first--;
	if (first < acts->n && torsh_cpython.at.activations == CPYTHON_BY_CODE)
		locate_by_code(python, view, first, &parting);
	else if (first < acts->n)
		locate_by_address(python, view, tstate, first, &parting);
	return parting;
}

/* The stacks diverge at the outermost difference, in the old stack or in the new one. */
static void finish_parting(const struct python *python, struct parting *parting)
{
	const struct activations *acts = &python->acts;
	uint32_t n = python->chain.n, k;

	if (parting->old_at < parting->native)
		parting->native = parting->old_at;
	if (parting->link < n) {
		k = find_activation(acts, parting->link);
		if (acts->at[k] < parting->native)
			parting->native = acts->at[k];
		if (acts->start[k] < parting->link)
			k++;
	} else {
		parting->link = n;
		k = acts->n;
	}
	/* Links inside of the first native frame that differs come after it. */
	for (; k > 0 && acts->at[k - 1] > parting->native; k--)
		parting->link = acts->start[k - 1];
}

/* Put the stack from the divergence on. */
static uint32_t put_ids(struct python *python, const struct stack_view *view,
			const struct parting *parting)
{
	const struct python_chain *chain = &python->chain;
	const struct activations *acts = &python->acts;
	uint32_t n = 0, native = parting->native, link = parting->link;

	for (uint32_t k = link < chain->n ? find_activation(acts, link) : acts->n; k < acts->n;
	     k++) {
		while (native < acts->at[k] && native < view->depth)
			python->ids[n++] = view->ids[native++];
		for (; link < acts->start[k + 1]; link++) {
			if (chain->links[link].id != PYTHON_NO_ID)
				python->ids[n++] = chain->links[link].id;
		}
	}
	while (native < view->depth)
		python->ids[n++] = view->ids[native++];
	return n;
}

/* ---- the most common case ---- */

/*
 * Whether the chain's links belong to activations as they did, which are in native frames that did
 * not change. Only CPython 3.11 has to be asked: from 3.12 on the links themselves separate
 * activations. There the record in each native frame names the innermost link of its activation,
 * and the thread state the last record. As the native frames are the same ones there are as many
 * activations as before.
 */
static inline bool are_activations_same(const struct python *python, uintptr_t tstate)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	const struct activations *acts = &python->acts;
	const uintptr_t *cframe = &python->anchors[acts->n - 1];

	if (at->activations == CPYTHON_BY_FRAME)
		return true;
	if (!*cframe || *cframe != word_at(tstate + at->tstate_cframe))
		return false;
	for (uint32_t k = acts->n - 1; k > 0; k--) {
		cframe--;
		if (!*cframe || word_at(*cframe + at->cframe_frame) !=
					frame_of(&python->chain, acts->start[k] - 1))
			return false;
	}
	return true;
}

/* Put the id of the innermost link's new line, and the native frames inside of it. */
static inline void put_innermost(struct python *python, const struct stack_view *view,
				 uint32_t n_native_kept, struct stack_delta *delta)
{
	uint32_t native = python->innermost.native, n = view->depth - native;

	delta->pop += n_native_kept - native + 1;
	delta->n_push = n + 1;
	delta->push = python->ids;
	python->ids[0] = python->innermost.id;
	/* Few as a rule: a copy of constant size is cheaper. */
	memcpy(&python->ids[1], &view->ids[native], STACK_READABLE * sizeof(python->ids[0]));
	if (n > STACK_READABLE)
		memcpy(&python->ids[1], &view->ids[native], n * sizeof(python->ids[0]));
}

/*
 * The same activations in the same native frames, with at most the innermost link on another line.
 * Returns false if that is not the case; nothing is changed then.
 */
static inline bool merge_innermost(struct python *python, const struct stack_view *view,
				   uintptr_t tstate, uintptr_t frame, struct stack_delta *delta)
{
	struct innermost *innermost = &python->innermost;
	uint32_t n_native_kept = view->depth - delta->n_push, id;
	const struct reader reader = make_reader();
	uint64_t instruction;

	if (!is_likely(innermost->frame == frame && delta->pop != STACK_POP_ALL &&
		       innermost->native < n_native_kept &&
		       word_at(frame + reader.previous) == innermost->previous &&
		       are_activations_same(python, tstate) &&
		       torsh_python_chain_skip(&python->chain, python->chain.n - 1) <=
			       python->chain.is_cut))
		return false;
	instruction = word_at(frame + reader.instruction);
	if (instruction == innermost->instruction)
		return true;
	if (!is_likely(read_code(&reader, frame) == innermost->code &&
		       is_start(frame) == innermost->starts))
		return false;
	id = find_line(&python->chain, frame, innermost->code, innermost->version, instruction);
	if (!is_likely(id != PYTHON_NO_ID))
		return false;
	innermost->instruction = instruction;
	if (id == innermost->id)
		return true;
	innermost->id = id;
	put_innermost(python, view, n_native_kept, delta);
	return true;
}

/* ---- any case ---- */

/* Have the chain know of what only the innermost link does. */
static void settle_innermost(struct python *python)
{
	const struct innermost *innermost = &python->innermost;
	uint32_t last = python->chain.n - 1;

	if (innermost->frame <= NO_FRAME)
		return;
	python->chain.states[last].instruction = innermost->instruction;
	python->chain.links[last].id = innermost->id;
}

static void keep_innermost(struct python *python)
{
	const struct python_chain *chain = &python->chain;
	const struct chain_link *link = &chain->links[chain->n - 1];

	python->innermost.frame = NO_FRAME;
	if (chain->n <= chain->is_cut || link->id == PYTHON_NO_ID ||
	    torsh_cpython.at.instruction != CPYTHON_POINTER)
		return;
	python->innermost = (struct innermost){
		.frame = frame_of(chain, chain->n - 1),
		.previous = chain->states[chain->n - 1].previous,
		.code = link->code,
		.instruction = chain->states[chain->n - 1].instruction,
		.version = link->version,
		.id = link->id,
		.native = python->acts.at[python->acts.n - 1],
		.starts = link->starts,
	};
}

static __attribute__((noinline)) void merge(struct python *python, const struct stack_view *view,
					    uintptr_t tstate, uintptr_t frame,
					    struct stack_delta *delta)
{
	bool is_anew = delta->pop == STACK_POP_ALL;
	uint32_t n_kept = is_anew ? 0 : view->depth - delta->n_push;
	struct chain_difference difference;
	struct parting parting;

	settle_innermost(python);
	python->innermost.frame = NO_FRAME;
	torsh_python_chain_update(&python->chain, frame, &difference);
	parting = locate(python, view, n_kept, tstate, &difference);
	if (is_anew) {
		parting = (struct parting){0};
	} else {
		finish_parting(python, &parting);
		delta->pop += n_kept + difference.n_old_ids - parting.native -
			      python->chain.links[parting.link].rank;
	}
	delta->n_push = put_ids(python, view, &parting);
	delta->push = python->ids;
	keep_innermost(python);
}

/* Code objects were freed: what is cached of their addresses is void. */
static __attribute__((noinline)) void drop_dead(struct python *python, uint64_t deaths)
{
	settle_innermost(python);
	torsh_python_chain_drop_dead(&python->chain, deaths);
	keep_innermost(python);
}

void torsh_python_merge(struct python *python, const struct stack *stack, bool is_main,
			struct stack_delta *delta)
{
	uintptr_t tstate = own_state(&python->second_state, is_main),
		  frame = innermost_frame(tstate);
	uint64_t deaths = atomic_load_explicit(&torsh_cpython_deaths, memory_order_relaxed);
	struct stack_view view;

	/* A thread without Python. */
	if (!(python->chain.n | frame))
		return;
	if (!is_likely(deaths == python->chain.deaths))
		drop_dead(python, deaths);
	torsh_stack_view(stack, &view);
	if (!is_likely(merge_innermost(python, &view, tstate, frame, delta)))
		merge(python, &view, tstate, frame, delta);
}
