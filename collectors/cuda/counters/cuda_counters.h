/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Hardware counters of devices, if TORSH_PROFILER_COUNTERS requests them. cuda_counters.c
 * initialises CUPTI's profiler and reports why counters are missing, cuda_counter_set.c chooses
 * metrics, cuda_counter_ranges.c measures kernels, cuda_counter_samples.c measures devices at
 * intervals, cuda_counter_gate.c decides when measuring is safe, cuda_counter_refusal.c words a
 * refusal. Without the variable no counter code runs and CUPTI's profiler is not called.
 */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTERS_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "shim/cuda/cupti.h"

/*
 * Called once it is decided whether CUPTI is attached; why_not: NULL, or the reason that it is not.
 */
void torsh_cuda_counters_begin(const char *why_not);

/*
 * Whether torsh_cuda_counters_call handles the driver call with this id and name; caches the id.
 * Called before any callback runs.
 */
bool torsh_cuda_counters_watch(uint32_t id, const char *name);

/* A watched driver call begins or ends on the calling thread; CUPTI holds no lock. */
void torsh_cuda_counters_call(const struct cupti_call *call, uint32_t id);

/* The context (a CUcontext) is about to be destroyed. */
void torsh_cuda_counters_context_ends(const void *context);

/* A kernel's activity record arrived; CUPTI may hold its locks. */
void torsh_cuda_counters_kernel(const struct cupti_kernel *kernel);

/* The process ends: stop measuring. Called once. */
void torsh_cuda_counters_end(void);

/*
 * Called after the last flush: adds a note if devices were sampled but CUPTI delivered no record at
 * all.
 */
void torsh_cuda_counters_check_records(uint64_t n_records);

#endif
