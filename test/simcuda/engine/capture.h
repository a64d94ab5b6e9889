/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Capture: what is submitted to streams becomes nodes of a graph. Requires the lock, unless noted.
 */
#ifndef SIMCUDA_CAPTURE_H
#define SIMCUDA_CAPTURE_H

#include "test/simcuda/engine/graph.h"

/* The values of CUstreamCaptureMode. */
enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD_LOCAL, SIM_CAPTURE_RELAXED };

struct sim_capture {
	uint64_t id;
	enum sim_capture_mode mode;
	uint32_t thread;
	struct sim_graph *graph;
	struct sim_stream *origin;
	bool is_broken, is_over;
	int n_refs;
	struct sim_capture *next; /* of all that are going on */
};

/* Takes the lock. Into graph, behind the given nodes; or into a new one where graph is NULL. */
int sim_capture_begin(struct sim_stream *stream, enum sim_capture_mode mode,
		      struct sim_graph *graph, struct sim_graph_node *const *after, size_t n_after);

/* Takes the lock. The graph is the caller's. */
int sim_capture_end(struct sim_stream *stream, struct sim_graph **graph);

/* The mode of this thread's calls; returns the one before. No lock. */
enum sim_capture_mode sim_capture_exchange_mode(enum sim_capture_mode mode);

/*
 * Takes the lock. A call that captures don't allow (an allocation, ...): 0, or the error that it
 * has to return.
 */
int sim_capture_check_call(void);

bool sim_capture_takes(const struct sim_stream *stream, const struct sim_work *work);
int sim_capture_add(struct sim_stream *stream, const struct sim_work *work);

/* The stream is queried for what a capture cannot express: breaks it. 0, or the error. */
int sim_capture_forbids(struct sim_stream *stream);

/* The stream is destroyed while it captures. */
void sim_capture_abandon(struct sim_stream *stream);
void sim_capture_leave(struct sim_capture_end *end);

/* What the next node of the stream is to come after. */
void sim_capture_set_after(struct sim_stream *stream, struct sim_graph_node *const *after, size_t n,
			   bool keeps_others);

#endif
