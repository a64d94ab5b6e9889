/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/whatif.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/memory/whatif/batch_scale.h"
#include "tools/memory/whatif/recompute.h"

/* What the model doesn't know of a recorded run. */
static void add_limits(struct assumptions *assumptions, const struct memory_trace *trace)
{
	char text[SIZE_TEXT_BYTES];

	torsh_assumptions_add(
		assumptions, "All tensors are of one stream, and a freed block can be used at "
			     "once: streams and Tensor.record_stream() are not recorded for them.");
	if (trace->before_bytes)
		torsh_assumptions_add(assumptions,
				      "%s were allocated before the recording began: they are "
				      "left out.",
				      torsh_size_human(trace->before_bytes, text));
	if (trace->unknown_frees)
		torsh_assumptions_add(assumptions,
				      "%s of blocks from before the recording are left out.",
				      torsh_size_counted(trace->unknown_frees, "free", text));
	if (trace->releases)
		torsh_assumptions_add(assumptions,
				      "The cache is released as often as in the recorded run: %s.",
				      torsh_size_counted(trace->releases, "time", text));
	if (trace->out_of_memory)
		torsh_assumptions_add(assumptions,
				      "The recorded run was out of memory %s: what it did after "
				      "that is replayed as recorded.",
				      torsh_size_counted(trace->out_of_memory, "time", text));
}

/* The allocator's settings in the recorded run. */
struct recorded_settings {
	struct allocator_settings settings;
	const char *text; /* NULL: not recorded */
};

static void read_settings(struct recorded_settings *recorded, const struct memory_trace *trace,
			  const struct prepass *prepass, struct assumptions *assumptions)
{
	const struct prepass_process *of = torsh_prepass_of(prepass, trace->process);
	const char *at;

	torsh_allocator_settings_default(&recorded->settings);
	recorded->text = of ? torsh_process_attributes_find(&of->facts, "torch_alloc_conf") : NULL;
	if (!recorded->text)
		return;
	if (torsh_allocator_settings_parse(&recorded->settings, recorded->text, &at) < 0)
		torsh_assumptions_add(assumptions,
				      "The allocator's settings are not understood from here on: "
				      "%s.",
				      at);
	if (!recorded->settings.is_native)
		torsh_assumptions_add(assumptions,
				      "The recorded run had another allocator (%s), which the "
				      "model does not have.",
				      recorded->text);
}

/*
 * Replay the trace as it was recorded. Where no settings were recorded, those that fit better are
 * taken: PyTorch's own, or expandable segments.
 */
static struct replay replay_recorded(struct recorded_settings *recorded,
				     const struct memory_trace *trace,
				     struct assumptions *assumptions)
{
	struct replay replay = torsh_replay(trace, &recorded->settings, 0), other;
	struct allocator_settings expandable = recorded->settings;
	double difference = torsh_replay_difference(&replay, &trace->recorded);

	if (recorded->text || difference <= WHATIF_TOLERANCE)
		return replay;
	expandable.is_expandable = true;
	other = torsh_replay(trace, &expandable, 0);
	if (torsh_replay_difference(&other, &trace->recorded) >= difference)
		return replay;
	torsh_assumptions_add(assumptions,
			      "The recorded run had expandable segments: so its sums fit better.");
	recorded->settings = expandable;
	return other;
}

static void run_out(struct whatif_answer *answer, const struct memory_trace *trace,
		    const struct replay *replay, const struct prepass *prepass)
{
	const struct prepass_process *of = torsh_prepass_of(prepass, trace->process);
	size_t step;

	answer->is_out_of_memory = true;
	answer->missing_bytes = replay->missing_bytes;
	answer->at_failure = replay->at_failure;
	answer->failed = trace->blocks[replay->failed_block];
	step = of ? torsh_steps_find(of->steps.items, of->steps.n, answer->failed.at_ns)
		  : STEP_NONE;
	answer->has_step = step != STEP_NONE;
	if (answer->has_step)
		answer->step = of->steps.items[step].number;
}

static void try_capacity(struct whatif_answer *answer, const struct memory_trace *trace,
			 const struct allocator_settings *settings, uint64_t capacity_bytes,
			 const struct prepass *prepass)
{
	struct replay replay = torsh_replay(trace, settings, capacity_bytes);

	torsh_assumptions_add(
		&answer->assumptions,
		"The capacity is all for tensors: CUDA's context, the code of kernels "
		"and other libraries need some of a device as well.");
	if (settings->collection_threshold > 0)
		torsh_assumptions_add(&answer->assumptions,
				      "garbage_collection_threshold is taken of the capacity, as "
				      "if set_per_process_memory_fraction() had set that.");
	if (replay.is_out_of_memory)
		run_out(answer, trace, &replay, prepass);
}

/* What is collected of a process for all of its devices. */
struct process_facts {
	struct batch batch;
	struct module_calls calls;
};

static void answer_device(struct whatif_answer *answer, const struct whatif_question *question,
			  struct memory_trace *trace, const struct prepass *prepass,
			  const struct process_facts *facts)
{
	struct recorded_settings recorded;
	const struct allocator_settings *settings;
	struct replay replay;

	answer->process = trace->process;
	answer->device = trace->device;
	answer->recorded = trace->recorded;
	read_settings(&recorded, trace, prepass, &answer->assumptions);
	replay = replay_recorded(&recorded, trace, &answer->assumptions);
	if (torsh_replay_difference(&replay, &trace->recorded) > 0) {
		torsh_replay_fit(trace, &recorded.settings);
		replay = torsh_replay(trace, &recorded.settings, 0);
	}
	answer->replayed = replay.peak;
	answer->difference = torsh_replay_difference(&replay, &trace->recorded);
	settings = question->settings ? question->settings : &recorded.settings;
	add_limits(&answer->assumptions, trace);
	if (question->batch_factor > 0)
		torsh_batch_scale(trace, &facts->batch, question->batch_factor,
				  &answer->assumptions);
	if (facts->calls.n)
		torsh_recompute(trace, &facts->calls, &answer->assumptions);
	answer->predicted = torsh_replay(trace, settings, 0).peak;
	if (question->capacity_bytes)
		try_capacity(answer, trace, settings, question->capacity_bytes, prepass);
}

/* Returns the number of the module's calls. */
static size_t answer_process(struct whatif *whatif, const struct whatif_question *question,
			     const struct recording *recording, struct recorded_process *process,
			     const struct prepass *prepass)
{
	struct process_facts facts = {0};
	struct memory_traces traces;

	torsh_batch_collect(&facts.batch, recording, process, prepass);
	torsh_memory_traces_collect(&traces, recording, process, prepass, &facts.batch);
	if (question->checkpoint && traces.n)
		torsh_module_calls_collect(&facts.calls, question->checkpoint, recording, process,
					   prepass);
	whatif->items = torsh_need_items(whatif->items, whatif->n, whatif->n + traces.n,
					 sizeof(*whatif->items));
	for (size_t i = 0; i < traces.n; i++)
		answer_device(&whatif->items[whatif->n++], question, &traces.items[i], prepass,
			      &facts);
	torsh_memory_traces_free(&traces);
	torsh_batch_free(&facts.batch);
	torsh_module_calls_free(&facts.calls);
	return facts.calls.n;
}

void torsh_whatif_answer(struct whatif *whatif, const struct whatif_question *question,
			 const struct recording *recording,
			 struct recorded_process *const *processes, size_t n_processes,
			 const struct prepass *prepass)
{
	size_t n_calls = 0;

	*whatif = (struct whatif){0};
	for (size_t i = 0; i < n_processes; i++) {
		const struct prepass_process *of = torsh_prepass_of(prepass, processes[i]);

		if (of && of->n_tensors)
			n_calls +=
				answer_process(whatif, question, recording, processes[i], prepass);
	}
	if (question->checkpoint && whatif->n && !n_calls)
		torsh_die("no module has the class or path %s in this recording: `torsh modules` "
			  "lists them",
			  question->checkpoint);
}

void torsh_whatif_free(struct whatif *whatif)
{
	for (size_t i = 0; i < whatif->n; i++)
		torsh_assumptions_free(&whatif->items[i].assumptions);
	free(whatif->items);
}
