/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Products of matrices in C++ kernels of Inductor's: what FlopCounterMode counts of them. */
#ifndef TORSH_OPS_INDUCTOR_CPP_PRODUCTS_H
#define TORSH_OPS_INDUCTOR_CPP_PRODUCTS_H

#include "tools/ops/inductor/cpp_kernel.h"
#include "tools/ops/inductor/cpp_types.h"

/*
 * Set the counter's FLOPs of a kernel of that name, or why they are unknown. Inductor makes small
 * products multiplications and sums, one after the other: n_products multiplications of two
 * values, and n_sums additions into sums. Other products are in the name of a kernel for what it
 * does before or behind them, which it does not multiply for. Returns false if a number takes over
 * 64 bits.
 */
bool torsh_cpp_count_products(struct cpp_kernel *kernel, struct cpp_text name, uint64_t n_products,
			      uint64_t n_sums);

/*
 * Count the template of flex_attention, whose source this is: products of queries and keys, and of
 * these and values. As in FlopCounterMode its mask is ignored.
 */
struct cpp_kernel torsh_cpp_count_attention(const char *text);

#endif
