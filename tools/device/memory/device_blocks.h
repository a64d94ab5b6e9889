/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of one process on its devices, folded from its events in time order: live blocks by
 * address, and which of them a framework's allocator has passed on as tensors.
 *
 * Mapped addresses are views of physical memory, which counts from cuMemCreate until its handle is
 * released and nothing maps it any more. Memory of other processes is counted as blocks without
 * bytes. What the recording lacks is counted and never fatal: a free of an unknown block
 * (unknown_frees), an allocation that overlaps a live one (implicit_frees).
 */
#ifndef TORSH_DEVICE_MEMORY_DEVICE_BLOCKS_H
#define TORSH_DEVICE_MEMORY_DEVICE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "tools/base/containers/address_ranges.h"
#include "tools/base/containers/hash_map.h"

/* SCOPE(NAME, name): the kind of memory; each device has a scope of its own */
#define DEVICE_SCOPES                 \
	SCOPE(CUDA, cuda)             \
	SCOPE(MANAGED, managed)       \
	SCOPE(PINNED, pinned)         \
	SCOPE(REGISTERED, registered) \
	SCOPE(IMPORTED, imported)

enum device_scope_kind {
#define SCOPE(NAME, name) SCOPE_##NAME,
	DEVICE_SCOPES
#undef SCOPE
};

#define DEVICE_SCOPE_NAME_BYTES 32u

struct device_scope {
	enum device_scope_kind kind;
	uint32_t device; /* of SCOPE_CUDA; may be DEVICE_NOT_KNOWN */
	uint64_t bytes, n; /* alive */
	uint64_t n_unsized; /* live blocks of unknown size */
	uint64_t tensor_bytes; /* the part of bytes that a framework allocated for tensors */
	uint64_t allocs, frees;
};

/* Where a block was allocated. */
struct device_origin {
	uint64_t at_ns;
	uint32_t thread, stack;
	uint32_t operator, module; /* labels; 0: none */
	uint32_t step; /* number of the step + 1; 0: in none */
};

struct device_block {
	bool is_alive;
	uint8_t kind, flags; /* enum device_block_kind, device_block_flag */
	uint32_t scope, context;
	/*
	 * of physical memory: one for each time that its handle was retained, and one per mapping
	 */
	uint32_t n_refs;
	uint32_t n_retained; /* the first of these */
	uint64_t address, bytes;
	uint64_t ordinal; /* number among the process's blocks, from 0 */
	uint64_t tensor_bytes; /* allocated by a framework */
	struct device_origin origin;
};

struct device_tensor {
	bool is_alive;
	uint64_t address, bytes;
	uint64_t inside_bytes; /* within recorded blocks */
	struct device_origin origin;
};

struct device_undo;

struct device_blocks {
	struct device_scope *scopes;
	size_t n_scopes, scopes_room;
	struct device_block *blocks; /* entries of dead blocks are reused */
	size_t n_blocks, blocks_room;
	struct device_tensor *tensors; /* likewise */
	size_t n_tensors, tensors_room;
	struct device_block *left; /* blocks that ended with their context, without a free */
	size_t n_left, left_room;
	bool *is_managed; /* by ordinal: a device has had tensors */
	size_t n_ordinals, managed_room;
	uint64_t unknown_frees, implicit_frees, failed_frees;
	uint64_t n_changes; /* events taken so far */

	/* For device_blocks.c and device_block_table.c only. */
	/* numbers of blocks, by space: address, handle, array */
	struct address_ranges ranges[3];
	struct hash_map live_tensors; /* their numbers by address */
	uint32_t *free_blocks, *free_tensors;
	size_t n_free_blocks, free_blocks_room, n_free_tensors, free_tensors_room;
	struct device_undo *undo; /* by thread */
	size_t n_undo, undo_room;
};

/* Begin without blocks; torsh_device_blocks_destroy frees them. */
void torsh_device_blocks_create(struct device_blocks *blocks);

/* Free the blocks. */
void torsh_device_blocks_destroy(struct device_blocks *blocks);

/* Take any event. Returns true if it was about device memory. */
bool torsh_device_blocks_take(struct device_blocks *blocks, const struct event *event,
			      const struct device_origin *origin);

/*
 * Returns the index in scopes of such an allocation's scope, even if nothing was allocated there.
 */
uint32_t torsh_device_blocks_scope(struct device_blocks *blocks, uint32_t kind, uint32_t flags,
				   uint32_t device);

/* Returns the block that contains the address, or NULL. */
const struct device_block *torsh_device_blocks_at(const struct device_blocks *blocks,
						  uint64_t address);

/* Returns "cuda:0", "managed" and the like in out, which holds DEVICE_SCOPE_NAME_BYTES. */
const char *torsh_device_scope_name(const struct device_scope *scope, char *out);

#endif
