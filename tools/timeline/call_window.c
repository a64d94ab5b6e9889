/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/call_window.h"

/* correlation 0: an empty slot */
struct window_slot {
	uint32_t correlation, number;
};

void torsh_call_window_create(struct call_window *window)
{
	torsh_sparse_array_create(&window->slots, sizeof(struct window_slot));
}

void torsh_call_window_destroy(struct call_window *window)
{
	torsh_sparse_array_destroy(&window->slots);
}

void torsh_call_window_add(struct call_window *window, uint32_t correlation, uint32_t number)
{
	struct window_slot *slot =
		torsh_sparse_array_at(&window->slots, correlation % WINDOW_CALLS);

	/* Of two nested calls with one correlation id the inner one is reported first; it stays. */
	if (correlation && slot->correlation != correlation)
		*slot = (struct window_slot){.correlation = correlation, .number = number};
}

bool torsh_call_window_find(const struct call_window *window, uint32_t correlation,
			    uint32_t *number)
{
	const struct window_slot *slot =
		torsh_sparse_array_find(&window->slots, correlation % WINDOW_CALLS);

	*number = slot ? slot->number : 0;
	return slot && correlation && slot->correlation == correlation;
}
