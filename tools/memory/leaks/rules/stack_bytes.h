/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sums of bytes by stack, of which few have any: a sparse array of uint64_t. */
#ifndef TORSH_MEMORY_LEAKS_RULES_STACK_BYTES_H
#define TORSH_MEMORY_LEAKS_RULES_STACK_BYTES_H

#include <stdint.h>

#include "tools/base/containers/sparse_array.h"

/* What is kept on purpose is at most so large: see leaks.h. */
#define LEAKS_KEPT_BYTES (UINT64_C(4) << 20)

/* Add to the bytes of a stack. */
static inline void torsh_stack_bytes_add(struct sparse_array *bytes, uint32_t stack,
					 uint64_t n_bytes)
{
	uint64_t *sum = torsh_sparse_array_at(bytes, stack);

	*sum += n_bytes;
}

/* Returns the bytes of a stack. */
static inline uint64_t torsh_stack_bytes_at(const struct sparse_array *bytes, uint32_t stack)
{
	const uint64_t *sum = torsh_sparse_array_find(bytes, stack);

	return sum ? *sum : 0;
}

#endif
