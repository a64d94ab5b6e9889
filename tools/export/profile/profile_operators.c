/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Operators of an operator profile, with what their kernels come to. See
 * tools/export/profile/profile.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/export/profile/profile.h"
#include "tools/timeline/inputs.h"

/* ---- sums over its kernels ------------------------------------------------------------------- */

struct sums {
	struct kernel_sums kernels;
	uint64_t dominant_id; /* number of the longest */
	uint64_t wall_ns; /* of all of its work; what overlaps counts once */
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

static cJSON *make_metric(const struct kernel_sums *sums, enum kernel_metric metric)
{
	enum metric_form form = torsh_metric_fields[metric].form;
	double value;

	if (!torsh_metrics_value(sums, metric, &value))
		return form == METRIC_count ? torsh_json_u64(0) : torsh_json_text(NULL);
	/* What is below 0 or beyond the numbers of that type can't be a count. */
	if (form != METRIC_number)
		return value >= 0 && value < 0x1p63 ? torsh_json_i64((int64_t)value)
						    : torsh_json_text(NULL);
	return torsh_json_double(value);
}

static cJSON *make_aggregated(const struct sums *sums)
{
	const struct kernel_sums *kernels = &sums->kernels;
	cJSON *object = torsh_json_object();
	char *dominant =
		kernels->n_kernels ? torsh_need_text("k_%05" PRIu64, sums->dominant_id) : NULL;

	torsh_json_set(object, "total_duration_ns", torsh_json_u64(kernels->total_ns));
	torsh_json_set(object, "kernel_count", torsh_json_u64(kernels->n_kernels));
	torsh_json_set(object, "dominant_kernel_id", torsh_json_text(dominant));
	for (int metric = 0; metric < N_KERNEL_METRICS; metric++)
		torsh_json_set(object, torsh_metric_fields[metric].name,
			       make_metric(kernels, metric));
	free(dominant);
	return object;
}

/* ---- attributes of the span ------------------------------------------------------------- */

static cJSON *make_id(const struct span_id *id)
{
	char *text = id->name ? torsh_need_text("%s_%" PRIu64, id->name, id->index) : NULL;
	cJSON *value = torsh_json_text(text);

	free(text);
	return value;
}

static cJSON *make_sizes(const struct input *tensor)
{
	cJSON *list = torsh_json_list();

	for (uint32_t i = 0; i < tensor->n_dims; i++)
		torsh_json_add(list, torsh_json_i64(tensor->dims[i]));
	return list;
}

static cJSON *make_type(const struct input *tensor)
{
	char *text = torsh_need(strndup(tensor->text, tensor->n_type));
	cJSON *value = torsh_json_text(text);

	free(text);
	return value;
}

/* Of its tensors, those in lists too. */
static void set_shapes(cJSON *object, const struct inputs *inputs, bool is_known)
{
	cJSON *shapes = is_known ? torsh_json_list() : torsh_json_text(NULL);
	cJSON *types = is_known ? torsh_json_list() : torsh_json_text(NULL);

	for (uint32_t i = 0; is_known && i < inputs->n_items; i++) {
		if (inputs->items[i].kind != INPUT_TENSOR)
			continue;
		torsh_json_add(shapes, make_sizes(&inputs->items[i]));
		torsh_json_add(types, make_type(&inputs->items[i]));
	}
	torsh_json_set(object, "input_shapes", shapes);
	torsh_json_set(object, "dtypes", types);
}

static cJSON *make_number(bool is_known, uint64_t number)
{
	return is_known ? torsh_json_u64(number) : torsh_json_text(NULL);
}

/*
 * By its name and inputs: what the operators around and inside of it are worth is not subtracted.
 */
static void set_flops(cJSON *object, const struct flops *flops, uint64_t total_ns)
{
	bool is_known = flops->status == FLOPS_COUNTED || flops->status == FLOPS_NONE;

	torsh_json_set(object, "flops", make_number(is_known, flops->all));
	torsh_json_set(object, "flops_source", torsh_json_text(is_known ? "analytic" : NULL));
	torsh_json_set(object, "gflops_per_s",
		       is_known && total_ns
			       ? torsh_json_double((double)flops->all / (double)total_ns)
			       : torsh_json_text(NULL));
}

static void set_roofline(cJSON *object, const struct operator_roofline *found)
{
	static const char *const classes[] = {
		[BOUND_BY_MEMORY] = "memory_bound", [BOUND_BY_COMPUTING] = "compute_bound"};
	const struct roofline *roofline = &found->roofline;
	bool is_known = found->bound != BOUND_UNKNOWN;
	cJSON *value = torsh_json_object();

	torsh_json_set(value, "ai",
		       is_known ? torsh_json_double(roofline->intensity) : torsh_json_text(NULL));
	torsh_json_set(value, "class", torsh_json_text(classes[found->bound]));
	torsh_json_set(value, "ceiling",
		       is_known ? torsh_json_double(roofline->ceiling_gflops)
				: torsh_json_text(NULL));
	torsh_json_set(value, "efficiency_pct",
		       is_known ? torsh_json_double(roofline->efficiency_pct)
				: torsh_json_text(NULL));
	torsh_json_set(value, "reason", torsh_json_text(found->reason));
	torsh_json_set(object, "roofline", value);
}

/* What its kernels moved. */
static void set_bytes(cJSON *object, const struct sums *sums)
{
	double read, written;
	bool is_known = torsh_metrics_value(&sums->kernels, METRIC_DRAM_READ, &read) &&
			torsh_metrics_value(&sums->kernels, METRIC_DRAM_WRITTEN, &written);

	torsh_json_set(object, "mem_bytes",
		       is_known && read + written >= 0 && read + written < 0x1p63
			       ? torsh_json_u64((uint64_t)(read + written))
			       : torsh_json_text(NULL));
}

static void set_inputs(cJSON *object, struct profile_json *profile,
		       const struct profile_operator *op, const struct sums *sums)
{
	const char *text = op->inputs ? torsh_timeline_label(op->process, op->inputs) : NULL;
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct flops flops = {.status = FLOPS_NO_FORMULA};
	struct operator_roofline roofline;

	torsh_inputs_parse(inputs, text);
	if (op->is_operator && !profile->trace->recording->without_flops)
		flops = torsh_flops_of(op->id.name, inputs);
	set_shapes(object, inputs, text);
	set_flops(object, &flops, sums->kernels.total_ns);
	set_bytes(object, sums);
	roofline = torsh_profile_bind(profile, op, &sums->kernels, &flops);
	set_roofline(object, &roofline);
	free(inputs);
}

static void set_operator(cJSON *object, struct profile_json *profile,
			 const struct profile_operator *op, const struct sums *sums)
{
	const char *module = op->module ? torsh_timeline_label(op->process, op->module) : NULL;

	torsh_json_set(object, "self_wall_ns", torsh_json_u64(sums->wall_ns));
	torsh_json_set(object, "cpu_time_ns",
		       make_number(op->is_operator, op->end_ns - op->start_ns));
	set_inputs(object, profile, op, sums);
	torsh_json_set(object, "host_alloc_bytes", make_number(op->is_operator, op->host_bytes));
	torsh_json_set(object, "device_alloc_bytes",
		       make_number(op->is_operator, op->device_bytes));
	torsh_json_set(object, "seq", make_number(op->sequence != OP_NO_SEQUENCE, op->sequence));
	torsh_json_set(object, "fwd_op_id", make_id(&op->forward));
	torsh_json_set(object, "module_path", torsh_json_text(module));
	torsh_json_set(object, "training_phase",
		       torsh_json_text(op->is_operator ? torsh_phase_names[op->phase] : NULL));
	torsh_json_set(object, "pid", torsh_json_u64(op->process->pid));
}

static void set_layer(cJSON *object, const struct profile_operator *op)
{
	bool has_layer = op->layer_group;

	torsh_json_set(object, "layer_group", torsh_json_text(op->layer_group));
	torsh_json_set(object, "layer_instance", make_number(has_layer, op->layer_instance));
	torsh_json_set(object, "is_representative",
		       has_layer ? torsh_json_bool(op->is_representative) : torsh_json_text(NULL));
}

static bool is_in(const cJSON *list, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		if (strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

/* What its kernels were made of beside the operator itself. */
static cJSON *make_fused_with(const struct profile_json *profile, const struct profile_operator *op)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < op->n; i++) {
		const struct inductor_kernel *fused =
			profile->work[profile->order[op->first + i]].by.fused;

		for (size_t k = 0; fused && k < fused->n_operators; k++) {
			if (strcmp(fused->operators[k], op->id.name) != 0 &&
			    !is_in(list, fused->operators[k]))
				torsh_json_add(list, torsh_json_text(fused->operators[k]));
		}
	}
	return list;
}

/* The first members, with a comma behind. */
static cJSON *make_head(struct profile_json *profile, const struct profile_operator *op,
			const struct sums *sums)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "operator_id", make_id(&op->id));
	torsh_json_set(object, "operator_name", torsh_json_text(op->id.name));
	torsh_json_set(object, "call_index", torsh_json_u64(op->id.index));
	torsh_json_set(object, "is_fused", torsh_json_bool(sums->is_fused));
	torsh_json_set(object, "fused_with", make_fused_with(profile, op));
	torsh_json_set(object, "aggregated", make_aggregated(sums));
	set_operator(object, profile, op, sums);
	set_layer(object, op);
	return object;
}

/*
 * The reason why fields of aggregated are null, or 0 if they cannot be null: that of its first
 * kernel.
 */
static void set_status(cJSON *object, const struct profile_json *profile,
		       const struct profile_operator *op)
{
	cJSON *status = torsh_json_object();
	const char *reason = op->n ? torsh_profile_uncounted_work(
					     profile, &profile->work[profile->order[op->first]])
				   : torsh_profile_uncounted(profile, op->process);

	torsh_json_set(status, "*", torsh_json_text(reason));
	torsh_json_set(object, "metrics_status", status);
}

void torsh_profile_put_range(struct profile_json *profile, const struct profile_operator *op)
{
	if (!op || !op->range) {
		torsh_stream_text(profile->output, "null");
		return;
	}
	torsh_stream_text(profile->output, "{\"text\":\"");
	torsh_stream_text(profile->output, torsh_profile_text(profile, op->process, op->range));
	torsh_stream_print(profile->output,
			   "\",\"depth\":%" PRIu32 ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64,
			   op->depth, op->start_ns, op->end_ns);
	torsh_stream_text(profile->output, ",\"domain\":\"");
	torsh_stream_text(profile->output,
			  op->domain ? torsh_profile_text(profile, op->process, op->domain)
				     : "default");
	torsh_stream_text(profile->output, "\"}");
}

void torsh_profile_put_operator(struct profile_json *profile, const struct profile_operator *op)
{
	const uint32_t *order = profile->order + op->first;
	struct sums sums;
	cJSON *head;
	char *text;

	sum_work(profile, op, &sums);
	head = make_head(profile, op, &sums);
	set_status(head, profile, op);
	text = torsh_need(cJSON_PrintUnformatted(head));
	/* Its last brace is left to what follows. */
	torsh_stream_put(profile->output, text, strlen(text) - 1);
	cJSON_free(text);
	cJSON_Delete(head);
	torsh_stream_text(profile->output, ",\"nvtx_range\":");
	torsh_profile_put_range(profile, op);
	torsh_stream_text(profile->output, ",\"kernels\":[");
	torsh_profile_put_list(profile, order, op->n, true);
	torsh_stream_text(profile->output, "],\"copies\":[");
	torsh_profile_put_list(profile, order, op->n, false);
	torsh_stream_text(profile->output, "]}");
}
