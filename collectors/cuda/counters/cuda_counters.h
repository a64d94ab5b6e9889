/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counters of devices, where TORSH_PROFILER_COUNTERS asks for them:
 * collectors/cuda/counters/cuda_counters.c says how they are read and why not, cuda_counter_set.c
 * chooses what is measured, cuda_counter_ranges.c measures kernels, cuda_counter_gate.c decides
 * when that can harm nobody, cuda_counter_samples.c measures devices at intervals. Without the
 * variable none of it is entered, and nothing of CUPTI's is called for it.
 */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTERS_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTERS_H

#include <stdint.h>

#include "agent/process/text_buffer.h"
#include "agent/wire/event.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"

/* ---- what collectors/cuda/cuda.c calls ------------------------------------------------------- */

/* Are counters asked for, and not refused yet? */
int torsh_cuda_counters_are_on(void);

/* It is decided whether CUPTI calls us back; why_not: NULL, or why it does not, in words. */
void torsh_cuda_counters_begin(const char *why_not);

/* Is torsh_cuda_counters_call to hear of this call of the driver's? The id is remembered then. */
int torsh_cuda_counters_watch(uint32_t id, const char *name);

/*
 * A call of the driver's that is watched begins or ends, on the thread that makes it, CUPTI holding
 * no lock.
 */
void torsh_cuda_counters_call(const struct cupti_call *call, uint32_t id);

/* A context is about to be destroyed. */
void torsh_cuda_counters_context_ends(const void *context);

/* A record of a kernel has come; from where CUPTI may hold its locks. */
void torsh_cuda_counters_kernel(const struct cupti_kernel *kernel);

/* The process ends. Once; and after it all of CUPTI's records that there are have come, so many. */
void torsh_cuda_counters_end(void);
void torsh_cuda_counters_check_records(uint64_t n_records);

/* ---- cuda_counters.c ------------------------------------------------------------------------- */

/* Sums for the recording; any thread. */
struct counter_losses {
#define LOSS(name) _Atomic uint64_t name;
	COUNTER_LOSSES
#undef LOSS
};

extern struct counter_losses torsh_counter_losses;

#define COUNTER_COUNT(field) \
	atomic_fetch_add_explicit(&torsh_counter_losses.field, 1, memory_order_relaxed)

/* Send an event of this thread. */
void torsh_counters_send(const struct event *event);

/*
 * Before anything else of CUPTI's profiler, once in a process; never inside of cuInit. Returns 0,
 * or -1 when it was refused.
 */
int torsh_counters_initialise(void);

/* Counters can't be had any more: what was tried, and CUPTI's result. Said once in a process. */
void torsh_counters_refuse(const char *what, int result);

/* ---- cuda_counter_set.c ---------------------------------------------------------------------- */

#define COUNTERS_MAX 32u /* metrics of a set */

/* What is measured on one device. */
struct counter_set {
	enum cupti_profiler_type type;
	size_t n_passes;
	uint32_t n;
	const char *names[COUNTERS_MAX];
	uint8_t rows[COUNTERS_MAX]; /* of cuda_counters.def */
	void *host;
	uint8_t *config; /* CUPTI uses it until the set is freed */
	size_t config_bytes;
};

enum counter_choice {
	K1 = 1, /* kernels, in one pass */
	K2 = 2, /* kernels, in two */
	T = 4, /* a device at intervals */
};

/*
 * Choose the metrics of that set which the chip has, and which fit into its passes. availability:
 * CUPTI's image of what can be counted on the device, or NULL: then the chip's name alone decides.
 * Returns 0, or CUPTI's result: the set is empty then.
 */
int torsh_counter_set_choose(struct counter_set *set, enum counter_choice choice, const char *chip,
			     const uint8_t *availability);
void torsh_counter_set_free(struct counter_set *set);

/* Say of what these are, and of which device. */
void torsh_counter_set_tell(const struct counter_set *set, uint32_t device, const char *chip,
			    uint64_t interval_ns);

/* The values of a range or a sample in the image, values[set->n]. Returns 0 or CUPTI's result. */
int torsh_counter_set_evaluate(const struct counter_set *set, const uint8_t *image,
			       size_t image_bytes, size_t index, double *values);

/* The numbers that metrics have in events: first of the device's. */
static inline uint32_t torsh_counter_number(uint32_t device, uint32_t index)
{
	return device * COUNTERS_MAX + index;
}

/* Put up to COUNTER_VALUES values from first on into the fields of an event. Returns how many. */
uint32_t torsh_counter_values(const double *values, uint32_t first, uint32_t n, uint64_t *fields);

/* The field, the name in reports, of a row of cuda_counters.def. */
const char *torsh_counter_field(uint8_t row);

/* ---- cuda_counter_refusal.c ------------------------------------------------------------------ */

/*
 * Why, in words, with what to do about it. admin_only: the file that says whom the driver lets
 * measure.
 */
void torsh_counter_refusal(struct text *text, int result, const char *admin_only);

#define COUNTER_ADMIN_ONLY "/proc/driver/nvidia/params"

/* ---- cuda_counter_gate.c --------------------------------------------------------------------- */

/* Is this the name of a kernel that may wait for another device or process? */
int torsh_counter_is_collective(const char *name);

/*
 * A kernel that may wait for others is about to be launched on this context, or was not after all.
 */
void torsh_counter_collective_begins(uint32_t context);
void torsh_counter_collective_failed(uint32_t context);

/* One has ended. */
void torsh_counter_collective_ended(uint32_t context);

/*
 * All that was launched on the context before the call, of which so many were collectives, has
 * ended.
 */
uint32_t torsh_counter_collectives_of(uint32_t context);
void torsh_counter_collectives_ended(uint32_t context, uint32_t n);

/* A graph with unknown contents is launched. */
void torsh_counter_graph_begins(uint32_t context);

void torsh_counter_capture_begins(void);
void torsh_counter_capture_ended(void);

/* From now on streams of this process may wait for what only the process itself can do. */
void torsh_counter_streams_wait(void);

/* A launch that is not measured: waits while one is. Each enter has its leave. */
void torsh_counter_gate_enter(void);
void torsh_counter_gate_leave(void);

/* Let nobody else launch. Returns 0 where a launch is under way. */
int torsh_counter_gate_close(void);
void torsh_counter_gate_open(void);

/* The same to measure a kernel: 0, and counted, also where it might wait for others. */
int torsh_counter_gate_close_to_measure(void);

/* ---- cuda_counter_ranges.c ------------------------------------------------------------------- */

/*
 * A launch with this name and shape begins; 1: it is being measured, and torsh_counter_range_end
 * has to follow.
 */
int torsh_counter_range_begin(const struct cupti_call *call,
			      const struct cupti_launch_config *shape);
void torsh_counter_range_end(const struct cupti_call *call);
void torsh_counter_ranges_forget(const void *context);
void torsh_counter_ranges_end(void);

/* ---- cuda_counter_samples.c ------------------------------------------------------------------ */

/* There is work for the context's device: it is measured from now on. */
void torsh_counter_samples_see(void *context, uint32_t context_id);
void torsh_counter_samples_end(void);

#endif
