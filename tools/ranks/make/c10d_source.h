/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives as PyTorch reports them. The operator c10d::allreduce_ has group, sizes and when the
 * program issued it. The work that it starts ("gloo:all_reduce", an asynchronous range of
 * PyTorch's) ends when the collective has; gloo runs it in a thread of its own, one after the
 * other. Its end may be stamped late where that thread waits for a CPU. With NCCL the kernels that
 * the operator launched have the times.
 */
#ifndef TORSH_RANKS_MAKE_C10D_SOURCE_H
#define TORSH_RANKS_MAKE_C10D_SOURCE_H

#include "tools/ranks/make/rank_collective.h"
#include "tools/timeline/device/launch_join.h"
#include "tools/timeline/prepass/process_groups.h"

struct c10d_open {
	uint64_t ordinal; /* of the span */
	size_t collective;
	bool is_work;
};

struct c10d_source {
	struct rank_collectives *all;
	struct collectives read;
	struct c10d_open *open; /* spans that have not ended */
	size_t n_open, open_room;
	size_t *pending; /* collectives whose work has not begun, the oldest first */
	size_t n_pending, pending_room;
	size_t n_over_nccl; /* collectives so far */
};

/* Pass each begin of a span; n_operators: that the process called before. */
void torsh_c10d_begin(struct c10d_source *source, const struct span *span, uint64_t n_operators);

/* Pass each end. */
void torsh_c10d_end(struct c10d_source *source, const struct span *span);

/* Pass all other events. */
void torsh_c10d_event(struct c10d_source *source, const struct recorded_process *process,
		      const struct event *event);

/* Returns 1 + the index of the collective that a launch there belongs to; 0: none. */
uint64_t torsh_c10d_launch(const struct c10d_source *source, const struct enclosing_spans *around);

/* Pass a kernel that such a launch caused. */
void torsh_c10d_kernel(struct c10d_source *source, size_t collective,
		       const struct activity_record *kernel);

/* Returns whether a span is a collective's operator or its work: no computation. */
bool torsh_c10d_is_communication(const struct span *span);

/* Free the source; the collectives stay. */
void torsh_c10d_free(struct c10d_source *source);

#endif
