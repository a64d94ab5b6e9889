/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls from lower layers up to higher ones. Calls go down: wrappers (shim) -> collectors -> agent
 * -> primitives (shim) -> agent/wire. The few that have to go up are these, and test/check/calls
 * lets no other pass. The table is constant and complete when the agent is loaded, because the
 * first event of a process comes before any constructor. It is defined in collectors/callbacks.c.
 */
#ifndef TORSH_AGENT_PROCESS_CALLBACKS_H
#define TORSH_AGENT_PROCESS_CALLBACKS_H

#include <stdbool.h>

struct link_map;
struct producer;

struct callbacks {
	/* The first event of a process: agent/producer/lifecycle.c. */
	void (*process_starts)(void);
	/* A hook in a dormant process: agent/producer/lifecycle.c. */
	void (*process_armed)(void);
	/*
	 * The producer is from before the process rested: open it again. Returns false without
	 * memory.
	 */
	bool (*producer_renews)(struct producer *producer);
	/* The first event of a child that fork made, on its only thread. */
	void (*child_starts)(void);
	/* The calling thread has got its producer, and is about to close it. */
	void (*thread_starts)(void);
	void (*thread_ends)(void);
	/* The agent has started and the heap is recorded: this thread records no event before. */
	void (*heap_starts)(void);
	/* The agent has started in a process that was dormant: within a hook of any thread. */
	void (*armed)(void);
	/* The agent has started and MPI is recorded. */
	void (*mpi_starts)(void);
	/* The agent has started and waits are recorded. */
	void (*waits_start)(void);
	/* The agent has started and requests that nobody tells of are recorded. */
	void (*requests_start)(void);
	/* The process is about to end; threads may still run. */
	void (*process_ends)(void);
	/* The agent has started and NCCL is recorded. */
	void (*nccl_starts)(void);
	/* The agent has started and BLAS is recorded. */
	void (*blas_starts)(void);
	/* Ranges are to be forwarded: open the user's tool for NVTX, or ITT, if there is one. */
	void (*nvtx_tool_wanted)(void);
	void (*itt_tool_wanted)(void);
	/* A stack passed through a loaded object for the first time; map may be NULL. */
	void (*object_found)(const struct link_map *map);
	/*
	 * The object is a Python interpreter: record its allocators. Returns 0, or -errno if that
	 * is impossible.
	 */
	int (*interpreter_found)(const struct link_map *map);
	/* A thread executes a line of Python that is new to it. Within a hook. */
	void (*python_runs)(void);
	/* The program's first driver call, before the source of device events is chosen. */
	void (*device_used)(void);
	/* Another client of CUPTI subscribes, perhaps before the driver has started. */
	void (*device_client_subscribes)(void);
	/*
	 * Whether the calling thread may call the driver for the agent: it is in no CUDA call and
	 * not ending.
	 */
	bool (*may_call_driver)(void);
	/*
	 * The same where a driver call of the program's begins or has just returned on this thread.
	 */
	bool (*may_call_driver_at_call)(void);
};

extern const struct callbacks torsh_callbacks;

#endif
