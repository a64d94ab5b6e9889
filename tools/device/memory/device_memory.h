/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/device/memory contains allocations on devices. Read this file first.
 *
 * Device memory as reports show it: per process and scope the live memory at the end and the
 * allocation sites at the peak; also what frameworks and the driver report.
 *
 * The peak of a scope is the first moment at which the sum of driver allocations is at its maximum;
 * if a framework's allocator holds that memory, it is the one of these moments with the most bytes
 * in tensors.
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_MEMORY_H
#define TORSH_DEVICE_MEMORY_DEVICE_MEMORY_H

#include "tools/device/memory/device_graphs.h"
#include "tools/device/memory/device_refusals.h"
#include "tools/memory/allocation_sites.h"
#include "tools/timeline/prepass/prepass.h"

/* The driver's report for a device. */
struct device_room {
	bool is_known;
	uint64_t at_ns;
	uint64_t live_bytes; /* the process's live bytes there at that time */
	uint64_t n_changes; /* allocations and frees there until then */
	struct event_device_room said;
};

/* A moment of a process. */
struct device_moment {
	uint64_t at_ns;
	uint64_t change; /* number of changes of device_blocks up to it */
};

#define DEVICE_CHANGE_BY_TIME UINT64_MAX /* as a change: all those up to at_ns */

/* What a process had on a device from a moment on. */
struct device_level {
	uint64_t at_ns, bytes;
};

struct device_location {
	struct device_moment peak;
	uint64_t peak_bytes, peak_n, peak_tensor_bytes;
	bool has_framework; /* a framework's allocator reported it */
	struct device_framework at_peak, at_end;
	struct device_room near_peak; /* the first report with most live bytes */
	struct device_room last_room;
	struct device_room *rooms; /* all reports, in the order of time */
	size_t n_rooms, rooms_room;
	struct device_refusals refusals;
	uint64_t joint_bytes; /* at the joint peak */
	/* of a device that other processes may share: all changes */
	struct device_level *levels;
	size_t n_levels, levels_room;
};

/* The maximum of the heap and the memory of all devices together, without registered memory. */
struct device_joint {
	struct device_moment at;
	uint64_t bytes, heap_bytes;
	bool is_known;
};

struct device_process {
	const struct recorded_process *process;
	struct device_blocks blocks; /* at the end */
	struct device_graphs graphs; /* that get some */
	struct device_location *places; /* parallel to blocks.scopes */
	size_t n_places, places_room;
	struct device_framework *frameworks; /* at the end */
	size_t n_frameworks, frameworks_room;
	struct device_joint joint;
	uint64_t heap_bytes; /* at the last mark */
	bool has_others; /* the recording has several processes */
	bool has_mode;
	struct event_device_mode mode; /* how its devices were recorded */
};

struct memory_of_devices {
	const struct recording *recording;
	const struct prepass *prepass;
	struct device_process *items; /* parallel to the processes given */
	size_t n;
};

/*
 * Collect the memory. recording and pre-pass stay the caller's and must outlive it. Ends the
 * program if the recording cannot be read.
 */
void torsh_device_memory_collect(struct memory_of_devices *memory,
				 const struct recording *recording,
				 struct recorded_process *const *processes, size_t n_processes,
				 const struct prepass *prepass);

/* Free the memory's tables. */
void torsh_device_memory_free(struct memory_of_devices *memory);

/*
 * Returns true if the scope is part of the joint sum. Registered memory is in the heap already;
 * imported memory belongs to another process.
 */
bool torsh_device_is_joint(const struct device_scope *scope);

#define DEVICE_NO_PLACE SIZE_MAX

/* Returns the index of the place with that name in a process, or DEVICE_NO_PLACE. */
size_t torsh_device_place(const struct device_process *process, const char *name);

/* Sums of blocks: cached by an allocator, or ended without a free. */
struct device_sum {
	uint64_t blocks, bytes;
};

/*
 * Add the blocks that are live at the end, and those that ended with their context, which are also
 * in *left. Memory that an allocator keeps for its cache is only in *cached.
 */
void torsh_device_memory_alive(struct allocation_sites *sites, const struct device_process *process,
			       size_t place, struct device_sum *cached, struct device_sum *left);

/*
 * Add the memory in a place at a moment of the process, including caches; DEVICE_NO_PLACE: in all
 * places of the joint sum.
 */
void torsh_device_memory_at(struct allocation_sites *sites, const struct memory_of_devices *memory,
			    const struct device_process *process, size_t place,
			    const struct device_moment *moment);

#endif
