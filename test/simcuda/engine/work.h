/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The work of a stream or of a graph's node: a value that its holder copies. */
#ifndef SIMCUDA_WORK_H
#define SIMCUDA_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/simcuda/engine/log/trace.h"

struct sim_event;
struct sim_graph;

enum sim_work_kind {
	SIM_EMPTY,
	SIM_KERNEL,
	SIM_COPY,
	SIM_MEMSET,
	SIM_HOST,
	SIM_RECORD,
	SIM_WAIT,
	SIM_ALLOC, /* memory of a graph */
	SIM_RELEASE, /* memory of a pool, or of a graph */
	SIM_CHILD, /* a graph within a graph */
	SIM_CONDITIONAL, /* graphs within a graph: one of them runs, or none */
	SIM_WRITE_VALUE,
};

/* What a collective's kernel does to memory: the bytes go to so many places side by side. */
struct sim_gather {
	uint64_t to, from;
	size_t bytes;
	unsigned times;
};

struct sim_kernel_work {
	const char *name; /* mangled; lives as long as the process */
	uint32_t grid[3], block[3], cluster[3];
	uint32_t dynamic_shared_bytes, static_shared_bytes, local_bytes;
	uint16_t registers;
	bool is_cooperative;
	int priority;
	struct sim_gather gather; /* of nothing, for most */
};

/* Rows of width bytes; a copy without rows has one. */
struct sim_copy_work {
	uint64_t to, from;
	size_t width, height, to_pitch, from_pitch;
	enum sim_memory_kind to_kind, from_kind;
	int to_device, from_device;
	bool is_async;
	/* the source's bytes as they were at the call, where it was pageable; owned */
	char *staged;
};

struct sim_memset_work {
	uint64_t to;
	uint32_t value;
	unsigned element_bytes; /* 1, 2 or 4 */
	size_t width, height, pitch; /* in bytes */
	enum sim_memory_kind kind;
	bool is_async;
};

/* The values of CUgraphConditionalNodeType. */
enum sim_condition_kind { SIM_IF = 0, SIM_WHILE = 1, SIM_SWITCH = 2 };

struct sim_condition_work {
	enum sim_condition_kind kind;
	/* of its handle, at each launch: kernels, which would set it, compute nothing */
	unsigned value;
	unsigned n_bodies;
	struct sim_graph **bodies; /* the node's own */
};

struct sim_work {
	enum sim_work_kind kind;
	uint64_t duration_ns;
	union {
		struct sim_kernel_work kernel;
		struct sim_copy_work copy;
		struct sim_memset_work memset;
		struct {
			void (*call)(void *data);
			void *data;
		} host;
		struct sim_event *event;
		uint64_t address;
		struct sim_graph *child;
		struct sim_condition_work condition;
		struct {
			uint64_t to, value;
			unsigned bytes;
		} write;
	};
};

/* The values of CUpti_ActivityMemcpyKind. */
enum sim_copy_kind {
	SIM_COPY_UNKNOWN = 0,
	SIM_COPY_TO_DEVICE = 1,
	SIM_COPY_TO_HOST = 2,
	SIM_COPY_WITHIN_DEVICE = 8,
	SIM_COPY_WITHIN_HOST = 9,
	SIM_COPY_BETWEEN_DEVICES = 10,
};

enum sim_copy_kind sim_copy_kind(const struct sim_copy_work *copy);
size_t sim_copy_bytes(const struct sim_copy_work *copy);

/* "HtoD", ... as tools write it. */
const char *sim_copy_name(enum sim_copy_kind kind);

/* A kernel of that name takes so long by SIMCUDA_KERNELS and SIMCUDA_KERNEL_NS. */
uint64_t sim_kernel_duration(const char *name);

/*
 * The kernels that this thread launches from now on take so much longer, where no pattern names
 * them.
 */
void sim_kernel_extra_ns(uint64_t ns);

/*
 * The kernels that this thread launches from now on do that to memory; NULL: nothing, as at first.
 */
void sim_kernel_gathers(const struct sim_gather *gather);
struct sim_gather sim_kernel_gather(void);

/*
 * Make a copy or a memset of plain bytes: finds out what the addresses are, and how long it takes.
 * Returns 0 or an error (1: an address that is nobody's, or not long enough).
 */
int sim_copy_make(struct sim_work *work, uint64_t to, uint64_t from, size_t bytes, bool is_async);
int sim_copy_make_rows(struct sim_work *work, const struct sim_copy_work *rows);
int sim_memset_make(struct sim_work *work, const struct sim_memset_work *memset);

/* Move the bytes; with the lock. Returns 0, or 700 where memory is gone by now. */
int sim_copy_perform(const struct sim_copy_work *copy);
int sim_memset_perform(const struct sim_memset_work *memset);
int sim_gather_perform(const struct sim_gather *gather);

#endif
