/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The processed profile format of the Firefox Profiler (https://profiler.firefox.com), version 60:
 * newer viewers upgrade it. Samples of the processor have their stacks and weights; operators,
 * modules, ranges, steps, runs of Python's collector and waits are markers of their threads.
 */
#include "tools/export/firefox/firefox.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/cpu/waits.h"

#define PROCESSED_VERSION 60
#define GECKO_VERSION 31 /* of the same time */

uint32_t torsh_firefox_text(struct firefox *firefox, const char *text)
{
	const struct hash_entry *entry;

	if (!text)
		return 0;
	entry = torsh_hash_map_put_text(&firefox->texts, text, firefox->n_strings + 1);
	if (entry->value > firefox->n_strings) {
		firefox->strings =
			torsh_array_reserve(firefox->strings, firefox->n_strings,
					    &firefox->strings_room, sizeof(*firefox->strings));
		firefox->strings[firefox->n_strings++] = entry->key;
	}
	return (uint32_t)entry->value;
}

static struct firefox_thread *thread_of(struct firefox *firefox,
					const struct recorded_process *process, uint32_t row)
{
	const uint32_t key[] = {process->number, row};
	size_t i = torsh_hash_map_put(&firefox->index, key, sizeof(key), firefox->n_threads)->value;

	if (i == firefox->n_threads) {
		firefox->threads = torsh_array_reserve(firefox->threads, i, &firefox->threads_room,
						       sizeof(*firefox->threads));
		firefox->threads[firefox->n_threads++] =
			(struct firefox_thread){.process = process, .row = row};
	}
	return &firefox->threads[i];
}

static void add_marker(struct firefox *firefox, const struct recorded_process *process,
		       uint32_t row, const struct firefox_marker *marker)
{
	struct firefox_thread *thread;

	if (!torsh_trace_has(firefox->trace, marker->begin_ns))
		return;
	thread = thread_of(firefox, process, row);
	thread->markers = torsh_array_reserve(thread->markers, thread->n_markers,
					      &thread->markers_room, sizeof(*thread->markers));
	thread->markers[thread->n_markers++] = *marker;
}

static uint32_t label_of(struct firefox *firefox, const struct recorded_process *process,
			 uint32_t label)
{
	return torsh_firefox_text(firefox, torsh_timeline_label(process, label));
}

static void see_end(void *context, struct span *span)
{
	struct firefox *firefox = context;
	bool is_range = span->kind == SPAN_RANGE && !span->is_module;
	struct firefox_marker marker = {
		.begin_ns = span->start_ns,
		.end_ns = span->end_ns,
		.name = label_of(firefox, span->process, span->name),
		.type = is_range	  ? FIREFOX_MARKER_RANGE
			: span->is_module ? FIREFOX_MARKER_MODULE
					  : FIREFOX_MARKER_OPERATOR,
		.category = is_range	      ? FIREFOX_RANGE
			    : span->is_module ? FIREFOX_MODULE
					      : FIREFOX_OPERATOR,
	};

	if (is_range) {
		marker.fields[0] = label_of(firefox, span->process, span->domain);
		marker.fields[1] = label_of(firefox, span->process, span->category);
	} else {
		marker.fields[0] = label_of(firefox, span->process, span->module);
		marker.fields[1] = torsh_firefox_text(firefox, torsh_phase_names[span->phase]);
	}
	add_marker(firefox, span->process, span->thread, &marker);
}

static void put_gc(struct firefox *firefox, const struct recorded_process *process,
		   const struct timeline_event *event)
{
	const struct event_python_gc *run = &event->event.python_gc;
	char generation[16], collected[24];

	snprintf(generation, sizeof(generation), "%" PRIu64, (uint64_t)run->generation);
	snprintf(collected, sizeof(collected), "%" PRIu64, (uint64_t)run->collected);
	add_marker(firefox, process, event->thread,
		   &(struct firefox_marker){
			   .begin_ns = run->begin,
			   .end_ns = run->begin + run->duration_ns,
			   .name = torsh_firefox_text(firefox, torsh_trace_gc_name(run)),
			   .fields = {torsh_firefox_text(firefox, generation),
				      torsh_firefox_text(firefox, collected)},
			   .node = torsh_sampled_stack(&firefox->stacks, process, event->stack),
			   .type = FIREFOX_MARKER_GC,
			   .category = FIREFOX_COLLECTOR});
}

static void put_wait(struct firefox *firefox, const struct recorded_process *process,
		     const struct timeline_event *event)
{
	const struct event_thread_wait *wait = &event->event.thread_wait;
	const char *kind, *text;

	if (wait->kind >= N_THREAD_WAIT_KINDS || wait->tid)
		return;
	kind = torsh_wait_kind_names[wait->kind];
	text = torsh_wait_kind_texts[wait->kind];
	add_marker(firefox, process, event->thread,
		   &(struct firefox_marker){
			   .begin_ns = wait->begin,
			   .end_ns = wait->begin + wait->duration_ns,
			   .name = torsh_firefox_text(firefox, "wait"),
			   .fields = {torsh_firefox_text(firefox, kind),
				      torsh_firefox_text(firefox, text)},
			   .node = torsh_sampled_stack(&firefox->stacks, process, event->stack),
			   .type = FIREFOX_MARKER_WAIT,
			   .category = FIREFOX_WAIT});
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct firefox *firefox = context;

	(void)innermost;
	if (event->event.id == EVENT_PYTHON_GC)
		put_gc(firefox, process, event);
	else if (event->event.id == EVENT_THREAD_WAIT)
		put_wait(firefox, process, event);
	else if (event->event.id == EVENT_MARK)
		add_marker(firefox, process, event->thread,
			   &(struct firefox_marker){
				   .begin_ns = event->at_ns,
				   .end_ns = event->at_ns,
				   .name = label_of(firefox, process, event->event.mark.name),
				   .type = FIREFOX_MARKER_MARK,
				   .category = FIREFOX_RANGE,
				   .is_instant = true});
	else if (event->event.id == EVENT_CPU_SAMPLER && !firefox->period_ns)
		firefox->period_ns = event->event.cpu_sampler.period_ns;
}

static void see_sample(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct firefox *firefox = context;
	struct firefox_thread *thread;

	(void)around;
	if (!torsh_trace_has(firefox->trace, event->at_ns))
		return;
	thread = thread_of(firefox, process, event->thread);
	thread->samples = torsh_array_reserve(thread->samples, thread->n_samples,
					      &thread->samples_room, sizeof(*thread->samples));
	thread->samples[thread->n_samples++] = (struct firefox_sample){
		.at_ns = event->at_ns,
		.cpu_ns = event->event.cpu_sample.cpu_ns,
		.node = torsh_sampled_stack(&firefox->stacks, process, event->stack)};
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Steps are those of the process's first thread, as the viewer shows one's markers at a time. */
static void add_steps(struct firefox *firefox, const struct recorded_process *process)
{
	const struct steps *steps = &torsh_prepass_of(firefox->trace->prepass, process)->steps;
	char name[32];

	/* Requests are ranges, and shown as such. */
	for (size_t i = 0; i < steps->n && !steps->slices; i++) {
		const struct step *step = &steps->items[i];

		snprintf(name, sizeof(name), "step %" PRIu64, step->number);
		add_marker(firefox, process, 0,
			   &(struct firefox_marker){
				   .begin_ns = step->start_ns,
				   .end_ns = step->end_ns,
				   .name = torsh_firefox_text(firefox, name),
				   .fields = {torsh_firefox_text(
					   firefox, torsh_step_rule_texts[steps->rule])},
				   .type = FIREFOX_MARKER_STEP,
				   .category = FIREFOX_RANGE});
	}
}

/* ---- the head -------------------------------------------------------------------------------- */

static void put_categories(struct json_writer *json)
{
	static const char *const names[][2] = {
#define CATEGORY(NAME, name, color) {name, color},
		FIREFOX_CATEGORIES
#undef CATEGORY
	};

	torsh_json_begin_array(json, "categories");
	for (size_t i = 0; i < N_FIREFOX_CATEGORIES; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", names[i][0]);
		torsh_json_put_text(json, "color", names[i][1]);
		torsh_json_begin_array(json, "subcategories");
		torsh_json_put_text(json, NULL, "Other");
		torsh_json_end_array(json);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_field(struct json_writer *json, const char *key, const char *label)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "key", key);
	torsh_json_put_text(json, "label", label);
	torsh_json_put_text(json, "format", "unique-string");
	torsh_json_end_object(json);
}

static void put_schemas(struct json_writer *json)
{
	static const char *const schemas[][5] = {
#define MARKER(NAME, type, ...) {type, __VA_ARGS__},
		FIREFOX_MARKERS
#undef MARKER
	};
	static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};

	torsh_json_begin_array(json, "markerSchema");
	for (size_t i = 0; i < N_FIREFOX_MARKERS; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", schemas[i][0]);
		torsh_json_put_text(json, "tooltipLabel", "{marker.name}");
		torsh_json_put_text(json, "tableLabel", "{marker.name}");
		torsh_json_put_text(json, "chartLabel", "{marker.name}");
		torsh_json_begin_array(json, "display");
		for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++)
			torsh_json_put_text(json, NULL, places[k]);
		torsh_json_end_array(json);
		torsh_json_begin_array(json, "fields");
		put_field(json, schemas[i][1], schemas[i][2]);
		put_field(json, schemas[i][3], schemas[i][4]);
		torsh_json_end_array(json);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_meta(struct firefox *firefox)
{
	struct json_writer *json = &firefox->json;
	const struct recording *recording = firefox->trace->recording;
	const struct recorded_process *first = firefox->trace->processes[0];

	torsh_json_begin_object(json, "meta");
	/* The viewer requires a number: without a sampler 1 ms, as it does itself. */
	torsh_json_put_double(json, "interval",
			      firefox->period_ns ? (double)firefox->period_ns / 1e6 : 1);
	torsh_json_put_double(json, "startTime", (double)recording->start_realtime_ns / 1e6);
	torsh_json_put_u64(json, "processType", 0);
	torsh_json_put_text(json, "product", torsh_recording_program_name(first));
	torsh_json_put_text(json, "importedFrom", "torsh");
	if (recording->host)
		torsh_json_put_text(json, "device", recording->host);
	torsh_json_put_u64(json, "stackwalk", 1);
	torsh_json_put_u64(json, "version", GECKO_VERSION);
	torsh_json_put_u64(json, "preprocessedProfileVersion", PROCESSED_VERSION);
	torsh_json_put_bool(json, "symbolicated", true);
	torsh_json_put_bool(json, "usesOnlyOneStackType", true);
	torsh_json_put_bool(json, "sourceCodeIsNotOnSearchfox", true);
	torsh_json_put_bool(json, "keepProfileThreadOrder", true);
	torsh_json_begin_object(json, "sampleUnits");
	torsh_json_put_text(json, "time", "ms");
	torsh_json_put_text(json, "eventDelay", "ms");
	torsh_json_put_text(json, "threadCPUDelta", "ns");
	torsh_json_end_object(json);
	put_categories(json);
	put_schemas(json);
	torsh_json_end_object(json);
}

static void put_profile(struct firefox *firefox)
{
	struct json_writer *json = &firefox->json;

	torsh_stream_begin_json(firefox->trace->output, json);
	torsh_json_begin_with(json, NULL, true, &torsh_json_member_lines);
	put_meta(firefox);
	torsh_firefox_put_threads(firefox);
	torsh_firefox_put_tables(firefox);
	torsh_json_end_object(json);
	torsh_stream_end_json(firefox->trace->output, json);
}

static int write_firefox(struct trace *trace)
{
	static const struct span_visitor visitor = {
		.end = see_end, .event = see_event, .sample = see_sample};
	struct firefox firefox = {.trace = trace};
	int rc;

	torsh_sampled_stacks_create(&firefox.stacks, trace->symbols);
	for (size_t i = 0; i < trace->n_processes; i++)
		add_steps(&firefox, trace->processes[i]);
	rc = torsh_trace_walk(trace, &visitor, NULL, &firefox);
	put_profile(&firefox);
	for (size_t i = 0; i < firefox.n_threads; i++) {
		free(firefox.threads[i].samples);
		free(firefox.threads[i].markers);
	}
	free(firefox.threads);
	free(firefox.strings);
	torsh_hash_map_free(&firefox.index);
	torsh_hash_map_free(&firefox.texts);
	torsh_sampled_stacks_free(&firefox.stacks);
	return rc;
}

const struct trace_format torsh_trace_firefox = {.name = "firefox",
						 .ending = ".firefox.json",
						 .has_samples = true,
						 .needs = TRACE_NEEDS_EVENTS,
						 .write = write_firefox};
