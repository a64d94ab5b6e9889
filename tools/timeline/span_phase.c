/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a call is part of, by its name and by what is around it. See tools/timeline/span_phase.h. */
#include "tools/timeline/span_phase.h"

#include <string.h>

#include "tools/timeline/prepass/passes.h"

const char *const torsh_phase_names[N_PHASES] = {
#define PHASE(NAME, name) #name,
	CALL_PHASES
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

/* Of PyTorch's operators: what torch.nn.functional calls to compute one. */
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

/* A scope of the program's own may be called so for other reasons. */
static bool is_loss(const struct call *call)
{
	return call->traits & NAME_LOSS &&
	       (call->is_module || (call->kind == CALL_OPERATOR && call->scope != OP_USER));
}

/* The phase that what is around gives to a call, or N_PHASES: none. */
static enum call_phase phase_around(const struct call *call, const struct call *outer)
{
	if (!outer || outer->is_phase_of_time || outer->phase == PHASE_FORWARD ||
	    outer->phase == PHASE_SETUP)
		return N_PHASES;
	/*
	 * What an optimizer calls anew to have the loss (a closure) is no part of the optimizer, as
	 * far as that shows.
	 */
	if (outer->phase == PHASE_OPTIMIZER && (call->is_module || is_loss(call)))
		return N_PHASES;
	return outer->phase;
}

/*
 * Of a call that may be anything: what comes before the first module and the first batch makes
 * weights and inputs.
 */
static void set_phase_of_time(struct call *call, const struct call *outer)
{
	bool has_module = call->is_module || (outer && outer->inside);

	call->phase = call->start_ns < call->process->setup_end_ns ? PHASE_SETUP : PHASE_FORWARD;
	call->is_phase_of_time = !has_module && torsh_passes_have(call->process, call->start_ns);
	if (call->is_phase_of_time)
		call->phase = PHASE_BACKWARD;
}

void torsh_call_set_phase(struct call *call, const struct call *outer)
{
	enum call_phase around = phase_around(call, outer);

	if (call->traits & NAME_OPTIMIZER)
		call->phase = PHASE_OPTIMIZER;
	/* What a worker calls, modules too, makes batches. */
	else if (call->traits & NAME_DATA || call->process->is_data_worker)
		call->phase = PHASE_DATA;
	else if ((call->kind == CALL_OPERATOR && call->scope == OP_BACKWARD) ||
		 call->traits & NAME_BACKWARD)
		call->phase = PHASE_BACKWARD;
	else if (around != N_PHASES)
		call->phase = around;
	else if (is_loss(call))
		call->phase = PHASE_LOSS;
	else
		set_phase_of_time(call, outer);
}
