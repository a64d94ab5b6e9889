/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdatomic.h>
#include <string.h>

#include "shim/blas/blas.h"

#define ENTRY_BYTES 8u
#define GROUP 15u /* slots, and a jump that they share */

extern const char torsh_blas_entries[BLAS_SLOTS / GROUP][GROUP + 1][ENTRY_BYTES]
	__attribute__((visibility("hidden")));

_Static_assert(BLAS_SLOTS == 2040 && !(BLAS_SLOTS % GROUP),
	       "as many as shim/blas/blas_entry_*.S have");

static _Atomic uint32_t n_slots;

static uint32_t count(void)
{
	uint32_t n = atomic_load_explicit(&n_slots, memory_order_acquire);

	return n < BLAS_SLOTS ? n : BLAS_SLOTS;
}

/* A slot that is in use, of this name; code: its definition, or the loader's to bind it. */
static struct blas_slot *find(const char *text, void **lazy, const void *code)
{
	for (uint32_t i = 0, n = count(); i < n; i++) {
		struct blas_slot *slot = &torsh_blas_slots[i];
		void *next = atomic_load_explicit(&slot->next, memory_order_acquire);

		/* A lazy slot's next changes once. */
		if (next && slot->lazy == lazy && (lazy || next == code) &&
		    !strncmp(slot->text, text, BLAS_TEXT_BYTES - 1))
			return slot;
	}
	return NULL;
}

static void *entry_of(const struct blas_slot *slot)
{
	size_t i = (size_t)(slot - torsh_blas_slots);

	return (void *)(uintptr_t)torsh_blas_entries[i / GROUP][i % GROUP];
}

static void *add(const char *text, const struct blas_name *name, void **lazy, void *code)
{
	struct blas_slot *slot = find(text, lazy, code);
	uint32_t i;

	if (slot) {
		/* Of a library that was closed, another one may have come to the same place. */
		if (!lazy) {
			torsh_blas_slot_name(slot, code);
		} else {
			atomic_store_explicit(&slot->is_bound, false, memory_order_relaxed);
			atomic_store_explicit(&slot->next, code, memory_order_release);
		}
		return entry_of(slot);
	}
	i = atomic_fetch_add_explicit(&n_slots, 1, memory_order_acq_rel);
	if (i >= BLAS_SLOTS) {
		atomic_store_explicit(&n_slots, BLAS_SLOTS, memory_order_relaxed);
		return NULL;
	}
	slot = &torsh_blas_slots[i];
	slot->lazy = lazy;
	slot->entry = entry_of(slot);
	slot->name = *name;
	torsh_blas_slot_copy(slot->text, text);
	if (!lazy)
		torsh_blas_slot_name(slot, code);
	/* Pairs with the acquire in find. */
	atomic_store_explicit(&slot->next, code, memory_order_release);
	return entry_of(slot);
}

void *torsh_blas_slot_add(const char *text, const struct blas_name *name, void *definition)
{
	return add(text, name, NULL, definition);
}

void *torsh_blas_slot_add_lazy(const char *text, const struct blas_name *name, void **place,
			       void *binder)
{
	return add(text, name, place, binder);
}

bool torsh_blas_slot_has(const void *address)
{
	return (uintptr_t)address - (uintptr_t)torsh_blas_entries < sizeof(torsh_blas_entries);
}
