/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh kernels: the lines of the program that launched kernels. */
#ifndef TORSH_COMMAND_KERNELS_KERNELS_LINES_H
#define TORSH_COMMAND_KERNELS_KERNELS_LINES_H

#include "tools/base/json_writer.h"
#include "tools/device/kernels/kernels.h"
#include "tools/symbols/symbols.h"
#include "tools/terminal/table.h"

/*
 * Whatever has that name, which is so many calls, by the line that captured or launched it:
 * "lines", "calls_without_line".
 */
void torsh_kernels_emit_lines(struct json_writer *json, const struct kernels *kernels,
			      const struct kernel_row *row, uint64_t n_calls,
			      struct symbols *symbols);

/* The first few of the same, as notes of the table's last row. */
void torsh_kernels_put_lines(struct table *table, const struct kernels *kernels,
			     const struct kernel_row *row, struct symbols *symbols);

#endif
