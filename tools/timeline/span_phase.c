/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The phase of a span, by its name and by the enclosing span. */
#include "tools/timeline/span_phase.h"

#include <string.h>

#include "tools/timeline/prepass/passes.h"

const char *const torsh_phase_names[N_PHASES] = {
#define PHASE(NAME, name) #name,
	SPAN_PHASES
#undef PHASE
};

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Operators of PyTorch that torch.nn.functional's losses call. */
static bool is_loss_operator(const char *name)
{
	return begins_with(name, "aten::") && !strstr(name, "backward") &&
	       (strstr(name, "_loss") || strstr(name, "cross_entropy") ||
		ends_with(name, "::kl_div"));
}

uint8_t torsh_name_traits(const char *name)
{
	uint8_t traits = NAME_SEEN;

	if (begins_with(name, "autograd::engine::evaluate_function") ||
	    (begins_with(name, "FSDP::") && strstr(name, "backward")))
		traits |= NAME_BACKWARD;
	if (begins_with(name, "Optimizer.step#"))
		traits |= NAME_OPTIMIZER | NAME_OPTIMIZER_STEP;
	if (begins_with(name, "Optimizer.zero_grad#"))
		traits |= NAME_OPTIMIZER;
	if (begins_with(name, "enumerate(DataLoader)#"))
		traits |= NAME_DATA | (strstr(name, "MultiProcessing") ? NAME_DATA_OF_WORKERS : 0);
	if (begins_with(name, "ProfilerStep#"))
		traits |= NAME_PROFILER_STEP;
	if (ends_with(name, "Loss") || is_loss_operator(name))
		traits |= NAME_LOSS;
	return traits;
}

/* A scope of the program may have such a name for other reasons. */
static bool is_loss(const struct span *span)
{
	return span->traits & NAME_LOSS &&
	       (span->is_module || (span->kind == SPAN_OPERATOR && span->scope != OP_USER));
}

/* Returns the phase that the enclosing span gives to a span, or N_PHASES: none. */
static enum span_phase phase_around(const struct span *span, const struct span *outer)
{
	if (!outer || outer->is_phase_of_time || outer->phase == PHASE_FORWARD ||
	    outer->phase == PHASE_SETUP)
		return N_PHASES;
	/*
	 * A closure that an optimizer calls to compute the loss again is not part of the
	 * optimizer, if its spans show that.
	 */
	if (outer->phase == PHASE_OPTIMIZER && (span->is_module || is_loss(span)))
		return N_PHASES;
	return outer->phase;
}

/*
 * For a span without a phase of its own: before the first module and the first batch, weights and
 * inputs are made.
 */
static void set_phase_of_time(struct span *span, const struct span *outer)
{
	bool has_module = span->is_module || (outer && outer->inside);

	span->phase = span->start_ns < span->process->setup_end_ns ? PHASE_SETUP : PHASE_FORWARD;
	span->is_phase_of_time = !has_module && torsh_passes_have(span->process, span->start_ns);
	if (span->is_phase_of_time)
		span->phase = PHASE_BACKWARD;
}

void torsh_span_set_phase(struct span *span, const struct span *outer)
{
	enum span_phase around = phase_around(span, outer);

	if (span->traits & NAME_OPTIMIZER)
		span->phase = PHASE_OPTIMIZER;
	/* All work of a data worker, modules too, makes batches. */
	else if (span->traits & NAME_DATA || span->process->is_data_worker)
		span->phase = PHASE_DATA;
	else if ((span->kind == SPAN_OPERATOR && span->scope == OP_BACKWARD) ||
		 span->traits & NAME_BACKWARD)
		span->phase = PHASE_BACKWARD;
	else if (around != N_PHASES)
		span->phase = around;
	else if (is_loss(span))
		span->phase = PHASE_LOSS;
	else
		set_phase_of_time(span, outer);
}
