/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The critical path of a process's steps: from the end of each step back through what had to be
 * done before, over threads, launches, streams and waits, until its begin. Its pieces add up to the
 * step. And how long the steps would take if a part of it took no time: what was recorded is
 * replayed without that part, each piece beginning when all that it needs has ended.
 *
 * Known are the order of threads and of streams, launches, and waits for streams and devices. Taken
 * from times are the ends of waits for other threads and for CUDA's events (n_guessed). Not known,
 * and so part of the path as they are: who held a lock, who gave data, when other ranks came.
 */
#ifndef TORSH_ANALYSIS_CRITICAL_CRITICAL_H
#define TORSH_ANALYSIS_CRITICAL_CRITICAL_H

#include "tools/analysis/critical/lanes.h"

extern const char *const torsh_critical_kind_names[N_CRITICAL_KINDS];
extern const char *const torsh_critical_kind_texts[N_CRITICAL_KINDS];

/* A thread, or a stream of a device. */
struct critical_lane {
	bool is_device;
	uint32_t thread; /* row */
	uint32_t device, stream;
	uint64_t ns; /* of the path */
};

/* All pieces of the path that are alike. */
struct critical_row {
	enum critical_kind kind;
	const char *name; /* a kernel's is mangled; NULL: it has none */
	size_t lane; /* index */
	uint64_t ns;
};

/* What the replay without a part takes: from the first step's begin to the last one's end. */
struct critical_gain {
	bool is_known; /* the part is on the path */
	uint64_t ns; /* by which it is shorter */
};

/* The steps to look at, by their numbers. */
struct critical_steps {
	bool is_some; /* false: the steady ones, or all */
	uint64_t first, last;
};

struct critical {
	const struct recorded_process *process; /* NULL: none has steps */
	const char *reason; /* why there is no path; NULL: there is one */
	size_t n_steps, n_all; /* that were looked at, and that there are */
	bool is_chosen; /* the user chose them */
	uint64_t first_step, last_step; /* numbers of those that were looked at */
	uint64_t steps_ns; /* of those; the rows add up to it */
	uint64_t window_ns; /* from the first one's begin to the last one's end */
	struct critical_lane *lanes;
	size_t n_lanes;
	struct critical_row *rows; /* the longest first */
	size_t n_rows;
	uint64_t kind_ns[N_CRITICAL_KINDS];
	/* if all of the kind took no time; if threads did not wait for devices but at the end */
	struct critical_gain gains[N_CRITICAL_KINDS], without_sync, without_host;
	/* the operator with most of the path; NULL: none */
	const char *operator_name;
	uint64_t operator_ns;
	struct critical_gain without_operator;
	bool has_devices, has_waits;
	uint64_t n_guessed, n_contradicting;
};

/*
 * Find the critical path of the process with most time in steps. Texts are the recording's. Ends
 * the program if the recording can't be read, or has none of the chosen steps.
 */
void torsh_critical_find(struct critical *critical, const struct recording *recording,
			 struct recorded_process *const *processes, size_t n_processes,
			 const struct prepass *prepass, const struct critical_steps *chosen);

/* Free the path. */
void torsh_critical_free(struct critical *critical);

#endif
