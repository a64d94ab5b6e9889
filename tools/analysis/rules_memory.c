/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about devices' memory. */
#include "tools/analysis/rules.h"

#define DEVICE_MEMORY "the device's memory"

typedef void memory_rule(struct evaluation *evaluation, const struct metrics_memory *memory,
			 uint64_t device_bytes);

static void evaluate_memory(struct evaluation *evaluation, memory_rule *rule)
{
	const struct metrics_process *of = evaluation->of;

	evaluation->share_of = DEVICE_MEMORY;
	if (!of->n_memory)
		torsh_rule_can_evaluate(evaluation,
					"no framework's allocator reported memory of a device");
	for (size_t i = 0; i < of->n_memory; i++) {
		const struct event_device *device =
			torsh_device_list_find(&of->of->devices, of->memory[i].device);

		if (device && device->memory_bytes)
			rule(evaluation, &of->memory[i], device->memory_bytes);
		else
			torsh_rule_can_evaluate(evaluation,
						"the devices' properties were not recorded");
	}
}

static struct finding *fire(struct evaluation *evaluation, const struct metrics_memory *memory,
			    double share_pct)
{
	struct finding *finding = torsh_rule_fire(evaluation, share_pct);

	finding->has_device = true;
	finding->device = memory->device;
	return finding;
}

static void memory_waste(struct evaluation *evaluation, const struct metrics_memory *memory,
			 uint64_t device_bytes)
{
	double unused = (double)memory->reserved - (double)memory->allocated, unused_pct;
	struct finding *finding;

	if (!torsh_rule_can_evaluate(
		    evaluation,
		    memory->has_sums ? NULL : "the allocator does not report what it reserves"))
		return;
	unused_pct = torsh_percent(unused, (double)memory->reserved);
	if (!torsh_limit_passed(LIMIT_MEMORY_WASTE_UNUSED, unused_pct))
		return;
	finding = fire(evaluation, memory, torsh_percent(unused, (double)device_bytes));
	torsh_finding_gains_bytes(finding, unused);
	torsh_finding_limit(finding, LIMIT_MEMORY_WASTE_UNUSED, unused_pct);
	torsh_finding_add(finding, "reserved", "bytes", (double)memory->reserved);
	torsh_finding_add(finding, "allocated", "bytes", (double)memory->allocated);
}

void torsh_rule_evaluate_memory_waste(struct evaluation *evaluation)
{
	evaluate_memory(evaluation, memory_waste);
}

static void large_allocation(struct evaluation *evaluation, const struct metrics_memory *memory,
			     uint64_t device_bytes)
{
	double size_pct = torsh_percent((double)memory->largest_bytes, (double)device_bytes);
	struct finding *finding;

	torsh_rule_can_evaluate(evaluation, NULL);
	if (!torsh_limit_passed(LIMIT_LARGE_ALLOCATION_SIZE, size_pct))
		return;
	finding = fire(evaluation, memory, size_pct);
	finding->operator_name = memory->largest_operator;
	torsh_finding_gains_bytes(finding, (double)memory->largest_bytes);
	torsh_finding_limit(finding, LIMIT_LARGE_ALLOCATION_SIZE, size_pct);
	torsh_finding_add(finding, "tensor", "bytes", (double)memory->largest_bytes);
	torsh_finding_add(finding, "device_memory", "bytes", (double)device_bytes);
}

void torsh_rule_evaluate_large_allocation(struct evaluation *evaluation)
{
	evaluate_memory(evaluation, large_allocation);
}
