/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/top/top_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/memory/allocation_sites.h"

/*
 * Of functions that were inlined into each other the innermost one that is not a library's header.
 */
static const struct frame *own_frame(const struct frames *frames)
{
	for (size_t i = 0; i < frames->n; i++) {
		if (frames->frames[i].file &&
		    strncmp(frames->frames[i].file, "/usr/include/", 13) != 0)
			return &frames->frames[i];
	}
	return &frames->frames[0];
}

static void add(struct top_sites *sites, const struct allocation_site *held,
		const struct frame *frame)
{
	struct top_site *site;

	sites->items =
		torsh_array_reserve(sites->items, sites->n, &sites->n_room, sizeof(*sites->items));
	site = &sites->items[sites->n++];
	*site = (struct top_site){.bytes = held->bytes, .blocks = held->blocks};
	if (!frame)
		return;
	site->function = frame->function;
	site->module = frame->module;
	site->file = frame->file;
	site->line = frame->file ? frame->line : 0;
}

void torsh_top_sites_add(struct top_sites *sites, const struct recorded_process *process,
			 struct symbols *symbols)
{
	struct allocation_sites held = {0};

	torsh_sites_collect(&held, process, SITES_LIVE);
	for (size_t i = 0; i < held.n; i++) {
		uint32_t stack = held.items[i].stack, address;

		if (torsh_recording_walk(process, stack, &address, 1))
			add(sites, &held.items[i],
			    own_frame(torsh_symbols_frames(symbols, process, address)));
		else
			add(sites, &held.items[i], NULL);
	}
	torsh_sites_free(&held);
}

static int compare_pointers(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

/* Texts are interned: other pointers are other texts. */
static int compare_lines(const void *a, const void *b)
{
	const struct top_site *one = a, *other = b;
	int rc = compare_pointers(one->function, other->function);

	if (rc == 0)
		rc = compare_pointers(one->file, other->file);
	if (rc == 0)
		rc = compare_pointers(one->module, other->module);
	return rc ? rc : (one->line > other->line) - (one->line < other->line);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct top_site *one = a, *other = b;

	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	if (one->blocks != other->blocks)
		return one->blocks > other->blocks ? -1 : 1;
	return compare_lines(a, b);
}

void torsh_top_sites_settle(struct top_sites *sites)
{
	size_t n = 0;

	if (!sites->n)
		return;
	qsort(sites->items, sites->n, sizeof(*sites->items), compare_lines);
	for (size_t i = 0; i < sites->n; i++) {
		if (n && compare_lines(&sites->items[n - 1], &sites->items[i]) == 0) {
			sites->items[n - 1].bytes += sites->items[i].bytes;
			sites->items[n - 1].blocks += sites->items[i].blocks;
		} else {
			sites->items[n++] = sites->items[i];
		}
	}
	sites->n = n;
	qsort(sites->items, n, sizeof(*sites->items), compare_sizes);
}

void torsh_top_sites_free(struct top_sites *sites)
{
	free(sites->items);
	*sites = (struct top_sites){0};
}
