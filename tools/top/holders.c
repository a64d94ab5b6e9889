/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/top/holders.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/die.h"
#include "tools/profile/holders.h"

/* Modules and headers whose lines say nothing about the program. */
static bool is_library(const struct frame *frame)
{
	static const char *const names[] = {"libc.so", "libc-", "libstdc++", "ld-linux", "libpthread", "libgcc_s"};
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL, *name = slash ? slash + 1 : "";

	if (frame->file && strncmp(frame->file, "/usr/include/", 13) == 0)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static const struct frame *python_line(const struct profile_process *process, uint32_t stack, struct symbols *symbols)
{
	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		if (torsh_profile_function(process, process->stacks[stack].address))
			return torsh_symbols_frames(symbols, process, process->stacks[stack].address)->frames;
	}
	return NULL;
}

static const struct frame *native_line(const struct profile_process *process, uint32_t stack, struct symbols *symbols)
{
	const struct frame *named = NULL;

	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		const struct frames *frames = torsh_symbols_frames(symbols, process, process->stacks[stack].address);

		for (size_t i = 0; i < frames->n; i++) {
			const struct frame *frame = &frames->frames[i];

			if (frame->file && frame->line && !is_library(frame))
				return frame;
			if (!named && !frame->cut)
				named = frame;
		}
	}
	return named;
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
		const struct frame *frame = python_line(process, held.items[i].stack, symbols);

		add(holders, &held.items[i], frame ? frame : native_line(process, held.items[i].stack, symbols));
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
