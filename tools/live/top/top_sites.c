/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/top/top_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/memory/allocation_sites.h"

/* Of functions that were inlined into each other the innermost one that is not a library's header. */
static const struct frame *own_frame(const struct frames *frames)
{
	for (size_t i = 0; i < frames->n; i++) {
		if (frames->frames[i].file && strncmp(frames->frames[i].file, "/usr/include/", 13) != 0)
			return &frames->frames[i];
	}
	return &frames->frames[0];
}

static void add(struct top_holders *holders, const struct holder *held, const struct frame *frame)
{
	struct top_holder *holder;

	holders->items = torsh_need_room(holders->items, holders->n, &holders->n_room, sizeof(*holders->items));
	holder = &holders->items[holders->n++];
	*holder = (struct top_holder){.bytes = held->bytes, .blocks = held->blocks};
	if (!frame)
		return;
	holder->function = frame->function;
	holder->module = frame->module;
	holder->file = frame->file;
	holder->line = frame->file ? frame->line : 0;
}

void torsh_top_holders_add(struct top_holders *holders, const struct profile_process *process, struct symbols *symbols)
{
	struct holders held = {0};

	torsh_holders_collect(&held, process, HOLDERS_LIVE);
	for (size_t i = 0; i < held.n; i++) {
		uint32_t stack = held.items[i].stack, address;

		if (torsh_profile_walk(process, stack, &address, 1))
			add(holders, &held.items[i], own_frame(torsh_symbols_frames(symbols, process, address)));
		else
			add(holders, &held.items[i], NULL);
	}
	torsh_holders_free(&held);
}

static int compare_pointers(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

/* Texts are interned: other pointers are other texts. */
static int compare_lines(const void *a, const void *b)
{
	const struct top_holder *one = a, *other = b;
	int rc = compare_pointers(one->function, other->function);

	if (rc == 0)
		rc = compare_pointers(one->file, other->file);
	if (rc == 0)
		rc = compare_pointers(one->module, other->module);
	return rc ? rc : (one->line > other->line) - (one->line < other->line);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct top_holder *one = a, *other = b;

	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	if (one->blocks != other->blocks)
		return one->blocks > other->blocks ? -1 : 1;
	return compare_lines(a, b);
}

void torsh_top_holders_settle(struct top_holders *holders)
{
	size_t n = 0;

	if (!holders->n)
		return;
	qsort(holders->items, holders->n, sizeof(*holders->items), compare_lines);
	for (size_t i = 0; i < holders->n; i++) {
		if (n && compare_lines(&holders->items[n - 1], &holders->items[i]) == 0) {
			holders->items[n - 1].bytes += holders->items[i].bytes;
			holders->items[n - 1].blocks += holders->items[i].blocks;
		} else {
			holders->items[n++] = holders->items[i];
		}
	}
	holders->n = n;
	qsort(holders->items, n, sizeof(*holders->items), compare_sizes);
}

void torsh_top_holders_free(struct top_holders *holders)
{
	free(holders->items);
	*holders = (struct top_holders){0};
}
