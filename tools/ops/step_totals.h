/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Totals of each step of a process: time by phase, also on devices, FLOPs, tensor memory. */
#ifndef TORSH_OPS_STEP_TOTALS_H
#define TORSH_OPS_STEP_TOTALS_H

#include "tools/ops/operators.h"
#include "tools/ops/phase_traffic.h"
#include "tools/timeline/phase_lanes.h"

struct step_total {
	uint64_t calls; /* of operators */
	uint64_t flops, flops_all;
	struct phase_step spent;
	uint64_t peak_bytes; /* maximum of the tensors' bytes on all devices together */
	/*
	 * Of kernels, copies and memsets that it launched, whenever they ran; by the phase of the
	 * spans around the launch.
	 */
	uint64_t device_ns, phase_device_ns[N_PHASES];
	struct cpu_counts counts; /* of the CPU, of all threads */
};

/* One device's part of a step. */
struct step_device {
	uint64_t device_ns; /* of the step's launches there */
	/* the part of the step's own time in which the device was busy for the process */
	uint64_t busy_ns;
};

struct step_totals {
	struct step_total *items; /* parallel to the process's steps */
	uint32_t *devices; /* their numbers, ascending */
	size_t n_devices;
	struct step_device *of_devices; /* by step, then by device */
	bool has_devices; /* devices were recorded, or would have been */
	/* of the machine in the phases; none where threads work on different steps at a time */
	struct memory_traffic phase_traffic[N_PHASES + 1];
};

/*
 * Sum each step: ns of the host, of phases and of devices. Ends the program if the recording
 * cannot be read.
 */
void torsh_step_totals_collect(struct step_totals *totals, const struct recording *recording,
			       struct recorded_process *process, const struct prepass *prepass);

/* Free the totals. */
void torsh_step_totals_free(struct step_totals *totals);

/* Returns the n_devices entries of a step. */
static inline const struct step_device *torsh_step_devices(const struct step_totals *totals,
							   size_t step)
{
	return totals->of_devices + step * totals->n_devices;
}

#endif
