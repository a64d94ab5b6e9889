/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A trace in which modules are checkpointed: torch.utils.checkpoint. */
#ifndef TORSH_MEMORY_WHATIF_RECOMPUTE_H
#define TORSH_MEMORY_WHATIF_RECOMPUTE_H

#include "tools/memory/whatif/assumptions.h"
#include "tools/memory/whatif/memory_trace.h"
#include "tools/memory/whatif/module_calls.h"

/*
 * Free at the end of each call what it allocated for its backward pass, and allocate it again when
 * that begins. Adds to the assumptions what is modelled.
 */
void torsh_recompute(struct memory_trace *trace, const struct module_calls *calls,
		     struct assumptions *assumptions);

#endif
