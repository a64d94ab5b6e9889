/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about kernels: their launch parameters, and what counters report about them. */
#include <string.h>

#include "tools/analysis/rules.h"
#include "tools/device/kernels/device_peaks.h"
#include "tools/device/kernels/occupancy.h"

/* Evaluates the kernels of one shape, and fires findings. Returns NULL, or why it could not. */
typedef const char *kernel_rule(struct evaluation *evaluation, const struct metrics_work *work);

/* reason: why no kernel was evaluated, or NULL; none: the reason if there were no kernels. */
static void nothing_to_evaluate(struct evaluation *evaluation, const char *reason,
				size_t n_evaluated, const char *none)
{
	if (reason || !n_evaluated)
		torsh_rule_can_evaluate(evaluation, reason ? reason : none);
}

static void evaluate_kernels(struct evaluation *evaluation, kernel_rule *rule)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = torsh_no_device_work(of);
	size_t n_evaluated = 0;

	for (size_t i = 0; !reason && i < of->n_work; i++) {
		if (of->work[i].key.what != DEVICE_KERNEL)
			continue;
		n_evaluated++;
		torsh_rule_can_evaluate(evaluation, rule(evaluation, &of->work[i]));
	}
	nothing_to_evaluate(evaluation, reason, n_evaluated, "no kernel was recorded");
}

static struct finding *fire(struct evaluation *evaluation, const struct metrics_work *work)
{
	struct finding *finding =
		torsh_rule_fire(evaluation, torsh_work_share(evaluation->of, work));

	finding->operator_name = work->operator_name;
	finding->kernel = torsh_timeline_label(evaluation->of->process, work->key.name);
	finding->has_device = true;
	finding->device = work->key.device;
	finding->stack = work->key.stack;
	torsh_finding_show(finding, work->longest_at_ns, work->longest_ns);
	torsh_finding_add(finding, "calls", "kernels", (double)work->n);
	torsh_finding_add(finding, "total_ns", "ns", (double)work->total_ns);
	return finding;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static const char *find_occupancy(const struct evaluation *evaluation,
				  const struct metrics_work *work, struct occupancy *occupancy)
{
	const struct event_device *device =
		torsh_device_list_find(&evaluation->of->of->devices, work->key.device);

	if (!device)
		return "the devices' properties were not recorded";
	if (!work->key.block[0] || !work->key.registers)
		return "kernels' launch parameters were not recorded";
	return torsh_occupancy_of(device, &work->kernel, occupancy);
}

static const char *grid_starvation(struct evaluation *evaluation, const struct metrics_work *work)
{
	struct occupancy occupancy;
	const char *reason = find_occupancy(evaluation, work, &occupancy);

	if (!reason && torsh_limit_passed(LIMIT_GRID_STARVATION_WAVES, occupancy.waves))
		torsh_finding_limit(fire(evaluation, work), LIMIT_GRID_STARVATION_WAVES,
				    occupancy.waves);
	return reason;
}

static const char *shared_memory_limited(struct evaluation *evaluation,
					 const struct metrics_work *work)
{
	struct occupancy occupancy;
	const char *reason = find_occupancy(evaluation, work, &occupancy);
	double occupancy_pct = reason ? 0 : 100 * occupancy.share;
	struct finding *finding;

	if (reason || occupancy.limit != OCCUPANCY_SHARED ||
	    !torsh_limit_passed(LIMIT_SHARED_MEMORY_LIMITED_OCCUPANCY, occupancy_pct) ||
	    !torsh_limit_passed(LIMIT_SHARED_MEMORY_LIMITED_DYNAMIC, work->key.dynamic_bytes) ||
	    !torsh_limit_passed(LIMIT_SHARED_MEMORY_LIMITED_WAVES, occupancy.waves))
		return reason;
	finding = fire(evaluation, work);
	torsh_finding_limit(finding, LIMIT_SHARED_MEMORY_LIMITED_OCCUPANCY, occupancy_pct);
	torsh_finding_limit(finding, LIMIT_SHARED_MEMORY_LIMITED_DYNAMIC, work->key.dynamic_bytes);
	torsh_finding_limit(finding, LIMIT_SHARED_MEMORY_LIMITED_WAVES, occupancy.waves);
	return NULL;
}

/* ---- counters -------------------------------------------------------------------------------- */

static const char *why_uncounted(const struct evaluation *evaluation,
				 const struct metrics_work *work)
{
	const struct counter_process *counted =
		torsh_counters_process(&evaluation->metrics->counters, evaluation->of->process);

	for (size_t i = 0; counted && i < counted->n_devices; i++) {
		const char *reason = torsh_timeline_label(evaluation->of->process,
							  counted->devices[i].mode.reason);

		if (counted->devices[i].mode.mode == COUNTERS_OFF && reason)
			return reason;
		if (counted->devices[i].mode.mode == COUNTERS_OF_TIMELINE)
			return "counters were read of the device, not of kernels";
	}
	if (!counted || !counted->n_devices)
		return "counters were off (TORSH_PROFILER_COUNTERS)";
	if (work->counted.n_kernels)
		return "its counter is not among those that were read (TORSH_PROFILER_COUNTERS=operators:2)";
	return work->is_of_graph ? COUNTERS_NOT_OF_GRAPHS : "some kernels were not measured";
}

static const char *by_metric(struct evaluation *evaluation, const struct metrics_work *work,
			     enum kernel_metric metric, enum limit limit)
{
	double value;

	if (!torsh_metrics_value(&work->counted, metric, &value))
		return why_uncounted(evaluation, work);
	if (torsh_limit_passed(limit, value))
		torsh_finding_limit(fire(evaluation, work), limit, value);
	return NULL;
}

static const char *latency_bound(struct evaluation *evaluation, const struct metrics_work *work)
{
	return by_metric(evaluation, work, METRIC_ELIGIBLE, LIMIT_LATENCY_BOUND_ELIGIBLE);
}

static const char *divergence(struct evaluation *evaluation, const struct metrics_work *work)
{
	return by_metric(evaluation, work, METRIC_THREADS, LIMIT_DIVERGENCE_THREADS);
}

static const char *register_spills(struct evaluation *evaluation, const struct metrics_work *work)
{
	return by_metric(evaluation, work, METRIC_SPILLS, LIMIT_REGISTER_SPILLS_WAVEFRONTS);
}

#define TENSOR_CORES_SINCE 7u /* compute capability with the first tensor cores */

static const char *gemm_without_tensor_cores(struct evaluation *evaluation,
					     const struct metrics_work *work)
{
	const struct event_device *device =
		torsh_device_list_find(&evaluation->of->of->devices, work->key.device);
	bool is_gemm = work->family &&
		       (strcmp(work->family, "gemm") == 0 || strcmp(work->family, "conv") == 0);

	if (!is_gemm)
		return NULL;
	if (!device)
		return "the devices' properties were not recorded";
	if (device->capability_major < TENSOR_CORES_SINCE)
		return "the device has no tensor cores";
	if (!work->counted.has_tensor_instructions)
		return why_uncounted(evaluation, work);
	if (torsh_limit_passed(LIMIT_GEMM_WITHOUT_TENSOR_CORES_INSTRUCTIONS,
			       work->counted.tensor_instructions))
		torsh_finding_limit(fire(evaluation, work),
				    LIMIT_GEMM_WITHOUT_TENSOR_CORES_INSTRUCTIONS,
				    work->counted.tensor_instructions);
	return NULL;
}

#define EVALUATE_KERNELS(name)                                         \
	void torsh_rule_evaluate_##name(struct evaluation *evaluation) \
	{                                                              \
		evaluate_kernels(evaluation, name);                    \
	}
EVALUATE_KERNELS(grid_starvation)
EVALUATE_KERNELS(shared_memory_limited)
EVALUATE_KERNELS(gemm_without_tensor_cores)
EVALUATE_KERNELS(latency_bound)
EVALUATE_KERNELS(divergence)
EVALUATE_KERNELS(register_spills)
#undef EVALUATE_KERNELS

/* ---- operators ------------------------------------------------------------------------------- */

static const char *find_intensity(const struct evaluation *evaluation,
				  const struct metrics_operator *op, struct device_peaks *peaks)
{
	if (op->n_uncounted)
		return "the bytes that some operators moved were not counted";
	if (op->n_of_graphs)
		return "how often operators in CUDA graphs computed is not known";
	if (!op->n || op->n_unknown)
		return "the FLOPs of some operators are not known";
	if (op->has_several_devices)
		return "an operator ran on several devices";
	return torsh_device_peaks(torsh_device_list_find(&evaluation->of->of->devices, op->device),
				  peaks);
}

static double operator_share(const struct metrics_process *of, const char *name)
{
	double share_pct = 0;

	for (size_t i = 0; i < of->n_work; i++) {
		const struct metrics_work *work = &of->work[i];

		if (work->key.what == DEVICE_KERNEL && work->operator_name &&
		    strcmp(work->operator_name, name) == 0)
			share_pct += torsh_work_share(of, work);
	}
	return share_pct;
}

static const char *evaluate_operator(struct evaluation *evaluation,
				     const struct metrics_operator *op)
{
	struct device_peaks peaks;
	const char *reason = find_intensity(evaluation, op, &peaks);
	double throughput_pct = op->total_ns ? op->throughput_pct_ns / (double)op->total_ns : 0;
	struct finding *finding;

	if (reason || op->bytes <= 0 || op->flops / op->bytes >= peaks.ridge ||
	    !torsh_limit_passed(LIMIT_MEMORY_BOUND_THROUGHPUT, throughput_pct))
		return reason;
	finding = torsh_rule_fire(evaluation, operator_share(evaluation->of, op->name));
	finding->operator_name = op->name;
	finding->has_device = true;
	finding->device = op->device;
	torsh_finding_add(finding, "calls", "calls", (double)op->n);
	torsh_finding_add(finding, "total_ns", "ns", (double)op->total_ns);
	torsh_finding_limit(finding, LIMIT_MEMORY_BOUND_THROUGHPUT, throughput_pct);
	torsh_finding_add(finding, "intensity", "FLOP a byte", op->flops / op->bytes);
	torsh_finding_add(finding, "ridge", "FLOP a byte", peaks.ridge);
	return NULL;
}

void torsh_rule_evaluate_memory_bound(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = torsh_no_device_work(of);
	size_t n_evaluated = 0;

	for (size_t i = 0; !reason && i < of->n_operators; i++) {
		if (!of->operators[i].n_kernels)
			continue;
		n_evaluated++;
		torsh_rule_can_evaluate(evaluation,
					evaluate_operator(evaluation, &of->operators[i]));
	}
	nothing_to_evaluate(evaluation, reason, n_evaluated, "no kernel has an operator");
}
