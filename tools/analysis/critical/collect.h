/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the threads and devices of one process did in some steps, read in one pass. */
#ifndef TORSH_ANALYSIS_CRITICAL_COLLECT_H
#define TORSH_ANALYSIS_CRITICAL_COLLECT_H

#include "tools/cpu/thread_stays.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/device/launch_join.h"

/* A thread is in it. */
struct host_interval {
	uint64_t begin_ns, end_ns;
	uint32_t thread;
	const char *name; /* NULL: none */
};

/* A call that may wait for a device. */
struct device_sync {
	struct host_interval call;
	uint32_t correlation;
	uint32_t kind; /* enum wait_kind; WAIT_UNKNOWN: CUPTI reported no more */
	uint32_t context, stream;
	bool is_copy; /* it launched a copy, which ended before the call did */
};

struct device_piece {
	uint64_t begin_ns, end_ns;
	const char *name; /* of a kernel, mangled; NULL: unknown */
	enum device_what what;
	uint32_t device, context, stream;
	bool has_launch;
	uint32_t thread; /* of the launch */
	uint64_t launched_ns; /* begin of that call */
};

/* A stream waits from then on for what another one has to do. */
struct stream_wait {
	uint64_t at_ns; /* of the call */
	uint32_t context, stream;
};

struct collected {
	const struct recorded_process *process;
	uint64_t from_ns, to_ns; /* what lies wholly outside is left out */
	struct thread_stays stays;
	struct host_interval *loads; /* in a DataLoader */
	size_t n_loads, loads_room;
	struct host_interval *collectives; /* waits for them */
	size_t n_collectives, collectives_room;
	struct device_sync *syncs;
	size_t n_syncs, syncs_room;
	struct device_piece *pieces;
	size_t n_pieces, pieces_room;
	struct stream_wait *stream_waits;
	size_t n_stream_waits, stream_waits_room;
	/* by thread: how many bounds of steps are moments of it */
	uint32_t *n_bounds;
	bool has_waits; /* waits of threads were recorded */
};

/*
 * Read what the process did from from_ns to to_ns. The caller frees it. Ends the program if the
 * recording can't be read.
 */
void torsh_collected_read(struct collected *collected, const struct recording *recording,
			  struct recorded_process *process, const struct prepass *prepass,
			  uint64_t from_ns, uint64_t to_ns);

/* Free what was read. */
void torsh_collected_free(struct collected *collected);

#endif
