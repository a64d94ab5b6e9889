/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What lower layers call of higher ones. Calls go down: wrappers (shim) -> collectors -> agent ->
 * primitives (shim) -> agent/wire. The few that have to go up are these, and test/check/calls lets
 * no other pass. The table is constant and complete when the agent is loaded, because the first
 * event of a process comes before any constructor. Its definition is collectors/callbacks.c.
 */
#ifndef TORSH_AGENT_PROCESS_CALLBACKS_H
#define TORSH_AGENT_PROCESS_CALLBACKS_H

#include <stdbool.h>

struct link_map;

struct callbacks {
	/* The first event of a process: agent/producer/lifecycle.c. */
	void (*process_starts)(void);
	/* The first event of a child that fork made, on its only thread. */
	void (*child_starts)(void);
	/*
	 * The agent has started, and the heap is recorded: no event of this thread is until then.
	 */
	void (*heap_starts)(void);
	/* A stack has met a loaded object for the first time; map may be NULL. */
	void (*object_found)(const struct link_map *map);
	/*
	 * The object is an interpreter of Python, its allocators are to be recorded. 0 or -errno:
	 * they can't be.
	 */
	int (*interpreter_found)(const struct link_map *map);
	/* The first driver call of the program, before the source of device events is decided. */
	void (*device_used)(void);
	/* A second client of CUPTI subscribes, perhaps before the driver has started. */
	void (*device_client_subscribes)(void);
	/*
	 * Is the calling thread where the agent may call the driver: in no CUDA call, not ending?
	 */
	bool (*may_call_driver)(void);
};

extern const struct callbacks torsh_callbacks;

#endif
