/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh kernels: the source lines that launched kernels. */
#ifndef TORSH_COMMAND_KERNELS_KERNELS_LINES_H
#define TORSH_COMMAND_KERNELS_KERNELS_LINES_H

#include "tools/base/json_writer.h"
#include "tools/device/kernels/kernels.h"
#include "tools/symbols/symbols.h"
#include "tools/terminal/table.h"

/*
 * Emit the n_calls activities of that name by the line that captured or launched them: "lines",
 * "calls_without_line".
 */
void torsh_kernels_emit_lines(struct json_writer *json, const struct kernels *kernels,
			      const struct kernel_row *row, uint64_t n_calls,
			      struct symbols *symbols);

/* Add the first few of these as notes of the table's last row. */
void torsh_kernels_put_lines(struct table *table, const struct kernels *kernels,
			     const struct kernel_row *row, struct symbols *symbols);

#endif
