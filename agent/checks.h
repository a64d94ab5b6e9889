/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A list of (address, value it had), outermost first: what a walk of the stack has read. When every entry still has
 * its value, the same walk would take the same path.
 *
 * Entries lie in groups of four that are compared at once. All of a group are on one page of memory: whoever may read
 * one of them may read the others, so a group never touches memory that the walk itself would not have touched.
 */
#ifndef TORSH_AGENT_CHECKS_H
#define TORSH_AGENT_CHECKS_H

#include <stdint.h>

#include "agent/probe.h"

#define CHECK_LANES 4u

struct check_group {
	uintptr_t slot[CHECK_LANES];
	uintptr_t value[CHECK_LANES];
};

/*
 * A position in the list counts the lanes before it. Add an entry at position *at and move *at behind it. A lane that
 * is skipped because the new entry lies on another page repeats the group's first.
 */
static inline void torsh_checks_add(struct check_group *groups, uint32_t *at, uintptr_t slot, uintptr_t value)
{
	struct check_group *group = &groups[*at / CHECK_LANES];
	uint32_t lane = *at % CHECK_LANES;

	if (lane && torsh_probe_page(group->slot[0]) != torsh_probe_page(slot)) {
		for (; lane < CHECK_LANES; lane++) {
			group->slot[lane] = group->slot[0];
			group->value[lane] = group->value[0];
			++*at;
		}
		group++;
		lane = 0;
	}
	if (!lane) {
		/* Lanes not used yet are read too, though not compared. */
		for (uint32_t i = 1; i < CHECK_LANES; i++)
			group->slot[i] = slot;
	}
	group->slot[lane] = slot;
	group->value[lane] = value;
	++*at;
}

static inline uintptr_t torsh_checks_lane(const struct check_group *group, uint32_t lane)
{
	return *(const volatile uintptr_t *)group->slot[lane] ^ group->value[lane];
}

/* The innermost of the first n lanes of a group that differs; the caller knows that there is one. */
static inline uint32_t torsh_checks_innermost(const struct check_group *group, uint32_t n)
{
	while (--n && !torsh_checks_lane(group, n))
		;
	return n;
}

#define CHECKS_SAME UINT32_MAX

/*
 * Re-read the first n entries from the innermost out: CHECKS_SAME, or the position of the first that differs. Nothing
 * outside of the group of that entry was read.
 */
static inline uint32_t torsh_checks_compare(const struct check_group *groups, uint32_t n)
{
	const struct check_group *group = &groups[n / CHECK_LANES];
	uint32_t lanes = n % CHECK_LANES;

	if (lanes) {
		uintptr_t second = lanes > 1 ? UINTPTR_MAX : 0, third = lanes > 2 ? UINTPTR_MAX : 0;

		if (torsh_checks_lane(group, 0) | (torsh_checks_lane(group, 1) & second) |
		    (torsh_checks_lane(group, 2) & third))
			return (uint32_t)(group - groups) * CHECK_LANES + torsh_checks_innermost(group, lanes);
	}
	while (group-- != groups) {
		if (torsh_checks_lane(group, 0) | torsh_checks_lane(group, 1) | torsh_checks_lane(group, 2) |
		    torsh_checks_lane(group, 3))
			return (uint32_t)(group - groups) * CHECK_LANES + torsh_checks_innermost(group, CHECK_LANES);
	}
	return CHECKS_SAME;
}

#endif
