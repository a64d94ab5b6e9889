/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From a slot's call to the collector, and to the definition that the slot stands for. */
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/blas/blas.h"
#include "shim/loader/objects.h"

/* As shim/blas/blas_entry_*.S have it. */
_Static_assert(offsetof(struct blas_frame, stack) == 8 * BLAS_REGISTERS, "STACK");
_Static_assert(offsetof(struct blas_frame, next) == 8 * BLAS_REGISTERS + 8, "NEXT");
_Static_assert(offsetof(struct blas_frame, n_stack) == 8 * BLAS_REGISTERS + 16, "N_STACK");
_Static_assert(offsetof(struct blas_frame, results) == 8 * BLAS_REGISTERS + 24, "RESULT");
_Static_assert(sizeof(struct blas_frame) == 8 * BLAS_REGISTERS + 112, "VECTOR");

struct blas_slot *torsh_blas_slots;

void torsh_blas_slot_copy(char *to, const char *text)
{
	size_t n = strnlen(text, BLAS_TEXT_BYTES - 1);

	memcpy(to, text, n);
	to[n] = 0;
}

void torsh_blas_slot_name(struct blas_slot *slot, const void *code)
{
	const struct link_map *map = torsh_objects_of(code);
	const char *path = map && map->l_name ? map->l_name : "", *name = strrchr(path, '/');

	torsh_blas_slot_copy(slot->library, name ? name + 1 : path);
	atomic_store_explicit(&slot->labels_pid, 0, memory_order_release);
}

/* The loader binds the place in this call, which has to return even if it isn't recorded. */
static bool is_unbound(struct blas_slot *slot)
{
	/* Pairs with the release in bind: who sees it bound sees the definition. */
	return slot->lazy && !atomic_load_explicit(&slot->is_bound, memory_order_acquire);
}

static void bind(struct blas_slot *slot, void *definition)
{
	torsh_blas_slot_name(slot, definition);
	atomic_store_explicit(&slot->next, definition, memory_order_release);
	atomic_store_explicit(&slot->is_bound, true, memory_order_release);
}

/*
 * A definition that no other object has is the one that the loader would find. Called by itself it
 * leaves the place to the slot: the loader would store the definition there, and until this call
 * has ended other threads' calls would go past the slot.
 */
static void find_definition(struct blas_slot *slot)
{
	bool is_whole = strlen(slot->text) < BLAS_TEXT_BYTES - 1;
	void *found = is_whole ? torsh_objects_find_only(slot->text) : NULL;

	if (found)
		bind(slot, found);
}

/* Put the slot there again, with what the loader found as its next. */
static void take_bound(struct blas_slot *slot)
{
	void *found = __atomic_load_n(slot->lazy, __ATOMIC_ACQUIRE);

	if (found == slot->entry)
		return;
	bind(slot, found);
	__atomic_store_n(slot->lazy, slot->entry, __ATOMIC_RELEASE);
}

/* How many words of the stack the routine may have as arguments, an even number. */
static uint64_t stack_words(const struct blas_name *name)
{
	uint32_t n = name->routine->n_arguments + 1u; /* the matrices' order */

	for (uint32_t i = 0; i < BLAS_LETTERS && name->routine->at.letters[i]; i++)
		n++;
	n = n > BLAS_REGISTERS ? n - BLAS_REGISTERS : 0;
	return (n + 1) & ~1u;
}

bool torsh_blas_slot_begins(struct blas_frame *frame, uint32_t number)
{
	struct blas_slot *slot = &torsh_blas_slots[number];

	frame->slot = slot;
	if (is_unbound(slot))
		find_definition(slot);
	/* Pairs with the release in blas_slots.c. */
	frame->next = atomic_load_explicit(&slot->next, memory_order_acquire);
	frame->n_stack = stack_words(&slot->name);
	frame->is_recorded = torsh_blas_begins(frame);
	return frame->is_recorded || is_unbound(slot);
}

void torsh_blas_slot_ends(struct blas_frame *frame, const void *caller)
{
	if (is_unbound(frame->slot))
		take_bound(frame->slot);
	if (frame->is_recorded)
		torsh_blas_ends(frame, caller);
}
