/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activity by the stack of its launch; for a graph's node of its capture or addition. Needs
 * recorded stacks (TORSH_PROFILER_WITH_STACK, TORSH_PROFILER_OPERATOR_STACKS).
 */
#ifndef TORSH_DEVICE_KERNELS_KERNEL_LINES_H
#define TORSH_DEVICE_KERNELS_KERNEL_LINES_H

#include "tools/base/containers/key_index.h"
#include "tools/timeline/device/device_activity.h"

/* All activities of one name with one launch stack. */
struct kernel_line {
	enum device_what what;
	uint32_t name; /* a kernel's label, a copy's enum copy_kind */
	uint32_t stack; /* as recorded */
	bool is_captured; /* the stack is a graph node's */
	uint64_t calls, timed, total_ns; /* total_ns: of the timed ones */
};

/* The lines of one process. */
struct kernel_lines {
	struct kernel_line *items;
	size_t n, n_room;
	struct key_index index; /* keyed by kind, name and stack: index of items */
};

/* Begin without lines; torsh_kernel_lines_destroy frees them. */
void torsh_kernel_lines_create(struct kernel_lines *lines);

/* Free the lines. */
void torsh_kernel_lines_destroy(struct kernel_lines *lines);

/* Count an activity; with stack 0 (none recorded) it belongs to no line. */
void torsh_kernel_lines_add(struct kernel_lines *lines, const struct activity_record *record,
			    uint32_t stack, bool is_captured);

#endif
