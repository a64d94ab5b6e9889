/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activity grouped by name alone: rows of one name from different operators and from none.
 */
#ifndef TORSH_DEVICE_KERNELS_KERNEL_GROUPS_H
#define TORSH_DEVICE_KERNELS_KERNEL_GROUPS_H

#include "tools/device/kernels/kernels.h"

struct kernel_group {
	const struct kernel_row *rows;
	size_t n;
	uint64_t calls, bytes, timed, total_ns, min_ns, max_ns;
};

/*
 * Group the rows, in their order. The rows stay the caller's and must outlive the groups. The
 * caller frees the result. Ends the program without memory.
 */
struct kernel_group *torsh_kernel_groups_make(const struct kernels *kernels, size_t *n);

/* Returns the mean duration in ns of the timed calls; 0: there are none. */
uint64_t torsh_kernel_group_average(const struct kernel_group *group);

#endif
