/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/ranks/kineto reads traces of PyTorch's profiler (Kineto's chrome JSON) for `torsh ranks`:
 * a file is one rank. Events are read one by one, and only what devices did and what launched it
 * stays in memory. Times are microseconds as the trace has them.
 */
#ifndef TORSH_RANKS_KINETO_KINETO_H
#define TORSH_RANKS_KINETO_KINETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"
#include "tools/ranks/make/rank_collective.h"

/* As HolisticTraceAnalysis calls them; by name of the kernel. */
enum kernel_type { TYPE_COMPUTATION, TYPE_COMMUNICATION, TYPE_MEMORY, TYPE_OTHER, N_KERNEL_TYPES };

#define KINETO_NO_STREAM (-1)
#define KINETO_NO_CORRELATION (-1)

/* An event on a stream. */
struct kineto_kernel {
	double start_us, dur_us;
	int64_t stream, correlation;
	uint32_t index; /* of the event in the file */
	uint32_t name; /* index of names */
	bool is_work; /* a kernel, copy or memset: no synchronisation */
	bool is_launched; /* has a correlation */
};

/* An event of the host that may have launched a kernel. */
struct kineto_launch {
	int64_t correlation;
	double start_us;
	uint32_t index;
};

/* ProfilerStep#NUMBER. */
struct kineto_step {
	double start_us, dur_us;
	uint64_t number;
};

/* A kernel of NCCL. */
struct kineto_collective {
	const char *name, *group; /* of texts */
	uint64_t bytes;
	uint32_t group_size; /* 0: unknown */
	uint64_t sequence; /* PyTorch's in the group, and 1; 0: unknown */
	double start_us, dur_us;
	int64_t correlation;
};

struct kineto_name {
	const char *text;
	enum kernel_type type;
};

struct kineto_trace {
	const char *path; /* the caller's */
	bool has_rank;
	uint32_t rank, world_size; /* world_size 0: unknown */
	uint64_t base_ns; /* baseTimeNanoseconds; 0: none */
	size_t n_events;
	double first_us, last_us; /* of all events with a duration */
	struct kineto_kernel *kernels;
	size_t n_kernels, kernels_room;
	struct kineto_launch *launches; /* by correlation, then index */
	size_t n_launches, launches_room;
	struct kineto_step *steps;
	size_t n_steps, steps_room;
	struct kineto_name *names;
	size_t n_names, names_room;
	struct hash_map name_of;
	struct hash_map step_names; /* texts with "ProfilerStep" */
	bool has_fractions; /* a time stamp isn't a whole number: then HTA rounds all of them */
	bool has_step; /* the next two are set: of the last step that the host began */
	double last_step_us;
	bool has_first_event; /* event 0 has a duration, and this is its time */
	double first_event_us;
	struct kineto_collective *collectives;
	size_t n_collectives, collectives_room;
	struct rank_collectives texts; /* only its texts */
};

/*
 * Read a trace, gzip or not. Returns true, or false with a sentence that begins with the path in
 * error; torsh_kineto_free frees what was read either way.
 */
bool torsh_kineto_read(struct kineto_trace *trace, const char *path, char *error, size_t n_error);

/* Read one from bytes, as the fuzzer does. */
bool torsh_kineto_read_from(struct kineto_trace *trace, const char *path,
			    size_t (*fill)(void *, char *, size_t), void *source, char *error,
			    size_t n_error);

/* Free it. */
void torsh_kineto_free(struct kineto_trace *trace);

/* Returns the type that HTA gives a kernel of this name. */
enum kernel_type torsh_kineto_type(const char *name);

/* Returns the launches of a correlation, *n of them, or NULL. */
const struct kineto_launch *torsh_kineto_launches(const struct kineto_trace *trace,
						  int64_t correlation, size_t *n);

#endif
