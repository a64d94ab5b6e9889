/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A directory for TensorBoard: an event file with scalars for each step (time, phases, FLOP/s,
 * memory of each device), the program's own values, histograms and the graph of a step; and next
 * to it the trace that its profiler plugin reads. With several processes, each is a run in its own
 * directory; their traces are workers of one run of the plugin.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/base/private_file.h"
#include "tools/export/output.h"
#include "tools/export/tensorboard/tensorboard_graph.h"
#include "tools/export/tensorboard/tensorboard_heap.h"
#include "tools/export/tensorboard/tensorboard_histogram.h"
#include "tools/memory/tensors.h"
#include "tools/ops/step_totals.h"

#define MEBIBYTE 0x1p20 /* a float has seven digits: too few for bytes */
#define DEVICES_MAX 64u /* per process; more are treated as damage */
#define TAG_BYTES_MAX 96
#define HOST_BYTES_MAX 64

/* HISTOGRAM(NAME, tag): computed from the recording. */
#define HISTOGRAMS                                     \
	HISTOGRAM(OPERATORS, "durations/operators_us") \
	HISTOGRAM(TENSORS, "sizes/tensors_bytes")

enum histogram_of {
#define HISTOGRAM(NAME, tag) HISTOGRAM_##NAME,
	HISTOGRAMS
#undef HISTOGRAM
		N_HISTOGRAMS
};

struct device_held {
	uint32_t device;
	int64_t sum; /* of its allocations and frees */
	uint64_t live_bytes, peak_bytes; /* peak_bytes: in the current step */
};

/* The program's own samples, by label. */
struct samples {
	uint32_t label;
	struct tensorboard_histogram histogram;
};

struct tensorboard {
	struct trace *trace;
	const struct recorded_process *process;
	const struct prepass_process *of;
	struct tensorboard_file file;
	struct tensorboard_graph *graph;
	struct tensorboard_histogram histograms[N_HISTOGRAMS];
	/* durations, of the whole run: devices report on a step after it ends */
	struct tensorboard_histogram kernels;
	struct samples *samples;
	size_t n_samples, samples_room;
	struct device_held devices[DEVICES_MAX];
	size_t n_devices;
	size_t n_entered; /* steps begun so far */
	uint64_t n_values; /* of the program's, outside of steps, so far */
};

/* ---- the scalars of each step --------------------------------------------------------------- */

static void put_memory(struct tensorboard *tensorboard, const struct step *step)
{
	char tag[TAG_BYTES_MAX], name[32];

	for (size_t i = 0; i < tensorboard->n_devices; i++) {
		struct device_held *device = &tensorboard->devices[i];

		torsh_device_name(device->device, name);
		snprintf(tag, sizeof(tag), "memory/%s/live_MiB", name);
		torsh_tensorboard_scalar(&tensorboard->file, tag, step->number, step->end_ns,
					 (double)device->live_bytes / MEBIBYTE);
		snprintf(tag, sizeof(tag), "memory/%s/peak_MiB", name);
		torsh_tensorboard_scalar(&tensorboard->file, tag, step->number, step->end_ns,
					 (double)device->peak_bytes / MEBIBYTE);
	}
}

static void put_histograms(struct tensorboard *tensorboard, uint64_t number, uint64_t at_ns)
{
	static const char *const tags[] = {
#define HISTOGRAM(NAME, tag) tag,
		HISTOGRAMS
#undef HISTOGRAM
	};

	for (size_t i = 0; i < N_HISTOGRAMS; i++)
		torsh_tensorboard_histogram_flush(&tensorboard->histograms[i], &tensorboard->file,
						  tags[i], number, at_ns);
	for (size_t i = 0; i < tensorboard->n_samples; i++) {
		const char *name =
			torsh_timeline_label(tensorboard->process, tensorboard->samples[i].label);

		torsh_tensorboard_histogram_flush(&tensorboard->samples[i].histogram,
						  &tensorboard->file, name ? name : "?", number,
						  at_ns);
	}
}

/*
 * Activity before the first step counts for it, and activity between two steps for the earlier
 * one.
 */
static void leave_step(struct tensorboard *tensorboard)
{
	const struct step *step;

	if (!tensorboard->n_entered)
		return;
	step = &tensorboard->of->steps.items[tensorboard->n_entered - 1];
	if (torsh_trace_has(tensorboard->trace, step->start_ns))
		put_memory(tensorboard, step);
	put_histograms(tensorboard, step->number, step->end_ns);
	for (size_t i = 0; i < tensorboard->n_devices; i++)
		tensorboard->devices[i].peak_bytes = tensorboard->devices[i].live_bytes;
}

/* Call before an event at this time is counted. */
static void enter_steps(struct tensorboard *tensorboard, uint64_t at_ns)
{
	const struct steps *steps = &tensorboard->of->steps;

	while (tensorboard->n_entered < steps->n &&
	       steps->items[tensorboard->n_entered].start_ns <= at_ns) {
		leave_step(tensorboard);
		tensorboard->n_entered++;
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static void see_begin(void *context, struct span *span)
{
	struct tensorboard *tensorboard = context;

	enter_steps(tensorboard, span->start_ns);
	torsh_tensorboard_graph_begin(tensorboard->graph, span);
}

static void see_end(void *context, struct span *span)
{
	struct tensorboard *tensorboard = context;
	uint64_t duration_ns = span->end_ns - span->start_ns;

	enter_steps(tensorboard, span->end_ns);
	if (span->kind == SPAN_OPERATOR && span->scope != OP_USER &&
	    torsh_trace_has(tensorboard->trace, span->start_ns))
		torsh_tensorboard_histogram_add(&tensorboard->histograms[HISTOGRAM_OPERATORS],
						(double)duration_ns / 1e3);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct tensorboard *tensorboard = context;

	if (activity->record.what == DEVICE_KERNEL)
		torsh_tensorboard_histogram_add(&tensorboard->kernels,
						(double)activity->record.duration_ns / 1e3);
}

static struct device_held *find_device(struct tensorboard *tensorboard, uint32_t device)
{
	for (size_t i = 0; i < tensorboard->n_devices; i++) {
		if (tensorboard->devices[i].device == device)
			return &tensorboard->devices[i];
	}
	if (tensorboard->n_devices == DEVICES_MAX)
		return NULL;
	tensorboard->devices[tensorboard->n_devices].device = device;
	return &tensorboard->devices[tensorboard->n_devices++];
}

static void see_tensor(struct tensorboard *tensorboard, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct device_held *device = find_device(tensorboard, tensor->device);

	if (!tensor->is_free && torsh_trace_has(tensorboard->trace, event->at_ns))
		torsh_tensorboard_histogram_add(&tensorboard->histograms[HISTOGRAM_TENSORS],
						(double)tensor->bytes);
	if (!device)
		return;
	device->sum += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	/* Memory that was allocated before the recording may be freed in it. */
	device->live_bytes = device->sum > 0 ? (uint64_t)device->sum : 0;
	if (device->live_bytes > device->peak_bytes)
		device->peak_bytes = device->live_bytes;
}

static struct tensorboard_histogram *find_samples(struct tensorboard *tensorboard, uint32_t label)
{
	for (size_t i = 0; i < tensorboard->n_samples; i++) {
		if (tensorboard->samples[i].label == label)
			return &tensorboard->samples[i].histogram;
	}
	tensorboard->samples =
		torsh_array_reserve(tensorboard->samples, tensorboard->n_samples,
				    &tensorboard->samples_room, sizeof(*tensorboard->samples));
	tensorboard->samples[tensorboard->n_samples] = (struct samples){.label = label};
	return &tensorboard->samples[tensorboard->n_samples++].histogram;
}

/* Put a value of the program's at its step; without steps, values are numbered. */
static void see_value(struct tensorboard *tensorboard, const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	const char *name = torsh_timeline_label(tensorboard->process, value->name);
	size_t step = torsh_steps_of(&tensorboard->of->steps, event->at_ns, event->thread);
	double number;

	if (!torsh_trace_has(tensorboard->trace, event->at_ns) ||
	    !torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	if (value->kind == VALUE_SAMPLE)
		torsh_tensorboard_histogram_add(find_samples(tensorboard, value->name), number);
	else
		torsh_tensorboard_scalar(&tensorboard->file, name ? name : "?",
					 step != STEP_NONE
						 ? tensorboard->of->steps.items[step].number
						 : tensorboard->n_values++,
					 event->at_ns, number);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct tensorboard *tensorboard = context;

	(void)process;
	enter_steps(tensorboard, event->at_ns);
	torsh_tensorboard_graph_see(tensorboard->graph, event, innermost);
	if (event->event.id == EVENT_TENSOR)
		see_tensor(tensorboard, event);
	else if (event->event.id == EVENT_VALUE)
		see_value(tensorboard, event);
}

/* ---- scalars of steps ------------------------------------------------------------------------ */

static void put_step(struct tensorboard *tensorboard, const struct step *step,
		     const struct step_total *total)
{
	double seconds = (double)(step->end_ns - step->start_ns) / 1e9;
	char tag[TAG_BYTES_MAX];

	torsh_tensorboard_scalar(&tensorboard->file, "step/ms", step->number, step->end_ns,
				 seconds * 1e3);
	if (seconds > 0 && !tensorboard->trace->recording->without_flops)
		torsh_tensorboard_scalar(&tensorboard->file, "step/GFLOPs_per_second", step->number,
					 step->end_ns, (double)total->flops_all / 1e9 / seconds);
	if (tensorboard->of->n_tensors)
		torsh_tensorboard_scalar(&tensorboard->file, "step/peak_MiB", step->number,
					 step->end_ns, (double)total->peak_bytes / MEBIBYTE);
	for (size_t i = 0; i < N_PHASES; i++) {
		snprintf(tag, sizeof(tag), "phase/%s_ms", torsh_phase_names[i]);
		torsh_tensorboard_scalar(&tensorboard->file, tag, step->number, step->end_ns,
					 (double)total->spent.phase_ns[i] / 1e6);
	}
	torsh_tensorboard_scalar(&tensorboard->file, "phase/other_ms", step->number, step->end_ns,
				 (double)total->spent.other_ns / 1e6);
}

static void put_step_devices(struct tensorboard *tensorboard, const struct step *step,
			     const struct step_totals *totals, size_t i)
{
	const struct step_device *devices = torsh_step_devices(totals, i);
	uint64_t duration_ns = step->end_ns - step->start_ns;
	char tag[TAG_BYTES_MAX];

	torsh_tensorboard_scalar(&tensorboard->file, "step/device_ms", step->number, step->end_ns,
				 (double)totals->items[i].device_ns / 1e6);
	for (size_t k = 0; k < totals->n_devices; k++) {
		snprintf(tag, sizeof(tag), "device/cuda:%" PRIu32 "/launched_ms",
			 totals->devices[k]);
		torsh_tensorboard_scalar(&tensorboard->file, tag, step->number, step->end_ns,
					 (double)devices[k].device_ns / 1e6);
		if (!duration_ns)
			continue;
		snprintf(tag, sizeof(tag), "device/cuda:%" PRIu32 "/busy_percent",
			 totals->devices[k]);
		torsh_tensorboard_scalar(&tensorboard->file, tag, step->number, step->end_ns,
					 100.0 * (double)devices[k].busy_ns / (double)duration_ns);
	}
}

/* Put the scalars of each step, and the distribution of durations. */
static void put_steps(struct tensorboard *tensorboard, struct recorded_process *process)
{
	const struct steps *steps = &tensorboard->of->steps;
	struct tensorboard_histogram durations = {0};
	struct step_totals totals;
	const struct step *last = NULL;

	if (!steps->n)
		return;
	torsh_step_totals_collect(&totals, tensorboard->trace->recording, process,
				  tensorboard->trace->prepass);
	for (size_t i = 0; i < steps->n; i++) {
		if (!torsh_trace_has(tensorboard->trace, steps->items[i].start_ns))
			continue;
		last = &steps->items[i];
		put_step(tensorboard, last, &totals.items[i]);
		if (totals.has_devices)
			put_step_devices(tensorboard, last, &totals, i);
		torsh_tensorboard_histogram_add(&durations,
						(double)(last->end_ns - last->start_ns) / 1e6);
	}
	if (last)
		torsh_tensorboard_histogram_flush(&durations, &tensorboard->file,
						  "durations/steps_ms", last->number, last->end_ns);
	torsh_tensorboard_histogram_free(&durations);
	torsh_step_totals_free(&totals);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/*
 * Returns the graph's window: the second step, because the first one may be warming up; without
 * steps the whole window.
 */
static struct tensorboard_graph *make_graph(const struct tensorboard *tensorboard)
{
	const struct steps *steps = &tensorboard->of->steps;
	const struct step *chosen = NULL;
	size_t n = 0;

	for (size_t i = 0; i < steps->n && n < 2; i++) {
		if (torsh_trace_has(tensorboard->trace, steps->items[i].start_ns)) {
			chosen = &steps->items[i];
			n++;
		}
	}
	return chosen ? torsh_tensorboard_graph_create(chosen->start_ns, chosen->end_ns)
		      : torsh_tensorboard_graph_create(tensorboard->trace->from_ns,
						       tensorboard->trace->to_ns);
}

/* Put at the last step, like the durations of steps. */
static void put_kernels(struct tensorboard *tensorboard)
{
	const struct steps *steps = &tensorboard->of->steps;
	const struct step *last = steps->n ? &steps->items[steps->n - 1] : NULL;

	torsh_tensorboard_histogram_flush(&tensorboard->kernels, &tensorboard->file,
					  "durations/kernels_us", last ? last->number : 0,
					  last ? last->end_ns : tensorboard->of->last_ns);
}

static void free_board(struct tensorboard *tensorboard)
{
	torsh_tensorboard_histogram_free(&tensorboard->kernels);
	for (size_t i = 0; i < N_HISTOGRAMS; i++)
		torsh_tensorboard_histogram_free(&tensorboard->histograms[i]);
	for (size_t i = 0; i < tensorboard->n_samples; i++)
		torsh_tensorboard_histogram_free(&tensorboard->samples[i].histogram);
	free(tensorboard->samples);
	torsh_tensorboard_graph_destroy(tensorboard->graph);
}

static int write_run(struct trace *trace, struct recorded_process *process, const char *directory,
		     const char *host)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	static const struct device_visitor devices = {.activity = see_activity};
	struct tensorboard tensorboard = {.trace = trace,
					  .process = process,
					  .of = torsh_prepass_of(trace->prepass, process)};
	struct trace own = *trace;
	int rc = torsh_private_directory(directory), closed;

	if (rc == 0)
		rc = torsh_tensorboard_open(&tensorboard.file, directory,
					    trace->recording->start_realtime_ns, host);
	if (rc < 0)
		return rc;
	tensorboard.graph = make_graph(&tensorboard);
	put_steps(&tensorboard, process);
	own.processes = &process;
	own.n_processes = 1;
	rc = torsh_trace_walk(&own, &visitor, &devices, &tensorboard);
	enter_steps(&tensorboard, UINT64_MAX);
	if (tensorboard.of->steps.n)
		leave_step(&tensorboard);
	else
		put_histograms(&tensorboard, 0, tensorboard.of->last_ns);
	put_kernels(&tensorboard);
	torsh_tensorboard_heap(&tensorboard.file, trace, process);
	torsh_tensorboard_graph_write(tensorboard.graph, &tensorboard.file);
	free_board(&tensorboard);
	closed = torsh_tensorboard_close(&tensorboard.file);
	return rc < 0 ? rc : closed;
}

/* Writes DIR/HOST_PID.TIME.pt.trace.json.gz, as the profiler's plugin expects it. */
static int write_plugin_trace(const struct trace *trace, struct recorded_process *process,
			      const char *host)
{
	char *path =
		torsh_need_text("%s/%s_%" PRIu32 ".%" PRIu64 ".pt.trace.json.gz", trace->path, host,
				process->pid, trace->recording->start_realtime_ns / 1000000);
	struct trace own = *trace;
	int rc;

	own.processes = &process;
	own.n_processes = 1;
	own.path = path;
	rc = torsh_trace_to_file(&own, &torsh_trace_chrome);
	free(path);
	return rc;
}

/*
 * Returns a run's directory below the trace's, named by its rank if no other run has it. The
 * caller frees it.
 */
static char *run_directory(const struct trace *trace, const struct recorded_process *process)
{
	uint32_t rank, other;
	bool has_rank = torsh_recording_rank(process->rank, &rank);

	for (size_t i = 0; i < trace->n_processes && has_rank; i++) {
		const struct recorded_process *one = trace->processes[i];

		if (one != process && trace->prepass->items[i].has_events &&
		    torsh_recording_rank(one->rank, &other))
			has_rank = other != rank;
	}
	return has_rank ? torsh_need_text("%s/rank-%" PRIu32, trace->path, rank)
			: torsh_need_text("%s/pid-%" PRIu32, trace->path, process->pid);
}

/*
 * Returns the recording's host for a file's name: other characters than letters, digits, dots and
 * hyphens are replaced. The caller frees it.
 */
static char *name_host(const struct recording *recording)
{
	char *host = torsh_need(strndup(
		recording->host && *recording->host ? recording->host : "host", HOST_BYTES_MAX));

	for (char *at = host; *at; at++) {
		if (!isalnum((unsigned char)*at) && *at != '-' && (*at != '.' || at == host))
			*at = '_';
	}
	return host;
}

static int write_process(struct trace *trace, size_t i, bool is_only)
{
	char *host = name_host(trace->recording);
	struct recorded_process *process = trace->processes[i];
	char *directory =
		is_only ? torsh_need_text("%s", trace->path) : run_directory(trace, process);
	int rc = write_run(trace, process, directory, host);

	free(directory);
	/* The plugin's page fails on a trace without operators. */
	if (rc == 0 && trace->prepass->items[i].n_operators)
		rc = write_plugin_trace(trace, process, host);
	free(host);
	return rc;
}

static int write_tensorboard(struct trace *trace)
{
	size_t n_runs = 0;
	int rc = torsh_private_directory(trace->path);

	for (size_t i = 0; i < trace->n_processes; i++)
		n_runs += trace->prepass->items[i].has_events;
	for (size_t i = 0; i < trace->n_processes && rc == 0; i++) {
		if (trace->prepass->items[i].has_events)
			rc = write_process(trace, i, n_runs == 1);
	}
	return rc;
}

const struct trace_format torsh_trace_tensorboard = {.name = "tensorboard",
						     .ending = ".tensorboard",
						     .is_binary = true,
						     .needs_path = true,
						     .is_directory = true,
						     .needs_heap = true,
						     .needs = TRACE_NEEDS_EVENTS,
						     .write = write_tensorboard};
