/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/peak.h"

static const struct recorded_process *highest_of(struct recorded_process *const *processes,
						 size_t n)
{
	const struct recorded_process *highest = processes[0];

	for (size_t i = 1; i < n; i++) {
		if (processes[i]->heap.peak_bytes > highest->heap.peak_bytes)
			highest = processes[i];
	}
	return highest;
}

struct peak torsh_peak_choose(const struct recording *recording,
			      struct recorded_process *const *processes, size_t n)
{
	const struct recorded_session *joint = &recording->joint;
	const struct recorded_process *process;

	if (n > 1 && n == recording->n_processes && joint->is_there)
		return (struct peak){
			.is_known = true,
			.bytes = joint->peak_bytes,
			.blocks = joint->peak_blocks,
			.at_ns = joint->peak_ns,
			.late_changes = joint->late_changes,
		};
	process = highest_of(processes, n);
	return (struct peak){
		.process = process,
		.is_known = torsh_recording_has_heap(process),
		.bytes = process->heap.peak_bytes,
		.blocks = process->heap.peak_blocks,
		.at_ns = process->heap.peak_ns,
	};
}

void torsh_peak_collect(struct allocation_sites *sites, const struct peak *peak,
			const struct recording *recording)
{
	if (peak->process) {
		torsh_sites_collect(sites, peak->process, SITES_PEAK);
		return;
	}
	for (size_t i = 0; i < recording->n_processes; i++)
		torsh_sites_collect(sites, recording->processes[i], SITES_SESSION_PEAK);
}

struct estimate_variance torsh_peak_variance(const struct peak *peak,
					     const struct recording *recording)
{
	struct allocation_sites sites = {0};
	struct estimate_variance variance;

	if (!torsh_recording_sampled_every(recording->processes, recording->n_processes))
		return (struct estimate_variance){0};
	torsh_peak_collect(&sites, peak, recording);
	variance = torsh_sites_variance(&sites);
	torsh_sites_free(&sites);
	return variance;
}
