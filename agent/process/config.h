/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The configuration: the TORSH_PROFILER_* variables, read once at the start of a process. Strings
 * point into the environment of that time.
 */
#ifndef TORSH_AGENT_PROCESS_CONFIG_H
#define TORSH_AGENT_PROCESS_CONFIG_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/process/values/recorder.h"
#include "agent/wire/schedule.h"

struct text;

enum activity {
	ACTIVITY_HEAP = 1 << 0,
	ACTIVITY_VM = 1 << 1,
	ACTIVITY_PYTHON = 1 << 2, /* Python frames in stacks, runs of its garbage collector */
	ACTIVITY_TORCH = 1 << 3, /* PyTorch's operators, tensors and modules */
	ACTIVITY_NVTX = 1 << 4, /* NVTX ranges */
	ACTIVITY_ITT = 1 << 5, /* ITT tasks */
	ACTIVITY_CUDA = 1 << 6, /* device activities and their launches */
	ACTIVITY_NCCL = 1 << 8, /* NCCL's groups, calls and kernel channels */
	ACTIVITY_NCCL_FULL = 1 << 9, /* also what its proxy and networks do */
	ACTIVITY_MPI = 1 << 10, /* MPI's collectives, messages and waits */
	ACTIVITY_WAITS = 1 << 13, /* waits of threads in the C library; only if named */
	ACTIVITY_SAMPLES = 1 << 11, /* samples of the processor time of threads */
	ACTIVITY_BLAS = 1 << 12, /* calls of BLAS and LAPACK */
	ACTIVITY_PERF = 1 << 14, /* counters of the CPU; only if named */
	ACTIVITIES_OF_HOST = ACTIVITY_HEAP | ACTIVITY_VM | ACTIVITY_PYTHON | ACTIVITY_TORCH |
			     ACTIVITY_NVTX | ACTIVITY_ITT | ACTIVITY_MPI,
};

/* TORSH_PROFILER_FORWARD: what other tools for NVTX and ITT get as ranges. */
enum forward_kind { FORWARD_OPERATORS = 1 << 0, FORWARD_MODULES = 1 << 1, FORWARD_STEPS = 1 << 2 };

/* TORSH_PROFILER_COUNTERS. */
struct counters_config {
	uint32_t mode; /* enum counter_mode */
	uint32_t n_passes; /* of kernels: 1, 2 or COUNTERS_ALL_PASSES */
	uint64_t interval_ns; /* of the timeline; 0: none */
};

#define COUNTERS_ALL_PASSES UINT32_MAX /* as many as all counters take */
#define COUNTERS_INTERVAL_NS UINT64_C(1000000) /* the default */
#define COUNTERS_INTERVAL_MIN_NS UINT64_C(50000)
#define COUNTERS_INTERVAL_MAX_NS UINT64_C(1000000000)

#define HEAP_RATE_DEFAULT (UINT64_C(512) << 10)
#define HEAP_RATE_MIN (UINT64_C(1) << 10)
#define HEAP_RATE_MAX (UINT64_C(1) << 30)

#define CPU_HZ_DEFAULT 99u
#define CPU_HZ_MAX 10000u

#define CHECKPOINT_MIN_NS UINT64_C(50000000)
#define CHECKPOINT_MAX_NS UINT64_C(3600000000000)

/* First what hooks of the heap read: one cache line. */
struct config {
	alignas(64) uint64_t heap_rate; /* bytes allocated per sampled block; 0: all are recorded */
	uint32_t activities;
	bool enabled, profile_memory, with_stack, follow, summary, use_jemalloc, python_allocators,
		reachability, requests;
	bool record_shapes, with_modules, operator_stacks, with_flops;
	bool is_dormant; /* enabled, and not recorded before it is armed */
	bool began_late; /* it was dormant, and is recorded now */
	struct schedule schedule; /* active 0: none, every step is recorded */
	struct counters_config counters;
	struct record_config record;
	struct keep_config keep; /* of a flight recorder */
	uint32_t forward; /* enum forward_kind */
	uint32_t signal; /* that arms, pauses and resumes; 0: none */
	const char *keep_with; /* a directory that all ranks share; NULL: none */
	uint32_t ring_bytes;
	uint32_t cpu_hz; /* samples a second of a thread's processor time */
	uint32_t check_stacks; /* 0: never */
	uint64_t heap_seed; /* of the samples; 0: random */
	uint64_t max_size_bytes; /* 0: no limit */
	uint64_t reserve_bytes;
	uint64_t checkpoint_ns; /* between two checkpoints of the recording; 0: none */
	const char *output, *filter, *suppress, *session; /* NULL: not set */
	const char *export_formats; /* as given, comma-separated; NULL: none */
	const char *labels; /* "name=value,..."; NULL: none */
	const char *clock_peers, *clock_key; /* the writer's: it reads them itself */
};

extern struct config torsh_config;

/*
 * Read environment (as environ, NULL-terminated) into torsh_config. Complaints go to stderr unless
 * this process belongs to a session: its first process has printed them.
 */
void torsh_config_read(char *const *environment);

/* Append pattern to out with %p %n %r %h %t expanded. program is a base name. */
void torsh_config_expand(const char *pattern, const char *program, struct text *out);

/* Whether TORSH_PROFILER_FILTER accepts a program with this base name. */
bool torsh_config_matches(const char *program);

#endif
