/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operator that read a tensor's memory last, for each address that a framework's allocator has
 * not freed since. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_TENSOR_READS_H
#define TORSH_WRITER_FOLD_TABLES_TENSOR_READS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "tools/base/containers/hash_map.h"

#define TENSOR_READS_MAX (1u << 20) /* further addresses are left out */

struct tensor_read {
	uint64_t stamp;
	uint32_t operator; /* label */
	uint32_t step; /* its number + 1, see step_marks.h; 0: none */
};

struct tensor_reads {
	struct hash_map by_address; /* numbers of items */
	struct tensor_read *items;
	uint32_t n;
	size_t capacity;
	uint32_t *unused; /* numbers of items whose memory was freed */
	uint32_t n_unused;
	size_t unused_capacity;
	uint64_t n_left_out; /* not 0: a last read may be of before others */
};

/* Free them. */
void torsh_tensor_reads_free(struct tensor_reads *reads);

/* An operator reads this memory. */
void torsh_tensor_reads_take(struct tensor_reads *reads, const struct event_op_read *event,
			     uint64_t stamp, uint32_t step);

/* The memory at the address is freed. */
void torsh_tensor_reads_forget(struct tensor_reads *reads, uint64_t address);

/* Returns the last read of the memory at the address, or NULL. */
const struct tensor_read *torsh_tensor_reads_find(const struct tensor_reads *reads,
						  uint64_t address);

#endif
