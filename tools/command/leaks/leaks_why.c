/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh leaks --why: who keeps the blocks of one leak. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/leaks/leaks_view.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"
#include "tools/symbols/data_symbol.h"
#include "tools/symbols/stack_view.h"

/* The leak of that number: those that are kept to the end and freed then come last. */
static const struct allocation_site *site_of(const struct leaks_view *view, size_t number)
{
	const struct allocation_sites *found = &view->leaks.found, *held = &view->leaks.held;

	if (number && number <= view->n_shown)
		return &found->items[number - 1];
	if (number > view->n_shown && number - view->n_shown <= view->n_held_shown)
		return &held->items[number - view->n_shown - 1];
	torsh_die("there is no leak number %zu: %zu are shown", number,
		  view->n_shown + view->n_held_shown);
}

/* Stacks of one line were merged: any way to one of them will do. */
static const struct recorded_holder *holder_of(const struct leaks_view *view,
					       const struct allocation_site *site)
{
	const struct recorded_verdicts *verdicts = &site->process->verdicts;
	const struct recorded_holder *found = NULL;

	for (size_t i = 0; !found && i < verdicts->n_holders; i++) {
		if (verdicts->holders[i].stack == site->stack)
			found = &verdicts->holders[i];
	}
	for (size_t i = 0; !found && i < verdicts->n_holders; i++) {
		size_t n;
		const struct frame **frames =
			torsh_stack_frames(site->process, verdicts->holders[i].stack,
					   view->reading->symbols, view->options->view, &n);
		struct blamed_line a = torsh_blamed_line(frames, n, torsh_working_directory());
		struct blamed_line b =
			torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory());

		if (n && site->n_frames && a.where != FRAME_NONE && b.where != FRAME_NONE &&
		    frames[a.where]->file == site->frames[b.where]->file &&
		    frames[a.where]->line == site->frames[b.where]->line)
			found = &verdicts->holders[i];
		free(frames);
	}
	return found;
}

static const char *kind_of(const struct recorded_holder *holder)
{
	switch (holder->root) {
	case ROOT_IN_MODULE:
		return "global";
	case ROOT_ON_STACK:
		return "stack";
	case ROOT_IN_REGISTER:
		return "register";
	default:
		return "mapping";
	}
}

/* The caller frees it. */
static char *name_of(const struct recorded_holder *holder)
{
	char *symbol, *name;

	if (holder->root == ROOT_ON_STACK)
		return torsh_need_text("thread %" PRIu32, holder->tid);
	if (holder->root == ROOT_IN_REGISTER)
		return torsh_need_text("a register");
	if (holder->root != ROOT_IN_MODULE)
		return torsh_need_text("memory mapped by %s",
				       holder->path ? holder->path : "the program");
	symbol = torsh_data_symbol(holder->path, holder->address);
	name = symbol ? torsh_need_text("%s in %s", symbol, holder->path)
		      : torsh_need_text("data of %s at %#" PRIx64, holder->path, holder->address);
	free(symbol);
	return name;
}

/* The line that allocated a block of the way; the caller frees it. */
static char *line_of(const struct leaks_view *view, const struct allocation_site *site,
		     uint32_t stack)
{
	size_t n;
	const struct frame **frames = torsh_stack_frames(
		site->process, stack, view->reading->symbols, view->options->view, &n);
	struct blamed_line blamed = torsh_blamed_line(frames, n, torsh_working_directory());
	char *place = blamed.where == FRAME_NONE
			      ? torsh_need_text("(no stack)")
			      : torsh_short_place(frames[blamed.where], torsh_working_directory());

	free(frames);
	return place;
}

static void emit_json(const struct leaks_view *view, const struct allocation_site *site,
		      const struct recorded_holder *holder)
{
	struct json_writer json;
	char *name = holder ? name_of(holder) : NULL;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "class", torsh_block_class_name(torsh_block_class_of(site)));
	torsh_json_put_known(&json, "left_out", holder, holder ? holder->left_out : 0);
	torsh_json_begin_array(&json, "why");
	if (holder) {
		torsh_json_begin_object(&json, NULL);
		torsh_json_put_text(&json, "kind", kind_of(holder));
		torsh_json_put_text(&json, "name", name);
		torsh_json_put_null(&json, "bytes");
		torsh_json_put_null(&json, "stack");
		torsh_json_end_object(&json);
	}
	for (size_t i = 0; holder && i < holder->n_blocks; i++) {
		char *line = line_of(view, site, holder->block_stacks[i]);

		torsh_json_begin_object(&json, NULL);
		torsh_json_put_text(&json, "kind", "block");
		torsh_json_put_text(&json, "name", line);
		torsh_json_put_u64(&json, "bytes", holder->block_bytes[i]);
		torsh_parts_emit_recorded_stack(&json, site->process, holder->block_stacks[i],
						view->reading->symbols, view->options->view);
		torsh_json_end_object(&json);
		free(line);
	}
	torsh_json_end_array(&json);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
	free(name);
}

static void print_text(const struct leaks_view *view, const struct allocation_site *site,
		       const struct recorded_holder *holder)
{
	char bytes[SIZE_TEXT_BYTES], *name;

	if (!holder) {
		printf("Nothing is known of what keeps it: it is %s.\n",
		       torsh_block_class_name(torsh_block_class_of(site)));
		return;
	}
	name = name_of(holder);
	printf("%s\n", name);
	for (size_t i = 0; i < holder->n_blocks; i++) {
		char *line = line_of(view, site, holder->block_stacks[i]);

		if (holder->left_out && i == holder->n_blocks / 2)
			printf("  ... and %" PRIu32 " more\n", holder->left_out);
		printf("  -> %s from %s\n", torsh_size_human(holder->block_bytes[i], bytes), line);
		free(line);
	}
	free(name);
}

void torsh_leaks_why(const struct leaks_view *view, size_t number)
{
	const struct allocation_site *site = site_of(view, number);
	const struct recorded_holder *holder = holder_of(view, site);

	if (view->options->is_json)
		emit_json(view, site, holder);
	else
		print_text(view, site, holder);
}
