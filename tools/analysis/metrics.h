/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The input of rules: one pass over the timeline, summed by kind. Holds a row for each kind of
 * activity and of call, and some seven bytes per stretch in which a device was busy.
 */
#ifndef TORSH_ANALYSIS_METRICS_H
#define TORSH_ANALYSIS_METRICS_H

#include "tools/analysis/analysis.h"
#include "tools/analysis/host/gc_time.h"
#include "tools/analysis/host/host_costs.h"
#include "tools/analysis/host/operator_time.h"
#include "tools/analysis/stretches.h"
#include "tools/analysis/time_scope.h"
#include "tools/base/containers/hash_map.h"
#include "tools/device/kernels/attribution.h"
#include "tools/device/kernels/counters.h"
#include "tools/device/kernels/kernel_metrics.h"
#include "tools/timeline/device/busy.h"
#include "tools/timeline/inputs.h"
#include "tools/timeline/phase_clock.h"

/* Kernels with equal parameters, or copies or memsets, that one operator launched. */
struct metrics_work {
	struct work_key {
		enum device_what what;
		uint32_t device, name, site, stack;
		uint32_t grid[3], block[3], registers, static_bytes, dynamic_bytes;
	} key;
	struct event_kernel kernel; /* of a kernel: the first one */
	const char *operator_name; /* NULL: none */
	const char *family; /* by the kernel's name */
	bool is_attributed, is_of_graph;
	uint64_t n, total_ns, longest_ns, longest_at_ns; /* longest: of one activity */
	struct kernel_sums counted; /* of the measured kernels of this shape, with 1 ns each */
};

/* The purpose of a host call. */
enum host_kind {
	HOST_NONE,
	HOST_WAIT,
	HOST_ALLOCATION,
	HOST_MODULE,
	HOST_PAGEABLE_COPY,
	HOST_SYNCHRONOUS_COPY,
	HOST_SYNCHRONOUS_MEMSET,
	N_HOST_KINDS
};

/* Calls of one name by one operator. */
struct metrics_call {
	struct call_key {
		enum host_kind kind;
		uint32_t api, operator_label, stack;
	} key;
	const char *operator_name; /* NULL: none */
	uint64_t n, total_ns, longest_ns, longest_at_ns; /* longest: of one call */
	uint64_t n_steady, steady_ns; /* in whole steps after the first */
	uint64_t n_outside; /* outside of the optimizer, in whole steps */
};

struct host_time {
	uint64_t n, total_ns, n_steady, steady_ns, n_outside;
	struct busy busy; /* over all threads */
};

struct metrics_device {
	uint32_t number;
	struct stretches stretches; /* in which it was busy */
	uint64_t n_kernels,
		/* Outside of graphs, with a known launch; n_short: the shorter ones of these. */
		n_short;
	uint64_t work_ns, unattributed_ns; /* of activities launched in the scope */
	uint64_t communication_ns;
	uint64_t scope_ns; /* without steps: from the first begin to the last end of an activity */
	uint64_t busy_ns, computing_ns; /* in the scope, as the next two */
	/* between stretches; host_wait_ns: before the host had launched the next one */
	uint64_t gaps_ns, host_wait_ns;
	uint64_t longest_gap_ns, gap_at_ns; /* that began in the scope */
};

/* The values that a framework's allocator reported for a device. */
struct metrics_memory {
	uint32_t device;
	bool has_sums;
	uint64_t allocated, reserved; /* when most was allocated */
	uint64_t largest_bytes;
	const char *largest_operator;
	uint32_t largest_stack;
};

/* Calls of one operator that launched device activities themselves. */
struct metrics_operator {
	const char *name;
	uint64_t n, n_unknown; /* n_unknown: without FLOPs */
	double flops;
	/* Over its kernels. */
	uint64_t n_kernels, total_ns, n_uncounted, n_of_graphs;
	double bytes; /* of the measured ones' DRAM */
	double throughput_pct_ns; /* percent x ns */
	uint32_t device;
	bool has_several_devices;
	struct key_index shapes; /* hashes of all tensors of a call */
	/* steady steps with a new shape, and the time of the calls with it */
	uint64_t n_shapes_steps, new_shapes_ns;
	size_t last_shapes_step; /* index of the last such step + 1 */
};

/* A collective on a device. */
struct metrics_collective {
	uint64_t begin_ns, duration_ns;
	uint64_t name; /* hash of the name */
};

/* How long a rank waited in collectives for the others, by their times in the same collectives. */
struct metrics_waiting {
	const char *reason; /* why the value is unknown, or NULL */
	/* collectives compared; ns: in excess of the rank where each was shortest */
	uint64_t n, ns;
	const struct recorded_process *late; /* the rank that it waited for most; NULL: none */
};

struct metrics_process {
	const struct recorded_process *process;
	const struct prepass_process *of;
	struct time_scope scope;
	bool has_mode, has_losses;
	struct event_device_mode mode;
	struct event_device_loss losses;
	uint64_t overhead_ns; /* reported by CUPTI and the driver */
	struct metrics_work *work;
	size_t n_work, work_room;
	struct metrics_call *calls;
	size_t n_calls, calls_room;
	struct host_time host[N_HOST_KINDS];
	struct metrics_device *devices;
	size_t n_devices, devices_room;
	struct metrics_memory *memory;
	size_t n_memory, memory_room;
	struct metrics_operator *operators;
	size_t n_operators, operators_room;
	struct operator_time operator_time;
	struct host_costs costs;
	struct gc_time gc;
	uint64_t last_work_ns; /* end of the last operator or device activity */
	struct metrics_collective *collectives; /* in the order in which they began */
	size_t n_collectives, collectives_room;
	struct metrics_waiting waiting;
	uint64_t n_unknown_memory; /* copies with an unknown kind of memory */
	/* of steps wholly in the scope: time in DataLoaders, and in all */
	uint64_t data_ns, data_scope_ns;
	/* During the pass. */
	struct hash_map known_work, known_calls, known_operators;
	enum host_kind *kind_of_label; /* kind + 1; 0: not looked up */
	struct phase_clock clock;
	struct phase_step *spent;
};

struct metrics {
	const struct analysis_request *request;
	struct attributor *attributor; /* owns names */
	struct counters counters;
	struct metrics_process *processes;
	size_t n;
	struct device_join *join;
};

/*
 * Collect the metrics in one pass over the timeline. The request outlives them. Ends the program
 * if the recording cannot be read. The caller frees them with torsh_metrics_free.
 */
struct metrics *torsh_metrics_collect(const struct analysis_request *request);

/* Free the metrics. */
void torsh_metrics_free(struct metrics *metrics);

/*
 * Returns a process's device of that number, and creates it if it is new; NULL: there are too
 * many.
 */
struct metrics_device *torsh_metrics_device(struct metrics_process *of, uint32_t number);

/* Add a stretch in which the device was busy, for any purpose. */
void torsh_metrics_stretch(struct metrics_device *device, const struct device_activity *activity);

/* Add an activity that was launched in the scope; by: its attribution. */
void torsh_metrics_row(struct metrics_process *of, struct metrics_device *device,
		       const struct device_activity *activity, const struct attribution *by);

/* Returns true for a function of CUDA in which the host waits for a device. */
bool torsh_host_call_waits(const char *name);

/* Add a CUDA call: EVENT_DEVICE_CALL. */
void torsh_metrics_call(struct metrics_process *of, const struct timeline_event *event,
			const struct enclosing_spans *around);

/* Compute from a device's stretches when it was busy, and what it waited for. */
void torsh_metrics_settle_device(struct metrics_device *device, const struct time_scope *scope);

/* Add a collective that all ranks of a group run. */
void torsh_metrics_collective(struct metrics_process *of, const struct device_activity *activity);

/* Compare the collectives of processes that are ranks of one job. */
void torsh_metrics_ranks(struct metrics *metrics);

/*
 * Add the input shapes of an operator's call that launched something, in that interval of the
 * scope.
 */
void torsh_metrics_shapes(struct metrics_process *of, struct metrics_operator *op,
			  const struct inputs *inputs, const struct span *span, size_t interval);

/*
 * Add counter values of kernels to the activities with the same parameters, and to their
 * operators.
 */
void torsh_metrics_counters(struct metrics *metrics);

/* Returns the operator of that name, and creates it if it is new. */
struct metrics_operator *torsh_metrics_operator(struct metrics_process *of, const char *name);

#endif
