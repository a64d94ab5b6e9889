/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about devices as a whole: when they were busy, and what they waited for. */
#include "tools/analysis/rules.h"

typedef void device_rule(struct evaluation *evaluation, const struct metrics_device *device);

static void evaluate_devices(struct evaluation *evaluation, device_rule *rule)
{
	const struct metrics_process *of = evaluation->of;

	if (!torsh_rule_can_evaluate(evaluation, torsh_no_device_work(of)))
		return;
	for (size_t i = 0; i < of->n_devices; i++) {
		if (of->devices[i].scope_ns)
			rule(evaluation, &of->devices[i]);
	}
}

static struct finding *fire(struct evaluation *evaluation, const struct metrics_device *device,
			    uint64_t ns)
{
	struct finding *finding = torsh_rule_fire(
		evaluation, torsh_percent((double)ns, (double)evaluation->of->scope.ns));

	finding->has_device = true;
	finding->device = device->number;
	torsh_finding_show(finding, device->gap_at_ns, device->longest_gap_ns);
	return finding;
}

static uint64_t idle_ns(const struct metrics_device *device)
{
	return device->scope_ns > device->busy_ns ? device->scope_ns - device->busy_ns : 0;
}

static void launch_bound(struct evaluation *evaluation, const struct metrics_device *device)
{
	double short_pct = torsh_percent((double)device->n_short, (double)device->n_kernels);
	double host_wait_pct = torsh_percent((double)device->host_wait_ns, (double)device->gaps_ns);
	double idle_pct = torsh_percent((double)idle_ns(device), (double)device->scope_ns);
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_LAUNCH_BOUND_SHORT, short_pct) ||
	    !torsh_limit_passed(LIMIT_LAUNCH_BOUND_HOST_WAIT, host_wait_pct) ||
	    !torsh_limit_passed(LIMIT_LAUNCH_BOUND_IDLE, idle_pct))
		return;
	finding = fire(evaluation, device, device->host_wait_ns);
	torsh_finding_limit(finding, LIMIT_LAUNCH_BOUND_SHORT, short_pct);
	torsh_finding_limit(finding, LIMIT_LAUNCH_BOUND_HOST_WAIT, host_wait_pct);
	torsh_finding_limit(finding, LIMIT_LAUNCH_BOUND_IDLE, idle_pct);
	torsh_finding_add(finding, "kernels", "kernels", (double)device->n_kernels);
	torsh_finding_add(finding, "host_wait_ns", "ns", (double)device->host_wait_ns);
}

static void device_underused(struct evaluation *evaluation, const struct metrics_device *device)
{
	double busy_pct = torsh_percent((double)device->busy_ns, (double)device->scope_ns);
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_DEVICE_UNDERUSED_BUSY, busy_pct))
		return;
	finding = fire(evaluation, device, idle_ns(device));
	torsh_finding_limit(finding, LIMIT_DEVICE_UNDERUSED_BUSY, busy_pct);
	torsh_finding_add(finding, "busy_ns", "ns", (double)device->busy_ns);
	torsh_finding_add(finding, "idle_ns", "ns", (double)idle_ns(device));
}

static void device_gap(struct evaluation *evaluation, const struct metrics_device *device)
{
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_DEVICE_GAP_GAP, (double)device->longest_gap_ns))
		return;
	finding = fire(evaluation, device,
		       torsh_scope_within(&evaluation->of->scope, device->gap_at_ns,
					  device->gap_at_ns + device->longest_gap_ns));
	torsh_finding_limit(finding, LIMIT_DEVICE_GAP_GAP, (double)device->longest_gap_ns);
	torsh_finding_add(finding, "at_ns", "ns since the recording began",
			  (double)device->gap_at_ns);
}

static void exposed_communication(struct evaluation *evaluation,
				  const struct metrics_device *device)
{
	uint64_t exposed_ns = device->busy_ns - device->computing_ns;
	double exposed_pct = torsh_percent((double)exposed_ns, (double)device->scope_ns);
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_EXPOSED_COMMUNICATION_EXPOSED, exposed_pct))
		return;
	finding = fire(evaluation, device, exposed_ns);
	torsh_finding_show(finding, 0, 0);
	torsh_finding_limit(finding, LIMIT_EXPOSED_COMMUNICATION_EXPOSED, exposed_pct);
	torsh_finding_add(finding, "exposed_ns", "ns", (double)exposed_ns);
	torsh_finding_add(finding, "communication_ns", "ns", (double)device->communication_ns);
}

static void high_unattributed(struct evaluation *evaluation, const struct metrics_device *device)
{
	double unattributed_pct =
		torsh_percent((double)device->unattributed_ns, (double)device->work_ns);
	struct finding *finding;

	evaluation->share_of = "the device's work";
	if (!torsh_limit_passed(LIMIT_HIGH_UNATTRIBUTED_TIME, unattributed_pct))
		return;
	finding = torsh_rule_fire(evaluation, unattributed_pct);
	finding->has_device = true;
	finding->device = device->number;
	torsh_finding_limit(finding, LIMIT_HIGH_UNATTRIBUTED_TIME, unattributed_pct);
	torsh_finding_add(finding, "unattributed_ns", "ns", (double)device->unattributed_ns);
}

#define EVALUATE_DEVICES(name)                                         \
	void torsh_rule_evaluate_##name(struct evaluation *evaluation) \
	{                                                              \
		evaluate_devices(evaluation, name);                    \
	}
EVALUATE_DEVICES(launch_bound)
EVALUATE_DEVICES(device_underused)
EVALUATE_DEVICES(device_gap)
EVALUATE_DEVICES(exposed_communication)
EVALUATE_DEVICES(high_unattributed)
#undef EVALUATE_DEVICES
