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

struct sites_source torsh_peak_source(const struct peak *peak, const struct recording *recording)
{
	if (peak->process)
		/* Views add to the process's stacks; the rest of it is const. */
		return (struct sites_source){
			.processes = (struct recorded_process *const *)&peak->process,
			.n_processes = 1,
			.what = SITES_PEAK,
		};
	return (struct sites_source){
		.processes = recording->processes,
		.n_processes = recording->n_processes,
		.what = SITES_SESSION_PEAK,
	};
}

void torsh_peak_collect(struct allocation_sites *sites, const struct peak *peak,
			const struct recording *recording)
{
	struct sites_source source = torsh_peak_source(peak, recording);

	for (size_t i = 0; i < source.n_processes; i++)
		torsh_sites_collect(sites, source.processes[i], source.what);
}

static void add_variance(const struct allocation_site *site, void *sum)
{
	struct estimate_variance *variance = sum;

	variance->blocks += site->variance.blocks;
	variance->bytes += site->variance.bytes;
}

struct estimate_variance torsh_peak_variance(const struct peak *peak,
					     const struct recording *recording)
{
	struct sites_source source = torsh_peak_source(peak, recording);
	struct estimate_variance variance = {0};

	if (!torsh_recording_sampled_every(recording->processes, recording->n_processes))
		return variance;
	for (size_t i = 0; i < source.n_processes; i++)
		torsh_sites_each(source.processes[i], source.what, add_variance, &variance);
	return variance;
}
