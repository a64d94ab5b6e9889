/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the threads of a process are in: the innermost operator and module of each, by its timeline.
 * An operator may end on another thread than it began on. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_SCOPES_H
#define TORSH_WRITER_FOLD_SCOPES_H

#include "agent/wire/channel.h"
#include "agent/wire/event.h"

/* Labels as the recording numbers them; 0: none. */
struct scope {
	uint32_t operator, module;
};

struct scope_stack;

struct scopes {
	struct scope_stack **stacks; /* by slot; NULL: its thread was in none yet */
	uint32_t n, capacity; /* slots that were in any */
	/* that were nested too deep: what is in them seems to be in those around */
	uint64_t n_unkept;
};

/* Free the scopes. */
void torsh_scopes_destroy(struct scopes *scopes);

/* The slot's thread has ended. */
void torsh_scopes_end(struct scopes *scopes, uint32_t slot);

/*
 * An event of the slot's thread. Returns what the thread is in from now on, which is kept up to
 * date until torsh_scopes_end.
 */
const struct scope *torsh_scopes_take(struct scopes *scopes, uint32_t slot,
				      const struct event *event);

#endif
