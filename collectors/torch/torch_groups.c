/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process groups of torch.distributed: addresses and numbers, as Python reports them before their
 * first collective. A destroyed group stays in the list until its address is reused.
 */
#include <stdatomic.h>

#include "collectors/torch/operator_events.h"
#include "shim/sys.h"

#define PIECE_GROUPS 509u /* with the other fields, one page */

/* Written with the GIL; group i has number first + i + 1. */
struct piece {
	struct piece *earlier; /* NULL: this is the first piece */
	uint32_t first;
	_Atomic uint32_t n;
	_Atomic uintptr_t groups[PIECE_GROUPS];
};

static struct piece *_Atomic last;

static struct piece *add_piece(struct piece *earlier)
{
	struct piece *piece = torsh_sys_pages(sizeof(*piece));

	if (!piece)
		return NULL;
	piece->earlier = earlier;
	piece->first = earlier ? earlier->first + PIECE_GROUPS : 0;
	/* Pairs with the acquire in torsh_torch_group_number. */
	atomic_store_explicit(&last, piece, memory_order_release);
	return piece;
}

uint32_t torsh_torch_group_add(uintptr_t group)
{
	struct piece *piece = atomic_load_explicit(&last, memory_order_relaxed);
	uint32_t n;

	if (!piece || atomic_load_explicit(&piece->n, memory_order_relaxed) == PIECE_GROUPS)
		piece = add_piece(piece);
	if (!piece)
		return 0;
	n = atomic_load_explicit(&piece->n, memory_order_relaxed);
	atomic_store_explicit(&piece->groups[n], group, memory_order_relaxed);
	/* Pairs with the acquire in torsh_torch_group_number. */
	atomic_store_explicit(&piece->n, n + 1, memory_order_release);
	return piece->first + n + 1;
}

uint32_t torsh_torch_group_number(uintptr_t group)
{
	const struct piece *piece = atomic_load_explicit(&last, memory_order_acquire);

	for (; piece; piece = piece->earlier) {
		uint32_t n = atomic_load_explicit(&piece->n, memory_order_acquire);

		while (n &&
		       atomic_load_explicit(&piece->groups[n - 1], memory_order_relaxed) != group)
			n--;
		if (n)
			return piece->first + n;
	}
	return 0;
}
