/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Triton kernels that Inductor generated, for torsh ops: what they compute is not in the FLOPs of
 * operators.
 */
#ifndef TORSH_COMMAND_OPS_FUSED_H
#define TORSH_COMMAND_OPS_FUSED_H

#include "tools/analysis/compiled/fused_kernels.h"
#include "tools/base/json_writer.h"
#include "tools/command/reading.h"
#include "tools/device/kernels/kernels.h"

struct ops_fused {
	struct kernels kernels;
	struct fused_kernels *flops;
	const struct reading *reading;
};

/* Collect them. Free with torsh_ops_fused_free. */
void torsh_ops_fused_collect(struct ops_fused *fused, const struct reading *reading,
			     const struct prepass *prepass);
void torsh_ops_fused_free(struct ops_fused *fused);

/* Emit "fused_kernels". */
void torsh_ops_fused_emit(struct json_writer *json, struct ops_fused *fused);

/* Print the sum of what is known, and how many launches are not; nothing without such kernels. */
void torsh_ops_fused_print(struct ops_fused *fused);

#endif
