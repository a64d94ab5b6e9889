/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/device/owners divides the memory of a device among its owners. Read this file first.
 *
 * The owners of a device's memory at a moment of a process. Where the driver's figure of used
 * memory is known for that moment, they add up to it exactly, else to what the process had
 * allocated: OWNER_REMAINDER is the difference, with its sign.
 *
 * The driver's figure is of that moment if no call changed the memory between both, or if as much
 * was alive. Other processes are those that NVML lists, near that time; code is what the driver had
 * less after a module was loaded. The context, and programs that nobody lists, are what the
 * driver's first figure has beyond the memory that is known at its time; what it has more later is
 * in the remainder.
 */
#ifndef TORSH_DEVICE_OWNERS_DEVICE_OWNERS_H
#define TORSH_DEVICE_OWNERS_DEVICE_OWNERS_H

#include "tools/device/memory/device_shared.h"
#include "tools/device/owners/free_blocks.h"
#include "tools/device/owners/tensor_kind.h"

struct device_owner {
	enum owner_kind kind;
	char *name; /* of its module, operator, library, site or process; owned. NULL: none */
	const char *reason; /* why the kind is unknown, or what is assumed; NULL: neither */
	int64_t bytes; /* negative: only of the remainder */
	uint64_t n; /* blocks; 0: not counted */
};

/* The last request for which the framework's allocator got memory from the driver. */
struct cache_growth {
	bool is_known;
	uint64_t at_ns, requested_bytes; /* rounded as the allocator does */
	struct free_blocks before; /* what it had free then */
};

struct device_owners {
	uint64_t at_ns;
	uint64_t live_bytes; /* allocated by the process */
	bool has_driver;
	uint64_t driver_bytes, driver_ns; /* used, by all processes; driver_ns: of the query */
	const char *driver_reason; /* why it is unknown */
	struct device_owner *items; /* by kind, then the largest first */
	size_t n, n_room;
	const struct recorded_device_use *users; /* by NVML, near driver_ns; NULL: none */
	const char *users_reason; /* why not */
	uint64_t n_modules_unmeasured;
	struct event_device_limits limits; /* of the context; 0: not known */
	uint64_t local_bytes; /* the stacks of all threads that the device can run; 0: not known */
	bool has_framework;
	struct free_blocks cache; /* without private pools */
	struct cache_growth growth;
};

struct owners_request {
	const struct memory_of_devices *memory;
	const struct device_process *process;
	size_t place; /* a device: SCOPE_CUDA */
	struct device_moment at;
	struct symbols *symbols;
};

/* Collect the owners. Ends the program if the recording cannot be read. */
void torsh_device_owners_collect(struct device_owners *owners,
				 const struct owners_request *request);

/* Free the owners. */
void torsh_device_owners_free(struct device_owners *owners);

/* Add up the bytes of a kind; N_OWNER_KINDS: of all. */
int64_t torsh_device_owners_sum(const struct device_owners *owners, enum owner_kind kind);

/* Returns 1 - largest / all free bytes: the share of the cache that no single request can get. */
double torsh_free_blocks_fragmentation(const struct free_blocks *blocks);

#endif
