/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What rules look at: one pass over the timeline, added up by kind. Held are a row for each kind of
 * work and of call, and some seven bytes for each stretch in which a device was at work.
 */
#ifndef TORSH_ANALYSIS_METRICS_H
#define TORSH_ANALYSIS_METRICS_H

#include "tools/analysis/analysis.h"
#include "tools/analysis/host/gc_time.h"
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

/* Kernels that are alike, or copies or memsets, that one operator launched. */
struct metrics_work {
	struct work_key {
		enum device_what what;
		uint32_t device, name, site, stack;
		uint32_t grid[3], block[3], registers, static_bytes, dynamic_bytes;
	} key;
	struct event_kernel kernel; /* the first, of a kernel */
	const char *operator_name; /* NULL: none */
	const char *family; /* by the name */
	bool is_attributed, is_of_graph;
	uint64_t n, total_ns;
	struct kernel_sums counted; /* of those of this shape that were measured, one ns each */
};

/* What host calls are about. */
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

/* Calls of one name that one operator made. */
struct metrics_call {
	struct call_key {
		enum host_kind kind;
		uint32_t api, operator_label, stack;
	} key;
	const char *operator_name; /* NULL: none */
	uint64_t n, total_ns;
	uint64_t n_steady, steady_ns; /* in whole steps after the first */
	uint64_t n_outside; /* of the optimizer, in whole steps */
};

struct host_time {
	uint64_t n, total_ns, n_steady, steady_ns, n_outside;
	struct busy busy; /* of any thread */
};

struct metrics_device {
	uint32_t number;
	struct stretches stretches; /* in which it was at work */
	uint64_t n_kernels,
		n_short; /* outside of graphs, with a known launch; n_short: shorter than that */
	uint64_t work_ns, unattributed_ns; /* of what was requested in scope */
	uint64_t communication_ns;
	uint64_t scope_ns; /* without steps: from its first work to the end of the last */
	uint64_t busy_ns, computing_ns; /* in the scope, as the next two */
	/* between stretches; of that, while the host had not requested the next one */
	uint64_t gaps_ns, host_wait_ns;
	uint64_t longest_gap_ns, gap_at_ns; /* that began in the scope */
};

/* What a framework's allocator reported for a device. */
struct metrics_memory {
	uint32_t device;
	bool has_sums;
	uint64_t allocated, reserved; /* when most was allocated */
	uint64_t largest_bytes;
	const char *largest_operator;
	uint32_t largest_stack;
};

/* Calls of one operator that launched something themselves. */
struct metrics_operator {
	const char *name;
	uint64_t n, n_unknown; /* n_unknown: without FLOPs */
	double flops;
	/* Of its kernels. */
	uint64_t n_kernels, total_ns, n_uncounted, n_of_graphs;
	double bytes; /* of the counted ones' DRAM */
	double throughput_pct_ns; /* percent times ns */
	uint32_t device;
	bool has_several_devices;
	struct key_index shapes; /* of its tensors, all of a call together: hashes */
	/* steady steps in which it met a new one, and its calls on these */
	uint64_t n_shapes_steps, new_shapes_ns;
	size_t last_shapes_step; /* the last of them, and 1 */
};

/* A collective on a device. */
struct metrics_collective {
	uint64_t begin_ns, duration_ns;
	uint64_t name; /* hash */
};

/*
 * How long a rank was in collectives while others were not there yet, by the same collectives of
 * theirs.
 */
struct metrics_waiting {
	const char *reason; /* why the value is unknown, or NULL */
	/* collectives that were compared; longer than on the rank where each was shortest */
	uint64_t n, ns;
	const struct recorded_process *late; /* for which it waited most; NULL: for none */
};

struct metrics_process {
	const struct recorded_process *process;
	const struct prepass_process *of;
	struct time_scope scope;
	bool has_mode, has_losses;
	struct event_device_mode mode;
	struct event_device_loss losses;
	uint64_t overhead_ns; /* that CUPTI and the driver reported */
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
	struct gc_time gc;
	uint64_t last_work_ns; /* when the last operator or work of a device ended */
	struct metrics_collective *collectives; /* in the order in which they began */
	size_t n_collectives, collectives_room;
	struct metrics_waiting waiting;
	uint64_t n_unknown_memory; /* copies with an unknown kind of memory */
	/* of the steps that are wholly in the scope: in DataLoaders, and their time */
	uint64_t data_ns, data_scope_ns;
	/* While it is walked. */
	struct hash_map known_work, known_calls, known_operators;
	enum host_kind *kind_of_label; /* and 1; 0: not looked at */
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
 * Collect the metrics that the rules use, in one pass over the timeline. The request outlives
 * them. Dies where the recording cannot be read. The caller frees them with torsh_metrics_free.
 */
struct metrics *torsh_metrics_collect(const struct analysis_request *request);

/* Free the metrics. */
void torsh_metrics_free(struct metrics *metrics);

/* A process's device of that number, made where it is the first; NULL: there are too many. */
struct metrics_device *torsh_metrics_device(struct metrics_process *of, uint32_t number);

/* The device was at work, for whomever. */
void torsh_metrics_stretch(struct metrics_device *device, const struct device_activity *activity);

/* It did something that was requested in the scope; by: the requester. */
void torsh_metrics_row(struct metrics_process *of, struct metrics_device *device,
		       const struct device_activity *activity, const struct attribution *by);

/* The program called CUDA: EVENT_DEVICE_CALL. */
void torsh_metrics_call(struct metrics_process *of, const struct timeline_event *event,
			const struct enclosing_spans *around);

/* Go over a device's stretches and report when it was busy, and for what it waited. */
void torsh_metrics_settle_device(struct metrics_device *device, const struct time_scope *scope);

/* It is a collective that all ranks of a group run. */
void torsh_metrics_collective(struct metrics_process *of, const struct device_activity *activity);

/* Compare the collectives of processes that are ranks of one job. */
void torsh_metrics_ranks(struct metrics *metrics);

/* A call of an operator that launched something, on these inputs, in that span of the scope. */
void torsh_metrics_shapes(struct metrics_process *of, struct metrics_operator *op,
			  const struct inputs *inputs, const struct span *span, size_t interval);

/*
 * Add what counters reported for kernels to the work that is like them, and that to its operators.
 */
void torsh_metrics_counters(struct metrics *metrics);

/* The operator of that name; made where it is the first. */
struct metrics_operator *torsh_metrics_operator(struct metrics_process *of, const char *name);

#endif
