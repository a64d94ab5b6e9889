/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that the devices can reach: their own, pinned, managed and registered memory of the host.
 *
 * A device's memory is a memfd, mapped twice: where programs have their pointers (without access,
 * unless SIMCUDA_PROTECT=0) and where the engine moves bytes. Functions take the engine's lock
 * unless they are documented to need it. Errors are values of CUresult.
 */
#ifndef SIMCUDA_MEMORY_H
#define SIMCUDA_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/simcuda/engine/log/trace.h"
#include "test/simcuda/engine/memory/extents.h"

struct sim_device;
struct sim_pool;

/* What can be found by its address. */
struct sim_range {
	uint64_t base, bytes;
	char *bytes_at; /* where the engine reaches it */
	enum sim_memory_kind kind;
	int device;
	uint32_t context;
	bool is_registered; /* the program's own memory, pinned */
	bool is_mapping; /* of the virtual memory interface: bytes_at is a handle's */
	bool is_freed_later;
	bool is_import; /* another process's */
	bool is_of_graph; /* got and given back by nodes of graphs: graph_memory.h */
	bool is_alive; /* of that: a launch got it */
	bool is_freed_by_owner, is_freed_by_other; /* of that: graphs have a node that frees it */
	uint32_t owner; /* of that: id of the graph with the node that allocates it */
	int n_holders; /* of that: graphs and executable graphs with that node */
	struct sim_pool *pool;
	uint64_t offset; /* within the device's memory */
	void *handle; /* of the memory that is mapped */
	unsigned id; /* as CU_POINTER_ATTRIBUTE_BUFFER_ID */
};

/* What the log and CUPTI need of an allocation beside its range. */
struct sim_memory_from {
	uint32_t stream;
	bool is_async;
};

enum {
	SIM_ALIGNMENT = 512,
	SIM_GRANULARITY = 2 << 20, /* of the virtual memory interface */
};

/* Lay out the memory of a device; called once for each, with the lock. Returns 0 or an error. */
int sim_memory_open(struct sim_device *device);

/* Memory of the device; 2 where there is not enough. */
int sim_memory_alloc(struct sim_device *device, uint32_t context, size_t bytes, uint64_t *address);

/* The same for an array. */
int sim_memory_alloc_array(struct sim_device *device, uint32_t context, size_t bytes,
			   uint64_t *address);

/* Pinned or managed memory of the host. */
int sim_memory_alloc_host(struct sim_device *device, uint32_t context, size_t bytes,
			  enum sim_memory_kind kind, uint64_t *address);

/* Free what one of the two gave: the address must be its first. */
int sim_memory_free(uint64_t address, enum sim_memory_kind kind);

/*
 * Free all that was allocated in the context, but for what pools and the virtual memory interface
 * gave.
 */
void sim_memory_free_all(uint32_t context);

/* Memory that stands for another process's; the log calls it "import" and "import_end". */
int sim_memory_open_import(struct sim_device *device, uint32_t context, size_t bytes,
			   uint64_t *address);
int sim_memory_close_import(uint64_t address);

int sim_memory_register(struct sim_device *device, uint32_t context, void *p, size_t bytes);
int sim_memory_unregister(void *p);

/* The range that holds the address. Returns false where nothing does; with the lock. */
bool sim_memory_find(uint64_t address, struct sim_range *range);

/* The same, taking the lock. */
bool sim_memory_lookup(uint64_t address, struct sim_range *range);

/*
 * Where the engine reaches the byte at address, and how many follow it there; what is in no range
 * is the program's pageable memory. With the lock. Returns NULL for an address that a device owns
 * and nobody allocated.
 */
char *sim_memory_reach(uint64_t address, size_t *n_bytes);

/* Tell the log and the tracer. */
void sim_memory_report(const struct sim_range *range, bool is_release, struct sim_memory_from from);

/*
 * Tell the log that the device has no room for so much, with the lock. Returns the error for that.
 */
int sim_memory_refuse(const struct sim_device *device, uint64_t bytes);

/* ---- for pools and the virtual memory interface, with the lock ------------------------------- */

void sim_memory_insert(const struct sim_range *range);
bool sim_memory_remove(uint64_t base, struct sim_range *range);

/* The attributes of the range that begins where this one does. */
void sim_memory_update(const struct sim_range *range);

/* Call with each range; it may be removed meanwhile, and no other. */
void sim_memory_each(void (*call)(const struct sim_range *range, void *data), void *data);

/* Give pages of the device's memory back to the machine: what is read there next is zero. */
void sim_memory_discard(struct sim_device *device, uint64_t offset, uint64_t bytes);

#endif
