/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Open addressing with linear probing; on removal the entries that follow are reinserted. */
#include "shim/torch/torch_kineto_blocks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/sys.h"

#define FIRST_CAPACITY 4096u
#define LOCK_SPINS 100000

struct entry {
	uintptr_t block; /* 0: free */
	uint64_t n_bytes;
};

/* All guarded by lock. */
static struct {
	struct entry *entries;
	size_t capacity, n;
	uint64_t allocated;
} table;
static _Atomic int lock;

/*
 * A forked child may have inherited the lock held by a thread that doesn't exist there: the wait is
 * limited.
 */
static void take_lock(void)
{
	int expected = 0;

	for (int i = 0; i < LOCK_SPINS; i++) {
		if (atomic_compare_exchange_weak_explicit(&lock, &expected, 1, memory_order_acquire,
							  memory_order_relaxed))
			return;
		expected = 0;
		torsh_cpu_pause();
	}
}

static void release_lock(void)
{
	atomic_store_explicit(&lock, 0, memory_order_release);
}

/* The block's entry, or the free one where it belongs. */
static struct entry *slot_of(uintptr_t block)
{
	size_t mask = table.capacity - 1,
	       i = (block >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & mask;

	while (table.entries[i].block && table.entries[i].block != block)
		i = (i + 1) & mask;
	return &table.entries[i];
}

static int grow(void)
{
	size_t old_capacity = table.capacity,
	       capacity = old_capacity ? 2 * old_capacity : FIRST_CAPACITY;
	struct entry *old = table.entries, *larger = torsh_sys_pages(capacity * sizeof(*larger));

	if (!larger)
		return -1;
	table.entries = larger;
	table.capacity = capacity;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].block)
			*slot_of(old[i].block) = old[i];
	if (old)
		torsh_sys_munmap(old, old_capacity * sizeof(*old));
	return 0;
}

static void remove_entry(struct entry *entry)
{
	size_t mask = table.capacity - 1, i = (size_t)(entry - table.entries);

	entry->block = 0;
	table.n--;
	for (i = (i + 1) & mask; table.entries[i].block; i = (i + 1) & mask) {
		struct entry moved = table.entries[i];

		table.entries[i].block = 0;
		*slot_of(moved.block) = moved;
	}
}

/* As in libc10: a block that was freed outside of a profiler stays in the sum. */
int torsh_torch_kineto_alloc(uintptr_t block, uint64_t n_bytes, uint64_t *allocated)
{
	struct entry *entry;

	take_lock();
	table.allocated += n_bytes;
	*allocated = table.allocated;
	if (2 * table.n < table.capacity || !grow()) {
		entry = slot_of(block);
		table.n += !entry->block;
		*entry = (struct entry){.block = block, .n_bytes = n_bytes};
	}
	release_lock();
	return 1;
}

int torsh_torch_kineto_free(uintptr_t block, uint64_t *allocated)
{
	struct entry *entry;
	bool is_known = false;

	take_lock();
	if (table.capacity) {
		entry = slot_of(block);
		is_known = entry->block != 0;
	}
	if (is_known) {
		table.allocated -= entry->n_bytes;
		*allocated = table.allocated;
		remove_entry(entry);
	}
	release_lock();
	return is_known;
}
