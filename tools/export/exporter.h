/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/export/ writes recordings for other programs. An export of stacks is this table of
 * callbacks; an export of the timeline is a struct trace_format (trace.h), and a format of several
 * files has its own folder. torsh export calls begin once, sample for every stack, end once; the
 * exporter writes to export->file, in sample or in end. Weights are blocks and bytes for each kind
 * of WEIGHTS.
 */
#ifndef TORSH_EXPORT_EXPORTER_H
#define TORSH_EXPORT_EXPORTER_H

#include <stdio.h>

#include "tools/memory/allocation_sites.h"

/* WEIGHT(NAME, name, description) */
#define EXPORT_WEIGHTS                                                                        \
	WEIGHT(LEAKED, leaked, "not freed when the process ended")                            \
	WEIGHT(PEAK, peak, "held when the heap was largest")                                  \
	WEIGHT(ALLOCATED, allocated, "ever allocated")                                        \
	WEIGHT(TEMPORARY, temporary, "freed by their own thread before it allocated another") \
	WEIGHT(CPU, cpu,                                                                      \
	       "processor time, by samples: their number, and nanoseconds in the place of bytes")

enum export_weight {
#define WEIGHT(NAME, name, text) EXPORT_##NAME,
	EXPORT_WEIGHTS
#undef WEIGHT
		N_EXPORT_WEIGHTS
};

#define EXPORT_ALL N_EXPORT_WEIGHTS /* all of memory */

extern const char *const torsh_export_weight_names[N_EXPORT_WEIGHTS];

struct export_value {
	uint64_t blocks, bytes;
};

/* A stack with its weights. Weights that are not exported are 0. */
struct export_sample {
	const struct recorded_process *process;
	uint32_t stack;
	const uint32_t *addresses; /* the frames to write, innermost first */
	size_t n_addresses;
	const char *merged; /* replaces merged frames further in; NULL: none were merged */
	struct export_value values[N_EXPORT_WEIGHTS];
};

struct exporter;

struct export
{
	const struct exporter *exporter;
	FILE *file; /* binary */
	const struct recording *recording;
	struct symbols *symbols;
	size_t n_processes; /* of the samples */
	unsigned what; /* enum export_weight, or EXPORT_ALL */
	void *state; /* owned by the exporter */
};

struct exporter {
	const char *name;
	unsigned default_what; /* EXPORT_ALL if the format holds several weights in one file */
	bool is_binary;
	void (*begin)(struct export *export);
	void (*sample)(struct export *export, const struct export_sample *sample);
	/* Write the rest, free the state. Returns 0 or -errno. */
	int (*end)(struct export *export);
};

extern const struct exporter torsh_export_folded, torsh_export_speedscope, torsh_export_pprof;

/* Returns whether that weight is exported. Processor time has to be requested. */
bool torsh_export_has(const struct export *export, enum export_weight weight);

/* Returns what the weight's bytes are: "bytes", or "nanoseconds". */
const char *torsh_export_unit(enum export_weight weight);

/*
 * Get the frames of a sample with the root first, without merged ones, as text formats need them:
 * strings owned by the symbols. Returns their number; *frames is the caller's array, grown as
 * needed.
 */
size_t torsh_export_frames(struct export *export, const struct export_sample *sample,
			   const struct frame ***frames, size_t *capacity);

#endif
