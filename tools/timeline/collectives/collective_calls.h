/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives of a rank and its messages to others: what was moved, when, and who waited for it.
 * The same call has the same key on all ranks, so that recordings are joined without a clock:
 *
 *	group and instance, kind, sequence		a collective
 *	group and instance, both ranks, tag, sequence	a message; one rank sends, one receives
 */
#ifndef TORSH_TIMELINE_COLLECTIVES_COLLECTIVE_CALLS_H
#define TORSH_TIMELINE_COLLECTIVES_COLLECTIVE_CALLS_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/process_groups.h"

/* Texts are the recording's. Times are since the recording's start. */
struct collective_call {
	const struct recorded_process *process;
	uint32_t number; /* in the process, from 1; of MPI from NUMBER_OF_MPI on */
	enum collective_kind kind;
	/*
	 * of the operator, without its trailing "_", or of MPI's function; not terminated. NULL: no
	 * inputs were recorded
	 */
	const char *name;
	size_t n_name;
	const char *dtype; /* likewise; NULL: it moves no tensors */
	size_t n_dtype;
	const char *group, *backend; /* names; NULL: unknown */
	/* groups of that name that the process had before: names repeat when all are destroyed */
	uint32_t instance;
	uint32_t group_size, own_rank; /* own_rank: in the group + 1, 0: unknown */
	uint64_t sequence; /* COLLECTIVE_NO_SEQUENCE: unknown */
	uint32_t peer; /* of a message: rank in the group + 1, 0: any; the root of a collective */
	uint64_t tag; /* COLLECTIVE_ANY_TAG: of a receive that has not ended */
	bool has_bytes;
	uint64_t in_bytes, out_bytes; /* sent and received by this rank */
	/* What NCCL said of it; NULL or 0: nothing. Bytes: what it was given by this rank. */
	const char *algorithm, *protocol;
	uint32_t channels;
	bool has_nccl_bytes;
	uint64_t nccl_bytes;
	uint32_t thread, wait_thread; /* rows of the process's threads */
	uint64_t call_ns; /* when the program called it */
	bool has_begin, has_end, has_failed;
	uint64_t begin_ns, end_ns; /* of the communication */
	/* 0: nobody waited, as far as was seen: C++ waits for a future, which is not */
	uint32_t n_waits;
	uint64_t wait_begin_ns; /* of the first wait */
	uint64_t wait_ns; /* of all */
};

/* Starts as {0}. Holds all calls of the processes that it has seen. */
struct collective_calls {
	struct collective_call *items; /* in the order in which they were called, by process */
	size_t n, n_room;
	struct collectives operators;
	struct hash_map numbers; /* of struct {process, number}: index of the call */
};

/*
 * Take an event of the timeline; innermost: the operator on its thread, or NULL. Returns the call
 * when the event is a wait for it, valid until the next event; else NULL.
 */
const struct collective_call *torsh_collective_calls_see(struct collective_calls *calls,
							 const struct recorded_process *process,
							 const struct timeline_event *event,
							 const struct span *innermost);

/* Make a pass over the timeline. Returns 0 or -errno; the calls so far stay. */
int torsh_collective_calls_read(struct collective_calls *calls, const struct recording *recording,
				struct recorded_process *const *processes, size_t n_processes);

/* Free the calls. */
void torsh_collective_calls_free(struct collective_calls *calls);

extern const char *const torsh_collective_kind_names[]; /* by enum collective_kind */

/* Put one call as an object: tools/schema/events.json, "collective_call". */
void torsh_collective_call_put_json(struct json_writer *json, const struct collective_call *call);

#endif
