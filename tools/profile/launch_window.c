/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/launch_window.h. */
#include "tools/profile/launch_window.h"

#include <stdlib.h>

#include "tools/die.h"

/* correlation 0: empty. */
struct window_slot {
	uint32_t correlation, number;
};

void torsh_launch_window_create(struct launch_window *window)
{
	window->slots = torsh_need(calloc(WINDOW_LAUNCHES, sizeof(*window->slots)));
}

void torsh_launch_window_destroy(struct launch_window *window)
{
	free(window->slots);
}

void torsh_launch_window_add(struct launch_window *window, uint32_t correlation, uint32_t number)
{
	struct window_slot *slot = &window->slots[correlation % WINDOW_LAUNCHES];

	/* Of two calls with one number the inner one is told first: it stays. */
	if (correlation && slot->correlation != correlation)
		*slot = (struct window_slot){.correlation = correlation, .number = number};
}

bool torsh_launch_window_find(const struct launch_window *window, uint32_t correlation, uint32_t *number)
{
	const struct window_slot *slot = &window->slots[correlation % WINDOW_LAUNCHES];

	*number = slot->number;
	return correlation && slot->correlation == correlation;
}
