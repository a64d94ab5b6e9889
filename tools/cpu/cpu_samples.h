/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Samples of processor time, summed: a row for each stack on each thread and where it was in the
 * timeline. A sample counts with all that its thread ran since the sample before, so that the rows
 * of a thread add up to its processor time, but for what came after its last sample.
 */
#ifndef TORSH_CPU_CPU_SAMPLES_H
#define TORSH_CPU_CPU_SAMPLES_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/intern.h"
#include "tools/timeline/prepass/prepass.h"

struct cpu_row {
	struct recorded_process *process;
	const char *op, *module; /* operator and module, interned; NULL: in none */
	uint64_t step; /* its number; valid if has_step */
	uint32_t thread; /* row of the process's threads */
	uint32_t stack;
	int phase; /* an enum span_phase; -1: in no operator and no module */
	bool has_step;
	uint64_t n, ns;
	uint64_t n_lost; /* expirations of the timer without a sample, before these samples */
};

/* How a process was sampled; source CPU_SOURCE_NONE: it was not. */
struct cpu_sampling {
	const struct recorded_process *process;
	bool is_known; /* it was requested */
	uint32_t source, asked_hz, signal;
	uint64_t period_ns;
	const char *reason; /* in the recording; NULL: none */
};

/* Runs of Python's garbage collector of one generation. */
struct cpu_gc {
	uint64_t n, ns, longest_ns;
	uint64_t n_collected; /* objects */
};

#define CPU_GC_GENERATIONS 3

struct cpu_samples {
	struct cpu_row *rows;
	size_t n, n_room;
	struct cpu_sampling *sampling; /* by process, in the order given */
	size_t n_sampling;
	uint64_t n_samples, ns, n_lost;
	uint64_t n_without_stack;
	struct cpu_gc gc[CPU_GC_GENERATIONS]; /* by generation */
	struct intern texts;
	struct hash_map index; /* of rows */
};

/*
 * Sum the samples of these processes that the pre-pass selects. Ends the program if the recording
 * cannot be read.
 */
void torsh_cpu_samples_collect(struct cpu_samples *samples, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n_processes,
			       const struct prepass *prepass);

/* Free them. */
void torsh_cpu_samples_free(struct cpu_samples *samples);

/* Returns the sum of all generations. */
struct cpu_gc torsh_cpu_gc_sum(const struct cpu_samples *samples);

/* Returns "timer", "perf_event", or NULL. */
const char *torsh_cpu_source(uint32_t source);

#endif
