/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A trace with another batch. */
#ifndef TORSH_MEMORY_WHATIF_BATCH_SCALE_H
#define TORSH_MEMORY_WHATIF_BATCH_SCALE_H

#include "tools/memory/whatif/assumptions.h"
#include "tools/memory/whatif/memory_trace.h"

/* Multiply what grows with the batch, and add to the assumptions what that is. */
void torsh_batch_scale(struct memory_trace *trace, const struct batch *batch, double factor,
		       struct assumptions *assumptions);

#endif
