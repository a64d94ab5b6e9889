/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Operators of an operator profile, with the sums over their kernels. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/profile/profile.h"
#include "tools/timeline/inputs.h"

/* ---- sums over its kernels ------------------------------------------------------------------- */

struct sums {
	struct kernel_sums kernels;
	uint64_t dominant_id; /* id of the longest */
	uint64_t wall_ns; /* of all of its activities; overlapping time counts once */
	bool is_fused;
};

static void sum_work(struct profile_json *profile, const struct profile_operator *op,
		     struct sums *sums)
{
	uint64_t until_ns = 0;

	*sums = (struct sums){0};
	for (size_t i = 0; i < op->n; i++) {
		const struct profile_work *work = &profile->work[profile->order[op->first + i]];
		uint64_t begin_ns = work->record.begin_ns,
			 end_ns = begin_ns + work->record.duration_ns;
		struct profile_raw raw;

		begin_ns = begin_ns > until_ns ? begin_ns : until_ns;
		sums->wall_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
		until_ns = end_ns > until_ns ? end_ns : until_ns;
		if (work->record.what != DEVICE_KERNEL)
			continue;
		torsh_profile_raw(profile, work, &raw);
		torsh_metrics_add(&sums->kernels, work->record.duration_ns, raw.items, raw.n);
		if (sums->kernels.dominant == sums->kernels.n_kernels - 1)
			sums->dominant_id = work->number;
		sums->is_fused =
			sums->is_fused || (work->by.fused && work->by.fused->n_operators > 1);
	}
}

/* A negative number, or one outside of the type's range, can't be a count. */
static void put_count(struct json_writer *json, const char *name, double value)
{
	bool is_count = value >= 0 && value < 0x1p63;

	torsh_json_put_known(json, name, is_count, is_count ? (uint64_t)value : 0);
}

static void put_metric(struct json_writer *json, const struct kernel_sums *sums,
		       enum kernel_metric metric)
{
	const struct metric_field *field = &torsh_metric_fields[metric];
	double value;

	if (!torsh_metrics_value(sums, metric, &value))
		torsh_json_put_known(json, field->name, field->form == METRIC_count, 0);
	else if (field->form == METRIC_number)
		torsh_json_put_double(json, field->name, value);
	else
		put_count(json, field->name, value);
}

static void put_aggregated(struct json_writer *json, const struct sums *sums)
{
	const struct kernel_sums *kernels = &sums->kernels;

	torsh_json_begin_object(json, "aggregated");
	torsh_json_put_u64(json, "total_duration_ns", kernels->total_ns);
	torsh_json_put_u64(json, "kernel_count", kernels->n_kernels);
	if (kernels->n_kernels)
		torsh_json_put_format(json, "dominant_kernel_id", "k_%05" PRIu64,
				      sums->dominant_id);
	else
		torsh_json_put_null(json, "dominant_kernel_id");
	for (int metric = 0; metric < N_KERNEL_METRICS; metric++)
		put_metric(json, kernels, metric);
	torsh_json_end_object(json);
}

/* ---- attributes of the span ------------------------------------------------------------- */

static void put_id(struct json_writer *json, const char *name, const struct span_id *id)
{
	if (id->name)
		torsh_json_put_format(json, name, "%s_%" PRIu64, id->name, id->index);
	else
		torsh_json_put_null(json, name);
}

/* Put the shapes of its tensors, including those in lists. */
static void put_shapes(struct json_writer *json, const struct inputs *inputs)
{
	torsh_json_begin_array(json, "input_shapes");
	for (uint32_t i = 0; i < inputs->n_items; i++) {
		const struct input *input = &inputs->items[i];

		if (input->kind != INPUT_TENSOR)
			continue;
		torsh_json_begin_array(json, NULL);
		for (uint32_t k = 0; k < input->n_dims; k++)
			torsh_json_put_i64(json, NULL, input->dims[k]);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "dtypes");
	for (uint32_t i = 0; i < inputs->n_items; i++) {
		const struct input *input = &inputs->items[i];

		if (input->kind == INPUT_TENSOR)
			torsh_json_put_text_n(json, NULL, input->text, input->n_type);
	}
	torsh_json_end_array(json);
}

/* Computed from its name and inputs: FLOPs of outer and inner operators are not subtracted. */
static void put_flops(struct json_writer *json, const struct flops *flops, uint64_t total_ns)
{
	bool is_known = flops->status == FLOPS_COUNTED || flops->status == FLOPS_NONE;

	torsh_json_put_known(json, "flops", is_known, flops->all);
	torsh_json_put_text(json, "flops_source", is_known ? "analytic" : NULL);
	torsh_json_put_double(json, "gflops_per_s",
			      is_known && total_ns ? (double)flops->all / (double)total_ns : NAN);
}

static void put_roofline(struct json_writer *json, const struct operator_roofline *found)
{
	static const char *const classes[] = {
		[BOUND_BY_MEMORY] = "memory_bound", [BOUND_BY_COMPUTING] = "compute_bound"};
	const struct roofline *roofline = &found->roofline;
	bool is_known = found->bound != BOUND_UNKNOWN;

	torsh_json_begin_object(json, "roofline");
	torsh_json_put_double(json, "ai", is_known ? roofline->intensity : NAN);
	torsh_json_put_text(json, "class", classes[found->bound]);
	torsh_json_put_double(json, "ceiling", is_known ? roofline->ceiling_gflops : NAN);
	torsh_json_put_double(json, "efficiency_pct", is_known ? roofline->efficiency_pct : NAN);
	torsh_json_put_text(json, "reason", found->reason);
	torsh_json_end_object(json);
}

/* Put the bytes that its kernels moved. */
static void put_bytes(struct json_writer *json, const struct sums *sums)
{
	double read, written;
	bool is_known = torsh_metrics_value(&sums->kernels, METRIC_DRAM_READ, &read) &&
			torsh_metrics_value(&sums->kernels, METRIC_DRAM_WRITTEN, &written);

	put_count(json, "mem_bytes", is_known ? read + written : NAN);
}

static void put_inputs(struct profile_json *profile, const struct profile_operator *op,
		       const struct sums *sums)
{
	const char *text = op->inputs ? torsh_timeline_label(op->process, op->inputs) : NULL;
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct flops flops = {.status = FLOPS_NO_FORMULA};
	struct operator_roofline roofline;

	torsh_inputs_parse(inputs, text);
	if (op->is_operator && !op->is_scope && !profile->trace->recording->without_flops)
		flops = torsh_flops_of(op->id.name, inputs);
	if (text) {
		put_shapes(&profile->json, inputs);
	} else {
		torsh_json_put_null(&profile->json, "input_shapes");
		torsh_json_put_null(&profile->json, "dtypes");
	}
	put_flops(&profile->json, &flops, sums->kernels.total_ns);
	put_bytes(&profile->json, sums);
	roofline = torsh_profile_bind(profile, op, &sums->kernels, &flops);
	put_roofline(&profile->json, &roofline);
	free(inputs);
}

static void put_span(struct profile_json *profile, const struct profile_operator *op,
		     const struct sums *sums)
{
	const char *module = op->module ? torsh_timeline_label(op->process, op->module) : NULL;
	struct json_writer *json = &profile->json;

	torsh_json_put_u64(json, "self_wall_ns", sums->wall_ns);
	torsh_json_put_known(json, "cpu_time_ns", op->is_operator, op->end_ns - op->start_ns);
	put_inputs(profile, op, sums);
	torsh_json_put_known(json, "host_alloc_bytes", op->is_operator, op->host_bytes);
	torsh_json_put_known(json, "device_alloc_bytes", op->is_operator, op->device_bytes);
	torsh_json_put_known(json, "seq", op->sequence != OP_NO_SEQUENCE, op->sequence);
	put_id(json, "fwd_op_id", &op->forward);
	torsh_json_put_text(json, "module_path", module);
	torsh_json_put_text(json, "training_phase",
			    op->is_operator ? torsh_phase_names[op->phase] : NULL);
	torsh_json_put_u64(json, "pid", op->process->pid);
}

static void put_layer(struct json_writer *json, const struct profile_operator *op)
{
	bool has_layer = op->layer_group;

	torsh_json_put_text(json, "layer_group", op->layer_group);
	torsh_json_put_known(json, "layer_instance", has_layer, op->layer_instance);
	if (has_layer)
		torsh_json_put_bool(json, "is_representative", op->is_representative);
	else
		torsh_json_put_null(json, "is_representative");
}

static bool is_in(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* Put the other operators that its kernels were fused from, each name once. */
static void put_fused_with(struct profile_json *profile, const struct profile_operator *op)
{
	const char **names = NULL;
	size_t n = 0, capacity = 0;

	torsh_json_begin_array(&profile->json, "fused_with");
	for (size_t i = 0; i < op->n; i++) {
		const struct inductor_kernel *fused =
			profile->work[profile->order[op->first + i]].by.fused;

		for (size_t k = 0; fused && k < fused->n_operators; k++) {
			const char *name = fused->operators[k];

			if (strcmp(name, op->id.name) == 0 || is_in(names, n, name))
				continue;
			names = torsh_array_reserve(names, n, &capacity, sizeof(*names));
			names[n++] = name;
			torsh_json_put_text(&profile->json, NULL, name);
		}
	}
	torsh_json_end_array(&profile->json);
	free(names);
}

/* Put why fields of aggregated are null: the reason of its first kernel. */
static void put_status(struct profile_json *profile, const struct profile_operator *op)
{
	const char *reason = op->n ? torsh_profile_uncounted_work(
					     profile, &profile->work[profile->order[op->first]])
				   : torsh_profile_uncounted(profile, op->process);

	torsh_json_begin_object(&profile->json, "metrics_status");
	torsh_json_put_text(&profile->json, "*", reason);
	torsh_json_end_object(&profile->json);
}

void torsh_profile_put_range(struct profile_json *profile, const struct profile_operator *op)
{
	struct json_writer *json = &profile->json;

	if (!op || !op->range) {
		torsh_json_put_null(json, "nvtx_range");
		return;
	}
	torsh_json_begin_object(json, "nvtx_range");
	torsh_json_put_escaped(json, "text", torsh_profile_text(profile, op->process, op->range));
	torsh_json_put_u64(json, "depth", op->depth);
	torsh_json_put_u64(json, "start_ns", op->start_ns);
	torsh_json_put_u64(json, "end_ns", op->end_ns);
	torsh_json_put_escaped(json, "domain",
			       op->domain ? torsh_profile_text(profile, op->process, op->domain)
					  : "default");
	torsh_json_end_object(json);
}

void torsh_profile_put_operator(struct profile_json *profile, const struct profile_operator *op)
{
	const uint32_t *order = profile->order + op->first;
	struct json_writer *json = &profile->json;
	struct sums sums;

	sum_work(profile, op, &sums);
	torsh_json_begin_object(json, NULL);
	put_id(json, "operator_id", &op->id);
	torsh_json_put_text(json, "operator_name", op->id.name);
	torsh_json_put_u64(json, "call_index", op->id.index);
	torsh_json_put_bool(json, "is_fused", sums.is_fused);
	put_fused_with(profile, op);
	put_aggregated(json, &sums);
	put_span(profile, op, &sums);
	put_layer(json, op);
	put_status(profile, op);
	torsh_profile_put_range(profile, op);
	torsh_profile_put_list(profile, "kernels", order, op->n, true);
	torsh_profile_put_list(profile, "copies", order, op->n, false);
	torsh_json_end_object(json);
}
