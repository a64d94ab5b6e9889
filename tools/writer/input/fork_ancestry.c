/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/fork_ancestry.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

#define LATE_HELLO_NS UINT64_C(10000000000)

/* A process image of the session, including ended ones. */
struct ancestor {
	uint32_t pid; /* in the writer's namespace */
	uint32_t own_pid; /* in the process's namespace */
	uint32_t parent_pid;
	uint64_t start_ticks, start_ns;
	struct target *target; /* NULL: it has ended, and the following fields are used */
	struct folded_fork *forks;
	uint32_t n_forks;
	struct inheritance inheritance;
};

void torsh_fork_ancestry_destroy(struct fork_ancestry *ancestry)
{
	for (uint32_t i = 0; i < ancestry->n; i++)
		free(ancestry->ancestors[i].forks);
	free(ancestry->ancestors);
	*ancestry = (struct fork_ancestry){0};
}

/*
 * Returns the number of the image that the target was forked from; 0: unknown. Searches from the
 * latest one.
 */
static uint32_t find_parent(const struct fork_ancestry *ancestry, const struct target *target)
{
	for (uint32_t i = ancestry->n; i-- > 0;) {
		const struct ancestor *ancestor = &ancestry->ancestors[i];

		if (ancestor->own_pid == target->start.forked_from &&
		    ancestor->start_ticks == target->start.forked_from_ticks)
			return i + 1;
	}
	return 0;
}

void torsh_fork_ancestry_begin(struct fork_ancestry *ancestry, struct target *target)
{
	const struct ancestor *ancestors = ancestry->ancestors;

	target->inheritance.is_fork = target->start.forked_from != 0;
	if (target->inheritance.is_fork)
		target->parent_number = find_parent(ancestry, target);
	/* A process that adopted the child later is not its parent. */
	if (target->parent_number)
		target->parent_pid = ancestors[target->parent_number - 1].pid;
	else if (target->former_number && target->former_number <= ancestry->n)
		target->parent_pid = ancestors[target->former_number - 1].parent_pid;
	target->inheritance.is_settled = !target->parent_number;
	ancestry->ancestors =
		torsh_array_reserve(ancestry->ancestors, ancestry->n, &ancestry->capacity,
				    sizeof(*ancestry->ancestors));
	ancestry->ancestors[ancestry->n++] = (struct ancestor){
		.pid = (uint32_t)target->pid,
		.own_pid = target->start.pid,
		.parent_pid = target->parent_pid,
		.start_ticks = target->start.start_ticks,
		.start_ns = target->state.clock.start_ns,
		.target = target,
	};
}

/*
 * Remove and return the fork that made this child. Pids are reused: the latest match is the right
 * one.
 */
static bool take_fork(struct ancestor *parent, uint32_t child, struct folded_fork *taken)
{
	struct folded_fork *forks = parent->target ? parent->target->state.forks : parent->forks;
	uint32_t *n_forks = parent->target ? &parent->target->state.n_forks : &parent->n_forks;

	for (uint32_t i = *n_forks; i-- > 0;) {
		if (forks[i].child != child)
			continue;
		*taken = forks[i];
		forks[i] = forks[--*n_forks];
		return true;
	}
	return false;
}

/*
 * The parent's own blocks, plus what is left of those that it inherited. The sizes of inherited
 * blocks that it freed are unknown.
 */
static struct inheritance sum_up(const struct folded_fork *fork, const struct inheritance *parent)
{
	struct inheritance sum = {
		.is_fork = true, .is_settled = true, .blocks = fork->blocks, .bytes = fork->bytes};

	sum.has_blocks =
		!parent->is_fork || (parent->has_blocks && parent->blocks >= fork->n_unknown_frees);
	sum.has_bytes = !parent->is_fork || (parent->has_bytes && !fork->n_unknown_frees);
	if (parent->is_fork && sum.has_blocks)
		sum.blocks += parent->blocks - fork->n_unknown_frees;
	if (parent->is_fork && sum.has_bytes)
		sum.bytes += parent->bytes;
	return sum;
}

bool torsh_fork_ancestry_is_pending(const struct target *target)
{
	return target->inheritance.is_fork && !target->inheritance.is_settled;
}

void torsh_fork_ancestry_inherit(struct fork_ancestry *ancestry, struct target *target)
{
	struct ancestor *parent;
	struct folded_fork fork;

	if (!torsh_fork_ancestry_is_pending(target))
		return;
	parent = &ancestry->ancestors[target->parent_number - 1];
	/* Resolve what the parent itself inherited first. */
	if (parent->target && torsh_fork_ancestry_is_pending(parent->target))
		return;
	if (take_fork(parent, (uint32_t)target->pid, &fork) ||
	    take_fork(parent, target->start.pid, &fork))
		target->inheritance = sum_up(&fork, parent->target ? &parent->target->inheritance
								   : &parent->inheritance);
	else
		target->inheritance.is_settled = !parent->target;
}

void torsh_fork_ancestry_end(struct fork_ancestry *ancestry, struct target *target)
{
	struct ancestor *ancestor = &ancestry->ancestors[target->number - 1];

	ancestor->target = NULL;
	ancestor->inheritance = target->inheritance;
	ancestor->forks = target->state.forks;
	ancestor->n_forks = target->state.n_forks;
	target->state.forks = NULL;
	target->state.n_forks = target->state.fork_capacity = 0;
}

bool torsh_fork_ancestry_find_image(const struct fork_ancestry *ancestry, uint32_t pid,
				    uint64_t from_ns, uint64_t to_ns, uint64_t *start_ns)
{
	bool is_found = false;

	/* They are in the order of their hellos, which is almost the order of their starts. */
	for (uint32_t i = ancestry->n;
	     i-- > 0 && ancestry->ancestors[i].start_ns + LATE_HELLO_NS > from_ns;) {
		const struct ancestor *ancestor = &ancestry->ancestors[i];

		if (ancestor->pid != pid || ancestor->start_ns < from_ns ||
		    ancestor->start_ns > to_ns)
			continue;
		*start_ns = ancestor->start_ns;
		is_found = true;
	}
	return is_found;
}
