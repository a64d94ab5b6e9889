/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Everything about devices except their activities: the devices themselves, CUDA calls by name,
 * waits with the operators that waited, overhead of CUPTI and the driver, and the occupancy of
 * kernels.
 */
#ifndef TORSH_DEVICE_KERNELS_DEVICE_CALLS_H
#define TORSH_DEVICE_KERNELS_DEVICE_CALLS_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/intern.h"
#include "tools/device/kernels/occupancy.h"
#include "tools/recording/timeline.h"

enum device_time_kind { TIME_CALL, TIME_WAIT, TIME_OVERHEAD, N_TIME_KINDS };

/* All calls of one name, waits of one kind by one operator, or overhead of one kind. */
struct device_time {
	enum device_time_kind kind;
	const char *name;
	const char *operator_name; /* of waits; NULL: unknown */
	uint64_t calls, failed, total_ns, max_ns;
};

/* All launches of a kernel with equal parameters on devices of one kind. */
struct launch_shape {
	const struct recorded_process *process;
	struct event_kernel launch; /* the first one; name is the process's label */
	const struct event_device *device; /* NULL: it was not recorded */
	uint64_t calls, total_ns;
};

struct process_device {
	const struct recorded_process *process;
	struct event_device device;
};

struct device_calls {
	struct device_time *times; /* by kind, then by time, the longest first */
	size_t n_times, times_room;
	struct launch_shape *shapes; /* by time, the longest first */
	size_t n_shapes, shapes_room;
	struct process_device *devices;
	size_t n_devices, devices_room;
	struct intern texts; /* of times */
	struct hash_map known_times, known_shapes; /* indices of rows, during collection */
};

/* Begin without calls; torsh_device_calls_free frees them. */
void torsh_device_calls_create(struct device_calls *calls);

/* Free the calls. */
void torsh_device_calls_free(struct device_calls *calls);

/* Take any event. operator_label: the operator that it belongs to; 0: none. */
void torsh_device_calls_add(struct device_calls *calls, const struct recorded_process *process,
			    const struct event *event, uint32_t operator_label);

/* Sort, after all events were added. */
void torsh_device_calls_finish(struct device_calls *calls);

/* Returns the name of a wait. */
const char *torsh_wait_name(uint32_t kind);

#endif
