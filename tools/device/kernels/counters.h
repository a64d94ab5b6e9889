/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Hardware counters of devices: values of kernels, by launch, and samples of devices over time.
 * Receives every event of the timeline.
 */
#ifndef TORSH_DEVICE_KERNELS_COUNTERS_H
#define TORSH_DEVICE_KERNELS_COUNTERS_H

#include "tools/base/containers/key_index.h"
#include "tools/recording/timeline.h"

/* Why kernels of graphs have no values of their own. */
#define COUNTERS_NOT_OF_GRAPHS \
	"kernels of CUDA graphs are not measured, only launches that are alike without a graph"

enum { COUNTERS_A_DEVICE = 32 /* upper bound of a device's metrics */ };

/* A metric measured on a device. Texts are the recording's. */
struct counter_metric {
	const char *name; /* CUPTI's name; NULL: no metric has this number */
	const char *field; /* short name */
	uint32_t field_label; /* the short name's label */
	const char *unit; /* as CUPTI names it; NULL: none */
	enum counter_aggregate aggregate;
};

/* How a device is measured, or why none is. */
struct counter_device {
	uint32_t device; /* COUNTER_ALL_DEVICES: applies to all */
	struct event_counter_mode mode;
	struct counter_metric metrics[COUNTERS_A_DEVICE];
};

/* A measured kernel. */
struct counter_kernel {
	uint32_t correlation, launch, device, context;
	double values[COUNTERS_A_DEVICE]; /* by the device's metrics; NaN: not available */
};

/* A group of launches with equal parameters. */
struct counter_launch {
	struct event_counter_launch like; /* name is a label */
	uint32_t n_kernels; /* number of measured kernels */
};

struct counter_process {
	const struct recorded_process *process;
	struct counter_device *devices;
	size_t n_devices, devices_room;
	struct counter_kernel *kernels; /* in the order of measurement */
	size_t n_kernels, kernels_room;
	struct counter_launch *launches; /* indexed by group number */
	size_t n_launches, launches_room;
	struct key_index by_correlation; /* index of kernels */
	struct key_index by_shape; /* of launches, by group number */
	struct event_counter_loss losses;
	bool has_losses;
};

struct counters {
	struct counter_process *processes;
	size_t n, n_room;
};

/* Begin without samples; torsh_counters_destroy frees them. */
void torsh_counters_create(struct counters *counters);

/* Free the counters. */
void torsh_counters_destroy(struct counters *counters);

/* Pass any event of the process. */
void torsh_counters_see(struct counters *counters, const struct recorded_process *process,
			const struct event *event);

/* Returns the counters of the process; NULL: none. */
const struct counter_process *torsh_counters_process(const struct counters *counters,
						     const struct recorded_process *process);

/*
 * Returns the values of the kernel that this launch caused; NULL: none, as for all kernels of a
 * graph.
 */
const struct counter_kernel *torsh_counters_kernel(const struct counter_process *process,
						   uint32_t correlation, uint32_t graph);

/*
 * Returns the number of the group of launches like the kernel's, to use another kernel's values;
 * -1: none. Kernels of the group have this number in kernels[i].launch.
 */
int torsh_counters_launch(const struct counter_process *process, const struct event_kernel *kernel);

/* Returns the metric of values[i] of a device's kernels; its name is NULL if there is none. */
const struct counter_metric *torsh_counters_metric(const struct counter_process *process,
						   uint32_t device, uint32_t i);

/* Convert the values of a sample or a range to numbers. Returns their number. */
uint32_t torsh_counters_values(uint32_t n, const uint64_t *fields, double *values);

/* A value of a sample. */
struct counter_point {
	const struct counter_metric *metric;
	uint64_t key; /* device and metric, as an index among the process's */
	double value;
};

/* Get the valid values of a sample. Returns their number. */
size_t torsh_counters_points(const struct counters *counters,
			     const struct recorded_process *process,
			     const struct event_counter_sample *sample,
			     struct counter_point points[COUNTER_VALUES]);

/* Returns the name of a mode in output; never NULL. */
const char *torsh_counter_mode_name(uint32_t mode);

/* Returns the name of an aggregate in output. */
const char *torsh_counter_aggregate_name(enum counter_aggregate aggregate);

#endif
