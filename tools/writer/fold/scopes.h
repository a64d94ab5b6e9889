/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The open scopes of a process's threads: the innermost operator and module of each thread, by its
 * timeline. An operator may end on another thread than it began on. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_SCOPES_H
#define TORSH_WRITER_FOLD_SCOPES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"
#include "agent/wire/event.h"

/* Labels by their numbers in the recording; 0: none. */
struct scope {
	uint32_t operator, module;
};

struct scope_stack;

struct scopes {
	struct scope_stack **stacks; /* by slot; NULL: its thread had no scope yet */
	uint32_t n; /* number of slots with scopes */
	size_t capacity;
	/*
	 * scopes that are nested too deep: their contents are attributed to the scopes around them
	 */
	uint64_t n_unkept;
};

/* Free the scopes. */
void torsh_scopes_destroy(struct scopes *scopes);

/* The slot's thread has ended. */
void torsh_scopes_end(struct scopes *scopes, uint32_t slot);

/*
 * Apply an event of the slot's thread. Returns the thread's current scope, which stays up to date
 * until torsh_scopes_end.
 */
const struct scope *torsh_scopes_take(struct scopes *scopes, uint32_t slot,
				      const struct event *event);

/*
 * Whether an operator that begins now on the slot's thread is within no other one but autograd's
 * scope around a backward one, and scopes of the program.
 */
bool torsh_scopes_is_outermost(const struct scopes *scopes, uint32_t slot);

#endif
