/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The fork ancestry of a session: which process image each process was forked from, and what was
 * live in it at the fork. Pids are reused, so an image is identified by its pid and its start time.
 * Owned by the drain thread.
 *
 * A child inherits the parent's heap as folded up to the parent's fork event: exact unless another
 * thread of the parent allocates or frees during the fork.
 */
#ifndef TORSH_WRITER_INPUT_FORK_ANCESTRY_H
#define TORSH_WRITER_INPUT_FORK_ANCESTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/input/target.h"

struct ancestor;

struct fork_ancestry {
	struct ancestor *ancestors; /* in the order of their numbers; [i] is number i + 1 */
	uint32_t n;
	size_t capacity;
};

/* Free the ancestry. */
void torsh_fork_ancestry_destroy(struct fork_ancestry *ancestry);

/* Add a target that has begun; numbers increase from 1. Sets its parent's number and pid. */
void torsh_fork_ancestry_begin(struct fork_ancestry *ancestry, struct target *target);

/*
 * Compute what a fork inherited from its parent, if that is not known yet. The parent may have to
 * be folded up to the fork first.
 */
void torsh_fork_ancestry_inherit(struct fork_ancestry *ancestry, struct target *target);

/*
 * Returns true while the target's inherited heap is unknown but may become known: its parent has
 * not ended.
 */
bool torsh_fork_ancestry_is_pending(const struct target *target);

/* Copy the forks of a finished target from its process state, before it is destroyed. */
void torsh_fork_ancestry_end(struct fork_ancestry *ancestry, struct target *target);

/*
 * Returns true if an image of the process pid began between these times of the session's clock;
 * *start_ns is the start of the first one.
 */
bool torsh_fork_ancestry_find_image(const struct fork_ancestry *ancestry, uint32_t pid,
				    uint64_t from_ns, uint64_t to_ns, uint64_t *start_ns);

#endif
