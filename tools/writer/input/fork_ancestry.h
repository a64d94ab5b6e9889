/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who descends from whom, over a whole session: which process image a fork was made from, and what
 * was alive in it at that moment. Pids come back, so an image is identified by its pid and the
 * moment at which it began. Owned by the drain thread.
 *
 * What a child inherits is the parent's heap as it was folded up to the parent's fork event: exact
 * where no other thread of the parent allocates or frees during the fork.
 */
#ifndef TORSH_WRITER_INPUT_FORK_ANCESTRY_H
#define TORSH_WRITER_INPUT_FORK_ANCESTRY_H

#include <stdbool.h>

#include "tools/writer/input/target.h"

struct ancestor;

struct fork_ancestry {
	struct ancestor *ancestors; /* in the order of their numbers; [i] is number i + 1 */
	uint32_t n, capacity;
};

/* Free what the ancestry holds. */
void torsh_fork_ancestry_destroy(struct fork_ancestry *ancestry);

/*
 * Add a target that has begun, in the order of numbers from 1 on. Sets its parent's number and pid.
 */
void torsh_fork_ancestry_begin(struct fork_ancestry *ancestry, struct target *target);

/*
 * Compute what a fork inherited from its parent, if that isn't known; the parent may have to be
 * folded that far first.
 */
void torsh_fork_ancestry_inherit(struct fork_ancestry *ancestry, struct target *target);

/* Is it still unknown what the target inherited? Not once its parent has ended. */
bool torsh_fork_ancestry_is_pending(const struct target *target);

/* The target is folded and about to be destroyed: take its forks over from its process state. */
void torsh_fork_ancestry_end(struct fork_ancestry *ancestry, struct target *target);

/*
 * Did an image of the process pid begin between these times of the session's clock? *start_ns
 * becomes the start of the first that did.
 */
bool torsh_fork_ancestry_find_image(const struct fork_ancestry *ancestry, uint32_t pid,
				    uint64_t from_ns, uint64_t to_ns, uint64_t *start_ns);

#endif
