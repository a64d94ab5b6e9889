/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floating-point operations of an operator, computed from its name and inputs; nothing is
 * measured. A multiply and an add count as two. The formulas are in tools/ops/flops.def.
 *
 * Operators contain each other: aten::linear calls aten::addmm, aten::convolution a convolution of
 * some library. So an operator counts either at its begin, and no inner one counts again, or only
 * if no inner one counted.
 */
#ifndef TORSH_OPS_FLOPS_H
#define TORSH_OPS_FLOPS_H

#include "tools/timeline/inputs.h"

enum flops_status {
	FLOPS_NO_FORMULA, /* or its inputs don't have the expected form */
	FLOPS_NONE, /* it moves, creates or describes data */
	FLOPS_NO_DATA, /* a tensor has sizes but no data: nothing is computed */
	FLOPS_COUNTED,
};

enum flops_place {
	FLOPS_HERE, /* it counts; inner operators don't */
	FLOPS_AT_LEAF, /* it counts if no inner operator did */
};

struct flops {
	enum flops_status status;
	enum flops_place place;
	/* FlopCounterMode's number for it; 0: FlopCounterMode doesn't have the operator */
	uint64_t counter;
	uint64_t all;
	bool is_elsewhere; /* a tensor is on a device */
	bool is_packed; /* its weights were packed, and lack their sizes */
	const char *reason; /* FLOPS_NO_FORMULA: why; NULL: there is none for the operator */
};

/* Compute the FLOPs. name: "aten::mm". inputs: those of this call. Sums saturate at UINT64_MAX. */
struct flops torsh_flops_of(const char *name, const struct inputs *inputs);

#endif
