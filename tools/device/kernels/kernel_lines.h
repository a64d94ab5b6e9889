/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activity by the stack of the call that requested it: for a graph's node the capture or the
 * addition, else the launch. Needs recorded stacks (TORSH_PROFILER_WITH_STACK,
 * TORSH_PROFILER_OPERATOR_STACKS).
 */
#ifndef TORSH_DEVICE_KERNELS_KERNEL_LINES_H
#define TORSH_DEVICE_KERNELS_KERNEL_LINES_H

#include "tools/base/containers/key_index.h"
#include "tools/timeline/device/device_activity.h"

/* All of one name that was requested in one place. */
struct kernel_line {
	enum device_what what;
	uint32_t name; /* label of a kernel's, enum copy_kind of a copy's */
	uint32_t stack; /* as it was recorded */
	bool is_captured; /* it is that of a graph's node */
	uint64_t calls, timed, total_ns; /* total_ns: of the timed ones */
};

/* Of one process. */
struct kernel_lines {
	struct kernel_line *items;
	size_t n, n_room;
	struct key_index index; /* by what, name and stack: index of items */
};

/* Begin without lines; torsh_kernel_lines_destroy frees them. */
void torsh_kernel_lines_create(struct kernel_lines *lines);

/* Free the lines. */
void torsh_kernel_lines_destroy(struct kernel_lines *lines);

/* Count an activity; with stack 0 (none recorded) it belongs to no line. */
void torsh_kernel_lines_add(struct kernel_lines *lines, const struct activity_record *record,
			    uint32_t stack, bool is_captured);

#endif
