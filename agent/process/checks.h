/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A list of (address, value it had), outermost first, that a stack walk has read. While every entry
 * still has its value, the same walk would take the same path.
 */
#ifndef TORSH_AGENT_PROCESS_CHECKS_H
#define TORSH_AGENT_PROCESS_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

struct check {
	uintptr_t slot;
	uintptr_t value;
};

static inline bool torsh_check_holds(const struct check *check)
{
	return *(const volatile uintptr_t *)check->slot == check->value;
}

#define CHECKS_HOLD UINT32_MAX

/*
 * Re-read the first n entries from the innermost out. Returns CHECKS_HOLD, or the index of the
 * first that differs. Nothing beyond that one is read, as in a walk.
 */
static inline uint32_t torsh_checks_compare(const struct check *checks, uint32_t n)
{
	/* Four a round: the loop itself costs as much as the comparisons. */
	while (n >= 4) {
		const struct check *four = &checks[n - 4];

		if (!torsh_check_holds(&four[3]))
			return n - 1;
		if (!torsh_check_holds(&four[2]))
			return n - 2;
		if (!torsh_check_holds(&four[1]))
			return n - 3;
		if (!torsh_check_holds(&four[0]))
			return n - 4;
		n -= 4;
	}
	while (n--) {
		if (!torsh_check_holds(&checks[n]))
			return n;
	}
	return CHECKS_HOLD;
}

#endif
