/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floating point operations of an operator, computed from its name and inputs; nothing is measured.
 * A multiply and an add count as two. The formulas are in tools/ops/flops.def.
 *
 * Operators contain each other: aten::linear calls aten::addmm, aten::convolution a convolution of
 * some library. So an operator counts either at its begin, and nothing inside counts again, or only
 * if nothing inside counted.
 */
#ifndef TORSH_OPS_FLOPS_H
#define TORSH_OPS_FLOPS_H

#include "tools/timeline/inputs.h"

enum flops_status {
	FLOPS_NO_FORMULA, /* or its inputs are not what the formula needs */
	FLOPS_NONE, /* it moves, makes or describes data */
	FLOPS_NO_DATA, /* a tensor has sizes only: nothing is computed */
	FLOPS_COUNTED,
};

enum flops_place {
	FLOPS_HERE, /* counts; what is inside doesn't */
	FLOPS_AT_LEAF, /* counts where nothing inside did */
};

struct flops {
	enum flops_status status;
	enum flops_place place;
	/* what PyTorch's FlopCounterMode counts for it, 0: it does not have the operator */
	uint64_t counter;
	uint64_t all;
};

/* name: "aten::mm". inputs: those of this call. Sums that don't fit stay at UINT64_MAX. */
struct flops torsh_flops_of(const char *name, const struct inputs *inputs);

#endif
