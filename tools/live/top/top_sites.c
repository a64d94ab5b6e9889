/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/top/top_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/frames/short_name.h"
#include "tools/memory/allocation_sites.h"

/* Returns the innermost of inlined functions that is not in a library's header. */
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

/* Texts are interned: equal texts have equal pointers. */
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

static int compare_shown(const void *a, const void *b)
{
	const struct top_site *one = a, *other = b;
	int rc = strcmp(one->place, other->place);

	return rc ? rc : strcmp(one->name, other->name);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct top_site *one = a, *other = b;

	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	if (one->blocks != other->blocks)
		return one->blocks > other->blocks ? -1 : 1;
	return compare_shown(a, b);
}

/* Sort by compare, and merge equal entries. */
static void merge(struct top_sites *sites, int (*compare)(const void *a, const void *b))
{
	size_t n = 0;

	qsort(sites->items, sites->n, sizeof(*sites->items), compare);
	for (size_t i = 0; i < sites->n; i++) {
		if (n && compare(&sites->items[n - 1], &sites->items[i]) == 0) {
			sites->items[n - 1].bytes += sites->items[i].bytes;
			sites->items[n - 1].blocks += sites->items[i].blocks;
			free(sites->items[i].name);
			free(sites->items[i].place);
		} else {
			sites->items[n++] = sites->items[i];
		}
	}
	sites->n = n;
}

static void name_site(struct top_site *site)
{
	const char *directory = torsh_working_directory();
	const char *module = site->module ? strrchr(site->module, '/') : NULL;

	module = module ? module + 1 : site->module ? site->module : "";
	site->name = site->function ? torsh_short_function(site->function)
				    : torsh_need_text("(unknown)");
	site->place = site->line ? torsh_need_text("%s:%d", torsh_frame_path(site->file, directory),
						   site->line)
				 : torsh_need_text("%s", module);
}

void torsh_top_sites_settle(struct top_sites *sites)
{
	if (!sites->n)
		return;
	merge(sites, compare_lines);
	for (size_t i = 0; i < sites->n; i++)
		name_site(&sites->items[i]);
	merge(sites, compare_shown);
	qsort(sites->items, sites->n, sizeof(*sites->items), compare_sizes);
}

void torsh_top_sites_free(struct top_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++) {
		free(sites->items[i].name);
		free(sites->items[i].place);
	}
	free(sites->items);
	*sites = (struct top_sites){0};
}
