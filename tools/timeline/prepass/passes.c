/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/passes.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define CANDIDATES 65536u /* a power of two; on a collision the setup seems longer */

/*
 * Of the operators with a sequence number the last outermost one: it created autograd's node with
 * this number. start_ns 0: none.
 */
struct candidate {
	uint64_t sequence, start_ns;
	uint32_t forward_thread;
};

struct pass_finder {
	struct profile_pass *passes;
	size_t n, n_room;
	bool is_open; /* the last pass is not ended yet */
	/*
	 * operators were recorded since autograd's last node: the next node belongs to another
	 * pass
	 */
	bool has_recorded;
	bool has_start; /* the first module or batch was found */
	uint64_t start_ns;
	struct candidate *candidates; /* by torsh_span_slot; NULL: none yet */
	uint64_t first_ns; /* start of the first candidate that the first pass uses; 0: none */
};

struct pass_finder *torsh_pass_finder_create(void)
{
	return torsh_need(calloc(1, sizeof(struct pass_finder)));
}

void torsh_pass_finder_destroy(struct pass_finder *finder)
{
	free(finder->passes);
	free(finder->candidates);
	free(finder);
}

static bool is_node(const struct span *span)
{
	return (span->kind == SPAN_OPERATOR && span->scope == OP_BACKWARD) ||
	       span->traits & NAME_BACKWARD;
}

/*
 * A gradient that is computed within a module's forward, or traced there by a compiler, is no pass
 * of the training.
 */
static bool is_in_forward(const struct span *span)
{
	return torsh_span_outer_module(span) &&
	       torsh_span_outer_module(span)->phase == PHASE_FORWARD;
}

/* ---- the end of the setup, where no module and no batch shows it ----------------------------- */

static void add_candidate(struct pass_finder *finder, const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	if (outer && outer->sequence == span->sequence)
		return;
	if (!finder->candidates)
		finder->candidates = torsh_need(calloc(CANDIDATES, sizeof(*finder->candidates)));
	finder->candidates[torsh_span_slot(span, CANDIDATES)] =
		(struct candidate){.sequence = span->sequence,
				   .start_ns = span->start_ns,
				   .forward_thread = span->forward_thread};
}

static void see_first_pass(struct pass_finder *finder, const struct span *span)
{
	const struct candidate *candidate;

	if (!finder->candidates || span->sequence == OP_NO_SEQUENCE)
		return;
	candidate = &finder->candidates[torsh_span_slot(span, CANDIDATES)];
	if (candidate->start_ns && candidate->sequence == span->sequence &&
	    candidate->forward_thread == span->forward_thread &&
	    (!finder->first_ns || candidate->start_ns < finder->first_ns))
		finder->first_ns = candidate->start_ns;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void see_node(struct pass_finder *finder, const struct span *span)
{
	if (!finder->is_open || finder->has_recorded) {
		finder->passes = torsh_array_reserve(finder->passes, finder->n, &finder->n_room,
						     sizeof(*finder->passes));
		finder->passes[finder->n++] =
			(struct profile_pass){.start_ns = span->start_ns, .end_ns = span->start_ns};
		finder->is_open = true;
		finder->has_recorded = false;
	}
	if (finder->n == 1 && !finder->has_start)
		see_first_pass(finder, span);
}

/* Returns whether the span shows that a training has begun its next batch. */
static bool is_next(const struct span *span)
{
	return span->traits & NAME_DATA ||
	       (span->phase != PHASE_BACKWARD && (span->is_module || span->traits & NAME_LOSS));
}

void torsh_pass_finder_begin(struct pass_finder *finder, const struct span *span)
{
	if ((span->is_module || span->traits & NAME_DATA) && !finder->has_start) {
		finder->has_start = true;
		finder->start_ns = span->start_ns;
	}
	if (is_node(span)) {
		if (!is_in_forward(span))
			see_node(finder, span);
		return;
	}
	if (finder->is_open && span->traits & NAME_OPTIMIZER)
		finder->passes[finder->n - 1].end_ns = span->start_ns;
	if (span->traits & NAME_OPTIMIZER || is_next(span))
		finder->is_open = false;
	if (span->kind != SPAN_OPERATOR || span->scope != OP_FUNCTION ||
	    span->sequence == OP_NO_SEQUENCE)
		return;
	if (span->phase == PHASE_FORWARD || span->is_phase_of_time)
		finder->has_recorded = true;
	if (!finder->n && !finder->has_start)
		add_candidate(finder, span);
}

void torsh_pass_finder_end(struct pass_finder *finder, const struct span *span)
{
	if (finder->is_open && is_node(span) && span->end_ns > finder->passes[finder->n - 1].end_ns)
		finder->passes[finder->n - 1].end_ns = span->end_ns;
}

void torsh_pass_finder_decide(struct pass_finder *finder, struct recorded_process *process)
{
	process->setup_end_ns = finder->has_start ? finder->start_ns : finder->first_ns;
	free(process->passes);
	process->passes = finder->passes;
	process->n_passes = finder->n;
	finder->passes = NULL;
	finder->n = finder->n_room = 0;
}

bool torsh_passes_have(const struct recorded_process *process, uint64_t at_ns)
{
	size_t low = 0, high = process->n_passes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->passes[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->n_passes && process->passes[low].start_ns <= at_ns;
}
