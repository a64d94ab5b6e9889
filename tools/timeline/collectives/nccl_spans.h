/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What NCCL did, as it reported it: its calls, groups, launches, kernel channels, and what its
 * proxy moved, each from its begin to its end. A span refers to the one that it is part of by
 * number; that one may have ended before, because NCCL's calls end when their work has been handed
 * over.
 */
#ifndef TORSH_TIMELINE_COLLECTIVES_NCCL_SPANS_H
#define TORSH_TIMELINE_COLLECTIVES_NCCL_SPANS_H

#include "tools/base/containers/hash_map.h"
#include "tools/recording/timeline.h"

/* Texts are the recording's. */
struct nccl_communicator {
	const struct recorded_process *process;
	struct event_nccl_communicator event;
	const char *name; /* NULL: it has none */
};

/* Texts are the recording's, NULL: none. Times are since the recording's start. */
struct nccl_span {
	const struct recorded_process *process;
	uint64_t number, parent; /* parent 0: none */
	enum nccl_kind kind;
	uint32_t communicator; /* its number, 0: unknown */
	uint32_t thread, end_thread; /* rows of the process's threads */
	uint64_t start_ns, end_ns;
	bool is_cut; /* still open when the recording ended */
	const char *function, *datatype, *algorithm, *protocol;
	uint64_t count;
	bool has_bytes;
	/* of a call: count elements; of a batch, a step, an operation: what was moved */
	uint64_t bytes;
	int32_t root;
	uint32_t peer; /* rank + 1; 0: none */
	uint32_t channels, warps;
	uint64_t sequence; /* COLLECTIVE_NO_SEQUENCE: none */
	uint64_t stream;
	bool is_captured;
	uint32_t collective; /* number of the collective_call around it, 0: none */
	bool has_channel;
	uint32_t channel, step, steps, operations;
	bool is_send;
	uint64_t device_start_ns, device_end_ns; /* by the device's clock; 0: unknown */
	uint64_t own; /* the reader's */
};

/* Starts as {0}. */
struct nccl_spans {
	struct nccl_communicator *communicators; /* in the order in which they were made */
	size_t n_communicators, communicators_room;
	struct hash_map open; /* of struct nccl_span, by process and number; owns them */
	struct nccl_span ended; /* the last one */
	struct nccl_span **cut; /* at the end: those that were open, in the order of their begins */
	size_t n_cut, next_cut;
};

/*
 * Take an event of the timeline. Returns the span that begins or (*is_end) ends with it, valid
 * until the next event; else NULL.
 */
struct nccl_span *torsh_nccl_spans_see(struct nccl_spans *spans,
				       const struct recorded_process *process,
				       const struct timeline_event *event, bool *is_end);

/* Take one that is still open, at the end of a recording; it ends then. NULL: there is none. */
struct nccl_span *torsh_nccl_spans_cut(struct nccl_spans *spans);

/* The communicator of that number as far as it was reported, or NULL. */
const struct nccl_communicator *torsh_nccl_communicator(const struct nccl_spans *spans,
							const struct recorded_process *process,
							uint32_t number);

/* By what its work is known: "plugin", NCCL's interface for profilers, or "calls" of functions. */
const char *torsh_nccl_source_name(const struct nccl_communicator *communicator);

/* What to call it: the function of a call, else its kind in words. */
const char *torsh_nccl_span_name(const struct nccl_span *span);

/* Free what is open. */
void torsh_nccl_spans_free(struct nccl_spans *spans);

extern const char *const torsh_nccl_kind_names[N_NCCL_KINDS];

#endif
