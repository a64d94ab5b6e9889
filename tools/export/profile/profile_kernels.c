/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Kernels, copies and memsets of an operator profile. See tools/export/profile/profile.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"
#include "tools/export/profile/profile.h"
#include "tools/symbols/frame_text.h"

#define PATH_OPERATORS_MAX 64u

/*
 * ---- strings -----------------------------------------------------------------------------------
 */

static struct profile_texts *texts_of(const struct profile_json *profile,
				      const struct recorded_process *process)
{
	struct profile_texts *strings = profile->strings;

	while (strings->process != process)
		strings++;
	return strings;
}

const char *torsh_profile_text(struct profile_json *profile, const struct recorded_process *process,
			       uint32_t label)
{
	struct profile_texts *strings = texts_of(profile, process);
	const char *text = torsh_timeline_label(process, label);

	if (!text)
		return "?";
	if (!strings->names)
		strings->names = torsh_need_items(NULL, 0, process->n_functions + 1,
						  sizeof(*strings->names));
	if (!strings->names[label])
		strings->names[label] = torsh_trace_escape(text);
	return strings->names[label];
}

const char *torsh_profile_demangled(struct profile_json *profile,
				    const struct recorded_process *process, uint32_t label)
{
	struct profile_texts *strings = texts_of(profile, process);
	const char *text = torsh_timeline_label(process, label);

	if (!text || !profile->trace->symbols)
		return torsh_profile_text(profile, process, label);
	if (!strings->demangled)
		strings->demangled = torsh_need_items(NULL, 0, process->n_functions + 1,
						      sizeof(*strings->demangled));
	if (!strings->demangled[label])
		strings->demangled[label] =
			torsh_trace_escape(torsh_symbols_demangle(profile->trace->symbols, text));
	return strings->demangled[label];
}

const char *torsh_profile_line(struct profile_json *profile, const struct recorded_process *process,
			       uint32_t stack)
{
	struct profile_texts *strings = texts_of(profile, process);

	if (!stack || stack >= process->n_stacks || !profile->trace->symbols)
		return "";
	if (!strings->lines) {
		strings->n_stacks = process->n_stacks;
		strings->lines =
			torsh_need_items(NULL, 0, strings->n_stacks, sizeof(*strings->lines));
	}
	if (!strings->lines[stack]) {
		char *text = torsh_stack_line_text(process, stack, profile->trace->symbols);

		strings->lines[stack] = torsh_trace_escape(text);
		free(text);
	}
	return strings->lines[stack];
}

/* "name":"text" or "name":null, with a comma before. text may be NULL and needs no escaping. */
static void put_text(struct output_stream *output, const char *name, const char *text)
{
	torsh_stream_print(output, ",\"%s\":%s", name, text ? "\"" : "null");
	if (!text)
		return;
	torsh_stream_text(output, text);
	torsh_stream_text(output, "\"");
}

/*
 * A text in quotes that may need to be escaped; those of counters don't, unless somebody made them
 * up.
 */
static void put_quoted(struct output_stream *output, const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;()[]{}<>+-*/=%#&!?'";
	char *escaped = NULL;

	if (text[strspn(text, plain)])
		text = escaped = torsh_trace_escape(text);
	torsh_stream_text(output, "\"");
	torsh_stream_text(output, text);
	torsh_stream_text(output, "\"");
	free(escaped);
}

/* ---- what all three have in common ----------------------------------------------------------- */

const char *torsh_profile_phase(const struct profile_json *profile,
				const struct recorded_process *process, uint64_t at_ns)
{
	const struct steps *steps = &torsh_prepass_of(profile->trace->prepass, process)->steps;

	if (!steps->n)
		return NULL;
	if (at_ns < steps->items[0].start_ns)
		return "init";
	/* A schedule's own warm-up is not among the steps. */
	return !steps->is_restricted && steps->n > 1 && at_ns < steps->items[0].end_ns ? "warmup"
										       : "steady";
}

static void put_path(struct profile_json *profile, const struct profile_work *work)
{
	uint32_t labels[PATH_OPERATORS_MAX];
	size_t n = torsh_attribution_path(profile->attributor, work->process, work->by.path, labels,
					  PATH_OPERATORS_MAX);

	torsh_stream_text(profile->output, ",\"op_path\":[");
	for (size_t i = 0; i < n; i++) {
		torsh_stream_text(profile->output, i ? ",\"" : "\"");
		torsh_stream_text(profile->output,
				  torsh_profile_text(profile, work->process, labels[i]));
		torsh_stream_text(profile->output, "\"");
	}
	torsh_stream_text(profile->output, "]");
}

/* Where and when. */
static void put_span(struct profile_json *profile, const struct profile_work *work)
{
	const struct activity_record *record = &work->record;

	torsh_stream_print(profile->output,
			   ",\"stream_id\":%" PRIu32 ",\"device_id\":%" PRIu32
			   ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
			   ",\"duration_ns\":%" PRIu64,
			   record->stream, record->device, record->begin_ns,
			   record->begin_ns + record->duration_ns, record->duration_ns);
}

/* By whom. */
static void put_attribution(struct profile_json *profile, const struct profile_work *work)
{
	const struct attribution_words *words = &torsh_attribution_words[work->by.method];
	const struct profile_operator *op =
		work->op != NO_OPERATOR ? &profile->operators[work->op] : NULL;
	uint64_t at_ns = op && op->is_operator ? op->start_ns : work->record.begin_ns;

	torsh_stream_print(
		profile->output,
		",\"attribution_method\":\"%s\",\"confidence\":\"%s\",\"method_detail\":\"%s\",\"nvtx_range\":",
		words->method, words->confidence, words->detail);
	torsh_profile_put_range(profile, op);
	put_path(profile, work);
	put_text(profile->output, "reason_unattributed",
		 work->by.reason ? torsh_kernel_reasons[work->by.reason] : NULL);
	put_text(profile->output, "phase", torsh_profile_phase(profile, work->process, at_ns));
}

/* Where in the program it was captured or launched. */
static void put_line(struct profile_json *profile, const struct profile_work *work)
{
	const char *line = torsh_profile_line(profile, work->process, work->by.stack);

	put_text(profile->output, "source_line", *line ? line : NULL);
}

static void put_known(struct output_stream *output, const char *name, bool is_known,
		      uint64_t number)
{
	if (is_known)
		torsh_stream_print(output, ",\"%s\":%" PRIu64, name, number);
	else
		torsh_stream_print(output, ",\"%s\":null", name);
}

/* The numbers that identify it in other tools. */
static void put_ids(struct profile_json *profile, const struct profile_work *work)
{
	const struct activity_record *record = &work->record;

	put_known(profile->output, "correlation_id", record->correlation, record->correlation);
	put_known(profile->output, "graph_id", record->graph, record->graph);
	put_known(profile->output, "graph_node_id", record->node, record->node);
	put_known(profile->output, "context_id", record->context, record->context);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/*
 * Every kernel has threads and registers: where these are 0 its launch parameters were not
 * recorded.
 */
static bool has_parameters(const struct profile_work *work)
{
	return work->block[0] && work->registers;
}

static void put_metrics(struct profile_json *profile, const struct profile_work *work)
{
	static const char *const sources[] = {[METRICS_MEASURED] = "measured",
					      [METRICS_PROPAGATED] = "propagated",
					      [METRICS_NONE] = "none"};
	struct output_stream *output = profile->output;
	struct profile_raw raw;
	const char *separator = "";

	torsh_profile_raw(profile, work, &raw);
	torsh_stream_text(output, ",\"metrics\":{\"raw\":{");
	for (size_t i = 0; i < raw.n; i++) {
		torsh_stream_text(output, i ? "," : "");
		put_quoted(output, raw.items[i].name);
		torsh_stream_print(output, ":%.17g", raw.items[i].value);
	}
	torsh_stream_text(output, "},\"units\":{");
	for (size_t i = 0; i < raw.n; i++) {
		if (!raw.units[i])
			continue;
		torsh_stream_text(output, separator);
		put_quoted(output, raw.items[i].name);
		torsh_stream_text(output, ":");
		put_quoted(output, raw.units[i]);
		separator = ",";
	}
	torsh_stream_print(output, "}},\"metrics_source\":\"%s\",\"metrics_status\":{\"*\":",
			   sources[raw.source]);
	put_quoted(output, torsh_profile_uncounted_work(profile, work));
	torsh_stream_text(output, "}");
}

const struct event_device *torsh_profile_device(const struct profile_json *profile,
						const struct recorded_process *process,
						uint32_t device)
{
	return torsh_device_list_find(&torsh_prepass_of(profile->trace->prepass, process)->devices,
				      device);
}

static void put_occupancy(struct profile_json *profile, const struct profile_work *work)
{
	const struct event_device *device =
		torsh_profile_device(profile, work->process, work->record.device);
	const struct event_kernel kernel = {
		EVENT_SHAPE(work->grid, work->block),
		.registers = work->registers,
		.static_shared_bytes = work->static_bytes,
		.dynamic_shared_bytes = work->dynamic_bytes,
	};
	struct occupancy occupancy;

	if (device && has_parameters(work) && !torsh_occupancy_of(device, &kernel, &occupancy))
		torsh_stream_print(profile->output,
				   ",\"theoretical_occupancy_pct\":%.9g,\"waves_per_sm\":%.9g",
				   100 * occupancy.share, occupancy.waves);
	else
		torsh_stream_text(profile->output,
				  ",\"theoretical_occupancy_pct\":null,\"waves_per_sm\":null");
}

static void put_dimensions(struct output_stream *output, const char *name, const uint32_t *sizes)
{
	if (sizes[0])
		torsh_stream_print(output, ",\"%s\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", name,
				   sizes[0], sizes[1], sizes[2]);
	else
		torsh_stream_print(output, ",\"%s\":null", name);
}

void torsh_profile_put_kernel(struct profile_json *profile, const struct profile_work *work)
{
	struct output_stream *output = profile->output;
	bool is_known = has_parameters(work);

	torsh_stream_print(output, "{\"kernel_id\":\"k_%05" PRIu64 "\"", work->number);
	put_text(output, "kernel_name",
		 torsh_profile_text(profile, work->process, work->record.name));
	put_text(output, "demangled_name",
		 torsh_profile_demangled(profile, work->process, work->record.name));
	put_span(profile, work);
	put_dimensions(output, "grid_dim", work->grid);
	put_dimensions(output, "block_dim", work->block);
	put_metrics(profile, work);
	put_attribution(profile, work);
	put_line(profile, work);
	put_ids(profile, work);
	put_known(output, "registers_per_thread", is_known, work->registers);
	put_known(output, "static_smem", is_known, work->static_bytes);
	put_known(output, "dynamic_smem", is_known, work->dynamic_bytes);
	put_occupancy(profile, work);
	torsh_stream_text(output, "}");
}

/* ---- copies and memsets ---------------------------------------------------------------------- */

/* A graph of which only the whole was timed stands here too. */
void torsh_profile_put_copy(struct profile_json *profile, const struct profile_work *work)
{
	const struct activity_record *record = &work->record;
	const char *kind = record->what == DEVICE_COPY ? torsh_copy_name(record->kind)
						       : torsh_device_what_names[record->what];

	torsh_stream_print(
		profile->output,
		"{\"copy_id\":\"c_%05" PRIu64 "\",\"kind\":\"%s\",\"bytes\":", work->number, kind);
	if (record->what == DEVICE_GRAPH)
		torsh_stream_text(profile->output, "null");
	else
		torsh_stream_print(profile->output, "%" PRIu64, record->bytes);
	put_span(profile, work);
	put_attribution(profile, work);
	put_line(profile, work);
	put_ids(profile, work);
	torsh_stream_text(profile->output, "}");
}

void torsh_profile_put_list(struct profile_json *profile, const uint32_t *order, size_t n,
			    bool are_kernels)
{
	bool has_items = false;

	for (size_t i = 0; i < n; i++) {
		const struct profile_work *work = &profile->work[order[i]];

		if ((work->record.what == DEVICE_KERNEL) != are_kernels)
			continue;
		torsh_stream_text(profile->output, has_items ? ",\n" : "\n");
		has_items = true;
		if (are_kernels)
			torsh_profile_put_kernel(profile, work);
		else
			torsh_profile_put_copy(profile, work);
	}
}
