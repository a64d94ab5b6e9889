/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floating-point operations of the kernels that Inductor generates with Triton, from the comment
 * over each in its code: "Original ATen: [...]" and "Graph fragment:", in which each node has its
 * sizes. Only products count, as in FlopCounterMode. The text is from an untrusted file.
 */
#ifndef TORSH_OPS_FUSED_FLOPS_H
#define TORSH_OPS_FUSED_FLOPS_H

#include <stdint.h>

struct fused_flops {
	uint64_t n; /* valid if reason is NULL */
	const char *reason; /* why they are unknown */
};

/*
 * Compute the FLOPs of one launch. name: "triton_poi_fused_mm_0". comment: the lines over its
 * definition; NULL: there are none, or several different ones.
 */
struct fused_flops torsh_fused_flops_of(const char *name, const char *comment);

#endif
