/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/memory_windows.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_memory_windows_destroy(struct memory_windows *windows)
{
	free(windows->items);
}

static struct memory_window begun(const struct peak_tracker *heap)
{
	return (struct memory_window){
		.begin_bytes = heap->bytes,
		.begin_blocks = heap->n,
		.peak_bytes = heap->bytes,
		.is_open = true,
	};
}

/* The number of a window that is not open, or 0. */
static uint32_t find_closed(struct memory_windows *windows)
{
	for (uint32_t i = 0; i < windows->n; i++) {
		if (!windows->items[i].is_open)
			return i + 1;
	}
	if (windows->n == MEMORY_WINDOWS_MAX)
		return 0;
	windows->items = torsh_array_reserve(windows->items, windows->n, &windows->capacity,
					     sizeof(*windows->items));
	return ++windows->n;
}

static struct memory_window *find_open(struct memory_windows *windows, uint32_t window)
{
	if (!window)
		return &windows->first;
	return window <= windows->n && windows->items[window - 1].is_open
		       ? &windows->items[window - 1]
		       : NULL;
}

/* Add what the heap reached since the last call to every open window. */
static void update(struct memory_windows *windows, struct peak_tracker *heap)
{
	uint64_t highest = torsh_peak_tracker_split(heap);

	if (highest > windows->first.peak_bytes)
		windows->first.peak_bytes = highest;
	for (uint32_t i = 0; i < windows->n; i++) {
		if (highest > windows->items[i].peak_bytes)
			windows->items[i].peak_bytes = highest;
	}
}

static int begin(struct memory_windows *windows, const struct peak_tracker *heap, uint32_t *window)
{
	*window = find_closed(windows);
	if (!*window)
		return -EMFILE;
	windows->items[*window - 1] = begun(heap);
	return 0;
}

int torsh_memory_windows_call(struct memory_windows *windows, struct peak_tracker *heap,
			      uint32_t verb, uint32_t window, struct channel_memory *memory)
{
	struct memory_window *open;
	int result = 0;

	if (verb < CALL_MEMORY || verb > CALL_MEMORY_RESET)
		return -EINVAL;
	update(windows, heap);
	if (verb == CALL_MEMORY_BEGIN)
		result = begin(windows, heap, &window);
	open = result ? NULL : find_open(windows, window);
	if (!open)
		return result ? result : -ENOENT;
	*memory = (struct channel_memory){
		.bytes = heap->bytes,
		.blocks = heap->n,
		.begin_bytes = open->begin_bytes,
		.begin_blocks = open->begin_blocks,
		.peak_bytes = open->peak_bytes,
		.window = window,
	};
	if (verb == CALL_MEMORY_RESET)
		*open = begun(heap);
	else if (verb == CALL_MEMORY_END && window)
		open->is_open = false;
	return 0;
}
