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

#include <pthread.h>
#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/process/callbacks.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/python/python_chain.h"
#include "shim/cpython/cpython.h"

#define is_likely(x) __builtin_expect(!!(x), 1)
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

struct python {
	struct python_chain chain;
	struct activations acts;
	uintptr_t second_state; /* see running_state; 0: none */
	/* not located yet: an address in the native frame of each activation */
	uintptr_t anchors[CHAIN_MAX_LINKS];
	uint32_t ids[STACK_MAX_FRAMES + CHAIN_MAX_LINKS + STACK_READABLE];
};

/* ---- the interpreter ------------ */

static void note_unsupported(void)
{
	struct text text = torsh_text_map(TEXT_NOTE_BYTES);

	torsh_text_put(&text, "python: this agent does not support the frames of CPython ");
	torsh_text_put_number(&text, torsh_cpython.version >> 8);
	torsh_text_put(&text, ".");
	torsh_text_put_number(&text, torsh_cpython.version & 0xff);
	torsh_text_put(&text, ": stacks are native ones only");
	torsh_channel_note(&torsh_process->channel, text.bytes);
	torsh_text_unmap(&text);
}

static void watch_memory(const struct link_map *map)
{
	if (torsh_callbacks.interpreter_found(map))
		torsh_channel_note(&torsh_process->channel,
				   "python: TORSH_PROFILER_PYTHON_ALLOCATORS has no effect: the "
				   "interpreter was running before it was seen");
}

void torsh_python_detect(const struct link_map *map)
{
	enum cpython_answer answer;

	if (!map || !(torsh_config.activities & ACTIVITY_PYTHON))
		return;
	answer = torsh_cpython_consider(map);
	if (answer == CPYTHON_UNKNOWN)
		note_unsupported();
	if (answer != CPYTHON_NONE && torsh_config.python_allocators)
		watch_memory(map);
}

size_t torsh_python_bytes(void)
{
	return sizeof(struct python);
}

void torsh_python_invalidate(struct python *python)
{
	memset(python, 0, sizeof(*python));
}

/* ---- the thread's state ---- */

/* Another thread's state may be freed during the look-up. */
static bool is_own(uintptr_t state)
{
	uintptr_t locate = state + torsh_cpython.at.tstate_thread_id;

	return state && torsh_probe(locate) && *(const pthread_t *)locate == pthread_self();
}

/*
 * Before 3.12 a thread that runs a second interpreter still reports its first state. The running
 * state is the one that holds the lock, if it is this thread's; without the lock it is the one that
 * held it last, as long as that has frames.
 */
static uintptr_t running_state(struct python *python, uintptr_t first)
{
	uintptr_t holder = (uintptr_t)torsh_cpython.holder();

	if (holder == first)
		python->second_state = 0;
	else if (is_own(holder))
		python->second_state = holder;
	else if (!is_own(python->second_state) || !torsh_python_innermost(python->second_state))
		python->second_state = 0;
	return python->second_state ? python->second_state : first;
}

static uintptr_t own_state(struct python *python, bool is_main)
{
	uintptr_t state;

	if (!is_main && torsh_cpython.is_finalizing())
		return 0;
	state = (uintptr_t)torsh_cpython.this_thread();
	if (state && torsh_cpython.holder &&
	    torsh_cpython.first_interpreter() != torsh_cpython.main_interpreter())
		return running_state(python, state);
	return state;
}

/* ---- locating activations ------------------------- */

/* Where two stacks diverge: the number of common native frames and links. */
struct parting {
	uint32_t native, link;
	uint32_t old_at; /* of the first link of the old stack that isn't common; NOWHERE: none */
};

static bool holds(const struct stack_view *view, uint32_t i, uintptr_t address)
{
	return view->sp[i] <= address && (i == 0 || address < view->sp[i - 1]);
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
		uintptr_t innermost = python->chain.links.frame[acts->start[k + 1] - 1];

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
			by_cframe ? python->anchors[k] : python->chain.links.frame[acts->start[k]];
		uint32_t found = address ? find_frame(view, at, acts->at[k], address) : NOWHERE;

		at = found != NOWHERE ? found : k ? at + 1 : 0;
		move(acts, k, at, parting);
	}
}

static bool is_evaluation(const struct stack_view *view, uint32_t i)
{
	uint64_t ip = view->ip[i] & ((UINT64_C(1) << STACK_IP_BITS) - 1);

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
		if (chain->links.starts[i] || i == 0)
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
			if (chain->id[link] != PYTHON_NO_ID)
				python->ids[n++] = chain->id[link];
		}
	}
	while (native < view->depth)
		python->ids[n++] = view->ids[native++];
	return n;
}

/*
 * The most common case: the same activations in the same native frames, with at most the innermost
 * link on another line. Returns false if that is not the case; nothing is changed then.
 */
static inline bool merge_innermost(struct python *python, const struct stack_view *view,
				   uint32_t n_native_kept,
				   const struct chain_difference *difference,
				   struct stack_delta *delta)
{
	const struct python_chain *chain = &python->chain;
	const struct activations *acts = &python->acts;
	uint32_t last = chain->n - 1, native, n = 0;

	if (!acts->n || chain->n != difference->n_old || difference->n_kept < last ||
	    difference->n_kept <= acts->start[acts->n - 1] ||
	    (difference->n_kept == last && chain->links.starts[last]) ||
	    acts->at[acts->n - 1] >= n_native_kept)
		return false;
	if (difference->first > last)
		return true;
	native = acts->at[acts->n - 1];
	delta->pop += n_native_kept - native + difference->n_old_ids - chain->rank[last];
	if (chain->id[last] != PYTHON_NO_ID)
		python->ids[n++] = chain->id[last];
	/* Few as a rule: a copy of constant size is cheaper. */
	memcpy(&python->ids[n], &view->ids[native], STACK_READABLE * sizeof(python->ids[0]));
	if (view->depth - native > STACK_READABLE)
		memcpy(&python->ids[n], &view->ids[native],
		       (view->depth - native) * sizeof(python->ids[0]));
	delta->n_push = n + view->depth - native;
	delta->push = python->ids;
	return true;
}

void torsh_python_merge(struct python *python, const struct stack *stack, bool is_main,
			struct stack_delta *delta)
{
	struct python_chain *chain = &python->chain;
	struct chain_difference difference;
	bool is_anew = delta->pop == STACK_POP_ALL;
	uintptr_t tstate = own_state(python, is_main);
	struct parting parting;
	struct stack_view view;
	uint32_t n_kept;

	torsh_stack_view(stack, &view);
	n_kept = is_anew ? 0 : view.depth - delta->n_push;
	torsh_python_chain_update(chain, tstate, &difference);
	if (is_likely(!is_anew) && merge_innermost(python, &view, n_kept, &difference, delta))
		return;
	parting = locate(python, &view, n_kept, tstate, &difference);
	if (is_anew) {
		parting = (struct parting){0};
	} else {
		finish_parting(python, &parting);
		delta->pop +=
			n_kept + difference.n_old_ids - parting.native - chain->rank[parting.link];
	}
	delta->n_push = put_ids(python, &view, &parting);
	delta->push = python->ids;
}
