/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Kernels, copies and memsets of an operator profile. */
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/compiled/fused_kernels.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"
#include "tools/export/profile/profile.h"
#include "tools/symbols/frame_text.h"

#define PATH_OPERATORS_MAX 64u
#define OCCUPANCY_DIGITS 9

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
		strings->names = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
						  sizeof(*strings->names));
	if (!strings->names[label])
		strings->names[label] = torsh_json_escape(text);
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
		strings->demangled = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
						      sizeof(*strings->demangled));
	if (!strings->demangled[label])
		strings->demangled[label] =
			torsh_json_escape(torsh_symbols_demangle(profile->trace->symbols, text));
	return strings->demangled[label];
}

const char *torsh_profile_line(struct profile_json *profile, const struct recorded_process *process,
			       uint32_t stack)
{
	struct profile_texts *strings = texts_of(profile, process);

	if (!stack || stack >= process->tables->n_stacks || !profile->trace->symbols)
		return "";
	if (!strings->lines) {
		strings->n_stacks = process->tables->n_stacks;
		strings->lines =
			torsh_need_items(NULL, 0, strings->n_stacks, sizeof(*strings->lines));
	}
	if (stack >= strings->n_stacks)
		return "";
	if (!strings->lines[stack]) {
		char *text = torsh_stack_line_text(process, stack, profile->trace->symbols);

		strings->lines[stack] = torsh_json_escape(text);
		free(text);
	}
	return strings->lines[stack];
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
	/* A schedule's warm-up is not among its steps. */
	return !steps->is_restricted && steps->n > 1 && at_ns < steps->items[0].end_ns ? "warmup"
										       : "steady";
}

static void put_path(struct profile_json *profile, const struct profile_work *work)
{
	uint32_t labels[PATH_OPERATORS_MAX];
	size_t n = torsh_attribution_path(profile->attributor, work->process, work->by.path, labels,
					  PATH_OPERATORS_MAX);

	torsh_json_begin_array(&profile->json, "op_path");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_escaped(&profile->json, NULL,
				       torsh_profile_text(profile, work->process, labels[i]));
	torsh_json_end_array(&profile->json);
}

/* Put where and when it ran. */
static void put_span(struct json_writer *json, const struct activity_record *record)
{
	torsh_json_put_u64(json, "stream_id", record->stream);
	torsh_json_put_u64(json, "device_id", record->device);
	torsh_json_put_u64(json, "start_ns", record->begin_ns);
	torsh_json_put_u64(json, "end_ns", record->begin_ns + record->duration_ns);
	torsh_json_put_u64(json, "duration_ns", record->duration_ns);
}

/* Put what launched it. */
static void put_attribution(struct profile_json *profile, const struct profile_work *work)
{
	const struct attribution_words *words = &torsh_attribution_words[work->by.method];
	const struct profile_operator *op =
		work->op != NO_OPERATOR ? &profile->operators[work->op] : NULL;
	uint64_t at_ns = op && op->is_operator ? op->start_ns : work->record.begin_ns;
	struct json_writer *json = &profile->json;

	torsh_json_put_text(json, "attribution_method", words->method);
	torsh_json_put_text(json, "confidence", words->confidence);
	torsh_json_put_text(json, "method_detail", words->detail);
	torsh_profile_put_range(profile, op);
	put_path(profile, work);
	torsh_json_put_text(json, "reason_unattributed",
			    work->by.reason ? torsh_kernel_reasons[work->by.reason] : NULL);
	torsh_json_put_text(json, "phase", torsh_profile_phase(profile, work->process, at_ns));
}

/* Put the source line that captured or launched it. */
static void put_line(struct profile_json *profile, const struct profile_work *work)
{
	const char *line = torsh_profile_line(profile, work->process, work->by.stack);

	if (*line)
		torsh_json_put_escaped(&profile->json, "source_line", line);
	else
		torsh_json_put_null(&profile->json, "source_line");
}

/* Put the ids that identify it in other tools. */
static void put_ids(struct json_writer *json, const struct activity_record *record)
{
	torsh_json_put_known(json, "correlation_id", record->correlation, record->correlation);
	torsh_json_put_known(json, "graph_id", record->graph, record->graph);
	torsh_json_put_known(json, "graph_node_id", record->node, record->node);
	torsh_json_put_known(json, "context_id", record->context, record->context);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/*
 * Every kernel has threads and registers: if these are 0, the launch parameters were not recorded.
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
	struct json_writer *json = &profile->json;
	struct profile_raw raw;

	torsh_profile_raw(profile, work, &raw);
	torsh_json_begin_object(json, "metrics");
	torsh_json_begin_object(json, "raw");
	for (size_t i = 0; i < raw.n; i++) {
		torsh_json_put_name(json, raw.items[i].name);
		torsh_json_put_rounded(json, NULL, raw.items[i].value, DBL_DECIMAL_DIG);
	}
	torsh_json_end_object(json);
	torsh_json_begin_object(json, "units");
	for (size_t i = 0; i < raw.n; i++) {
		if (!raw.units[i])
			continue;
		torsh_json_put_name(json, raw.items[i].name);
		torsh_json_put_text(json, NULL, raw.units[i]);
	}
	torsh_json_end_object(json);
	torsh_json_end_object(json);
	torsh_json_put_text(json, "metrics_source", sources[raw.source]);
	torsh_json_begin_object(json, "metrics_status");
	torsh_json_put_text(json, "*", torsh_profile_uncounted_work(profile, work));
	torsh_json_end_object(json);
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
	struct json_writer *json = &profile->json;
	struct occupancy occupancy;

	if (device && has_parameters(work) && !torsh_occupancy_of(device, &kernel, &occupancy)) {
		torsh_json_put_rounded(json, "theoretical_occupancy_pct", 100 * occupancy.share,
				       OCCUPANCY_DIGITS);
		torsh_json_put_rounded(json, "waves_per_sm", occupancy.waves, OCCUPANCY_DIGITS);
	} else {
		torsh_json_put_null(json, "theoretical_occupancy_pct");
		torsh_json_put_null(json, "waves_per_sm");
	}
}

static void put_dimensions(struct json_writer *json, const char *name, const uint32_t *sizes)
{
	if (!sizes[0]) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_array(json, name);
	for (int i = 0; i < 3; i++)
		torsh_json_put_u64(json, NULL, sizes[i]);
	torsh_json_end_array(json);
}

void torsh_profile_put_place(struct profile_json *profile, const struct profile_work *work)
{
	put_span(&profile->json, &work->record);
	put_dimensions(&profile->json, "grid_dim", work->grid);
	put_dimensions(&profile->json, "block_dim", work->block);
}

/* A kernel that Inductor generated, and the FLOPs of one launch. */
struct fused_kernel {
	const struct inductor_kernel *kernel;
	struct fused_flops flops;
};

/* Returns the FLOPs of a kernel, computed at its first launch. */
static struct fused_flops find_fused(struct profile_json *profile,
				     const struct inductor_kernel *kernel)
{
	struct fused_kernel *found;

	for (size_t i = 0; i < profile->n_fused; i++) {
		if (profile->fused[i].kernel == kernel)
			return profile->fused[i].flops;
	}
	profile->fused = torsh_array_reserve(profile->fused, profile->n_fused, &profile->fused_room,
					     sizeof(*profile->fused));
	found = &profile->fused[profile->n_fused++];
	*found = (struct fused_kernel){kernel, torsh_fused_kernel_flops(kernel)};
	return found->flops;
}

/* Put the FLOPs of a kernel that is known by Inductor's code, and why others of its have none. */
static void put_fused(struct profile_json *profile, const struct profile_work *work)
{
	const char *name = torsh_timeline_label(work->process, work->record.name);
	bool is_generated = torsh_is_fused_kernel(name);
	struct fused_flops flops = {.reason = NULL};

	if (is_generated && profile->trace->recording->without_flops)
		flops.reason = "FLOPs were turned off when the recording was made";
	else if (is_generated)
		flops = work->by.fused ? find_fused(profile, work->by.fused)
				       : torsh_fused_kernel_flops(NULL);
	torsh_json_put_known(&profile->json, "fused_flops", is_generated && !flops.reason, flops.n);
	torsh_json_put_text(&profile->json, "fused_flops_reason", flops.reason);
}

static void put_kernel(struct profile_json *profile, const struct profile_work *work)
{
	struct json_writer *json = &profile->json;
	bool is_known = has_parameters(work);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_format(json, "kernel_id", "k_%05" PRIu64, work->number);
	torsh_json_put_escaped(json, "kernel_name",
			       torsh_profile_text(profile, work->process, work->record.name));
	torsh_json_put_escaped(json, "demangled_name",
			       torsh_profile_demangled(profile, work->process, work->record.name));
	torsh_profile_put_place(profile, work);
	put_metrics(profile, work);
	put_attribution(profile, work);
	put_line(profile, work);
	put_ids(json, &work->record);
	torsh_json_put_known(json, "registers_per_thread", is_known, work->registers);
	torsh_json_put_known(json, "static_smem", is_known, work->static_bytes);
	torsh_json_put_known(json, "dynamic_smem", is_known, work->dynamic_bytes);
	put_occupancy(profile, work);
	put_fused(profile, work);
	torsh_json_end_object(json);
}

/* ---- copies and memsets ---------------------------------------------------------------------- */

/* A graph that was timed only as a whole is also in this list. */
static void put_copy(struct profile_json *profile, const struct profile_work *work)
{
	const struct activity_record *record = &work->record;
	const char *kind = record->what == DEVICE_COPY ? torsh_copy_name(record->kind)
						       : torsh_device_what_names[record->what];
	struct json_writer *json = &profile->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_format(json, "copy_id", "c_%05" PRIu64, work->number);
	torsh_json_put_text(json, "kind", kind);
	torsh_json_put_known(json, "bytes", record->what != DEVICE_GRAPH, record->bytes);
	put_span(json, record);
	put_attribution(profile, work);
	put_line(profile, work);
	put_ids(json, record);
	torsh_json_end_object(json);
}

void torsh_profile_put_list(struct profile_json *profile, const char *name, const uint32_t *order,
			    size_t n, bool are_kernels)
{
	torsh_json_begin_lines(&profile->json, name);
	for (size_t i = 0; i < n; i++) {
		const struct profile_work *work = &profile->work[order[i]];

		if ((work->record.what == DEVICE_KERNEL) != are_kernels)
			continue;
		if (are_kernels)
			put_kernel(profile, work);
		else
			put_copy(profile, work);
	}
	torsh_json_end_array(&profile->json);
}
