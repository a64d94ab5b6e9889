/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/cpu_samples.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/memory.h"

struct collector {
	struct cpu_samples *samples;
	const struct prepass *prepass;
	struct recorded_process *const *processes;
};

/* What distinguishes rows, without padding. */
struct row_key {
	uint64_t op, module, step;
	uint32_t process, thread, stack;
	int32_t phase;
};

const char *torsh_cpu_source(uint32_t source)
{
	return source == CPU_SOURCE_TIMER  ? "timer"
	       : source == CPU_SOURCE_PERF ? "perf_event"
					   : NULL;
}

static size_t number_of(const struct collector *collector, const struct recorded_process *process)
{
	size_t i = 0;

	while (collector->processes[i] != process)
		i++;
	return i;
}

static const char *text_of(struct collector *collector, const struct recorded_process *process,
			   uint32_t label)
{
	return torsh_intern(&collector->samples->texts, torsh_timeline_label(process, label));
}

/* Where the thread was: the innermost operator, module and phase around the sample. */
static void place(struct collector *collector, struct cpu_row *row,
		  const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct prepass_process *of = torsh_prepass_of(collector->prepass, row->process);
	const struct module_chain *modules = torsh_enclosing_modules(around);
	const struct span *innermost = around->innermost ? around->innermost : around->in_operator;
	const struct span *inside = around->in_operator;
	size_t step = torsh_steps_of(&of->steps, event->at_ns, event->thread);

	while (inside && inside->scope == OP_USER)
		inside = torsh_span_outer_operator(inside);
	row->op = inside ? text_of(collector, row->process, inside->name) : NULL;
	row->module = modules ? text_of(collector, row->process, modules->module) : NULL;
	row->phase = innermost ? (int)innermost->phase : -1;
	row->has_step = step != STEP_NONE;
	row->step = row->has_step ? of->steps.items[step].number : 0;
}

static void add(struct collector *collector, const struct cpu_row *sample)
{
	struct cpu_samples *samples = collector->samples;
	struct row_key key = {
		.op = (uintptr_t)sample->op,
		.module = (uintptr_t)sample->module,
		.step = sample->has_step ? sample->step : UINT64_MAX,
		.process = (uint32_t)number_of(collector, sample->process),
		.thread = sample->thread,
		.stack = sample->stack,
		.phase = sample->phase,
	};
	size_t i = torsh_hash_map_put(&samples->index, &key, sizeof(key), samples->n)->value;

	if (i == samples->n) {
		samples->rows = torsh_array_reserve(samples->rows, samples->n, &samples->n_room,
						    sizeof(*samples->rows));
		samples->rows[samples->n] = *sample;
		samples->rows[samples->n].n = samples->rows[samples->n].ns = 0;
		samples->rows[samples->n++].n_lost = 0;
	}
	samples->rows[i].n++;
	samples->rows[i].ns += sample->ns;
	samples->rows[i].n_lost += sample->n_lost;
}

static void see_sample(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct collector *collector = context;
	const struct event_cpu_sample *taken = &event->event.cpu_sample;
	struct cpu_row row = {.thread = event->thread,
			      .stack = event->stack,
			      .ns = taken->cpu_ns,
			      .n_lost = taken->overruns};

	if (event->event.id != EVENT_CPU_SAMPLE ||
	    !torsh_prepass_has(collector->prepass, process, event->at_ns))
		return;
	row.process = collector->processes[number_of(collector, process)];
	place(collector, &row, event, around);
	add(collector, &row);
	collector->samples->n_samples++;
	collector->samples->ns += taken->cpu_ns;
	collector->samples->n_lost += taken->overruns;
	collector->samples->n_without_stack += !event->stack;
}

static void add_gc(struct cpu_gc *sum, const struct cpu_gc *more)
{
	sum->n += more->n;
	sum->ns += more->ns;
	sum->n_collected += more->n_collected;
	if (more->longest_ns > sum->longest_ns)
		sum->longest_ns = more->longest_ns;
}

struct cpu_gc torsh_cpu_gc_sum(const struct cpu_samples *samples)
{
	struct cpu_gc sum = {0};

	for (size_t i = 0; i < CPU_GC_GENERATIONS; i++)
		add_gc(&sum, &samples->gc[i]);
	return sum;
}

static void see_gc(struct collector *collector, const struct recorded_process *process,
		   const struct event_python_gc *run)
{
	const struct cpu_gc one = {.n = 1,
				   .ns = run->duration_ns,
				   .longest_ns = run->duration_ns,
				   .n_collected = run->collected};

	/* The file is untrusted. */
	if (run->generation < CPU_GC_GENERATIONS &&
	    torsh_prepass_has(collector->prepass, process, run->begin))
		add_gc(&collector->samples->gc[run->generation], &one);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct collector *collector = context;
	const struct event_cpu_sampler *sampler = &event->event.cpu_sampler;

	(void)innermost;
	if (event->event.id == EVENT_PYTHON_GC)
		see_gc(collector, process, &event->event.python_gc);
	if (event->event.id != EVENT_CPU_SAMPLER)
		return;
	collector->samples->sampling[number_of(collector, process)] = (struct cpu_sampling){
		.process = process,
		.is_known = true,
		.source = sampler->source,
		.asked_hz = sampler->asked_hz,
		.signal = sampler->signal,
		.period_ns = sampler->period_ns,
		.reason = torsh_timeline_label(process, sampler->reason),
	};
}

void torsh_cpu_samples_collect(struct cpu_samples *samples, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n_processes,
			       const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.event = see_event, .sample = see_sample};
	struct collector collector = {
		.samples = samples, .prepass = prepass, .processes = processes};
	int rc;

	*samples = (struct cpu_samples){.n_sampling = n_processes};
	samples->sampling = torsh_need_items(NULL, 0, n_processes, sizeof(*samples->sampling));
	for (size_t i = 0; i < n_processes; i++)
		samples->sampling[i].process = processes[i];
	rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			       &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
}

void torsh_cpu_samples_free(struct cpu_samples *samples)
{
	torsh_hash_map_free(&samples->index);
	torsh_intern_free(&samples->texts);
	free(samples->rows);
	free(samples->sampling);
	*samples = (struct cpu_samples){0};
}
