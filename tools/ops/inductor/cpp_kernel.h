/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floating-point operations of a C++ kernel that Inductor generated for the CPU, from its source:
 * a nest of loops whose ends are numbers, and in it one statement for each operation of Inductor's
 * own language. A statement counts once for each element that the loops around it go over, also
 * where it is the same for several of them; a fused multiply-add counts as two, a step of
 * Welford's algorithm as four. What Inductor writes as several statements counts as these: the
 * remainder of scalars, not of vectors, is four. Operations on integers don't count, nor what
 * vectors need: sums of lanes and of threads. The template of flex_attention counts as other
 * attention does, by its sizes. The text is from an untrusted file.
 */
#ifndef TORSH_OPS_INDUCTOR_CPP_KERNEL_H
#define TORSH_OPS_INDUCTOR_CPP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpp_kernel {
	uint64_t all; /* valid if reason is NULL */
	/* FlopCounterMode's, of the products in it; valid if counter_reason is NULL, too */
	uint64_t counter;
	const char *reason, *counter_reason; /* why they are unknown; static texts */
};

/*
 * Returns the name under which PyTorch records calls of a kernel whose source this is, and its
 * length; NULL: it records none.
 */
const char *torsh_cpp_kernel_name(const char *text, size_t *n);

/* Count one call of the kernel. text: the source, of which torsh_cpp_kernel_name gave the name. */
struct cpp_kernel torsh_cpp_kernel_count(const char *text);

/*
 * Returns whether an operator's name is that of such a kernel: "graph_0_cpp_fused_add_mul_0",
 * "graph_0_kernel" of the template of attention.
 */
bool torsh_is_cpp_kernel(const char *operator_name);

#endif
